# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta gate`: each exit code, and how `git bisect run` takes them."""

import functools
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kdelta.cli import main as cli
from kdelta.cli.gate import gate_code
from kdelta.counts.model import RunCounts
from kdelta.cpus import load_cpu
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.cycles.placement_model import (
    Bounds,
    CodeChange,
    ComparedEnsembles,
    CycleVerdict,
    Draws,
    PlacementEffect,
)
from kdelta.infer.effects.chance import of_relinked
from kdelta.infer.effects.effects import Word, compare_runs
from kdelta.infer.effects.gate import Decision, Exit, decide_gate
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab, RunResult
from kdelta.measures.cycles.effects import Cycles
from kdelta.measures.cycles.measure import ModelCycles
from kdelta.measures.model import Judgement, MeasureRequest, RunSide
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.run import RunStatus
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison
from kdelta.studies.gate.document import gate_line
from kdelta.studies.gate.study import GateAnswer, judge
from tests.cli.studies import of_cycles
from tests.report.example import report, stored
from tests.report.example_cycles import cycle_effects
from tests.synthetic import own, region, run

Captured = pytest.CaptureFixture[str]
KERNELS = ("image:a", "image:b")


def side(*costs: int | RunStatus, **more: int) -> RunSide:
    """A kernel whose open-close costs that much in each run, or a run that failed so."""
    done = []
    for index, cost in enumerate(costs):
        if isinstance(cost, RunStatus):
            done.append(RunResult(stored(index, cost, "oops\nand more"), None))
            continue
        regions = {"open-close": cost, **more}
        counts = run(*(region(name, {own("f"): count}, 1) for name, count in regions.items()))
        done.append(RunResult(stored(index, RunStatus.OK), counts))
    kernel = Kernel("a" * 64, "image:a", "/vmlinuz", "x86_64", "6.1.0")
    return RunSide("image:a", kernel, tuple(done))


def comparison(base: RunSide, other: RunSide) -> Comparison:
    both = base.counts and other.counts
    effects = compare_runs(base.counts, other.counts) if both else None
    return Comparison("syscalls", base, other, effects)


Answering = Callable[[RunSide, RunSide], list[CompareRequest]]


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Answering:
    """Makes comparisons find these two sides; what was asked for is in the list."""
    assert own_cache.is_dir()

    def answer(base: RunSide, other: RunSide) -> list[CompareRequest]:
        asked: list[CompareRequest] = []

        async def study(request: CompareRequest, lab: Lab) -> tuple[Comparison, ...]:
            asked.append(request)
            assert lab.store
            assert lab.progress
            return (comparison(base, other),)

        monkeypatch.setattr("kdelta.studies.gate.study.run_compare", study)
        return asked

    return answer


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    async def study(*_: object) -> tuple[Comparison, ...]:
        raise error

    monkeypatch.setattr("kdelta.studies.gate.study.run_compare", study)


WIDE = "cannot tell: open-close: {}%; {} runs a side would probably decide\n"


def spread(insns: int) -> RunSide:
    return side(*range(insns, insns + 64, 8))


@pytest.mark.parametrize(
    ("sides", "code", "line"),
    [
        ((side(1000, 1000), side(1000, 1000)), 0, "not slower: 1 same\n"),
        ((side(1000, 1000, x=9), side(900, 900, x=9)), 0, "not slower: 1 faster, 1 same\n"),
        ((side(1000, 1002), side(1001, 1002)), 0, "not slower: 1 same\n"),
        ((side(1000, 1020), side(1010, 1020)), 125, WIDE.format("-2.48 to +3.47", "8")),
        # Unresolved, one of them not slower by more than the margin: it may be faster.
        ((spread(1000), spread(992)), 125, WIDE.format("-5.89 to +4.33", "more than 64")),
        ((spread(1000), spread(950)), 0, "not slower: 1 not slower by more than the margin\n"),
        ((side(1000, 1000), side(1001, 1001)), 1, "slower: open-close +0.1% instructions\n"),
        (
            (side(1000, 1000, x=9, y=5), side(1001, 1001, x=18, y=4)),
            1,
            "slower: x +100% instructions, open-close +0.1% instructions\n",
        ),
        ((side(0, 0), side(7, 7)), 1, "slower: open-close +7 instructions\n"),
        (
            (side(1000), side(2000)),
            125,
            "cannot tell: open-close: one run on a side has no spread: --perturb makes more\n",
        ),
        ((side(1, 1, x=9), side(1, 1)), 125, "cannot tell: x: only in base\n"),
        (
            (side(1000, 1000), side(2000, RunStatus.BOOT_FAILED)),
            125,
            "cannot tell: other: boot-failed: oops\n",
        ),
        (
            (side(RunStatus.WORKLOAD_FAILED), side(1000, 1000)),
            125,
            "cannot tell: base: workload-failed: oops\n",
        ),
        (
            (
                side(1000, 1000),
                RunSide("./linux", None, failure="build-failed: no rule to make target"),
            ),
            125,
            "cannot tell: other: build-failed: no rule to make target\n",
        ),
    ],
)
def test_what_it_answers(
    sides: tuple[RunSide, RunSide], code: int, line: str, answering: Answering, capsys: Captured
) -> None:
    asked = answering(*sides)
    assert cli.ended(["gate", *KERNELS]) == code
    assert capsys.readouterr().out == line
    assert [(one.base, one.others) for one in asked] == [("image:a", ("image:b",))]


@pytest.mark.parametrize(
    ("other", "margin", "code"),
    [
        ((1010, 1010), "1", 0),
        ((1011, 1011), "1", 1),
        ((1300, 1300), "30", 0),
        ((1100, 1120), "8", 1),
        ((1090, 1120), "10", 125),
        ((1090, 1110), "10", 125),
        ((1100, 1120), "9", 125),
        ((1011, 1011), "0", 1),
    ],
)
def test_a_margin(other: tuple[int, int], margin: str, code: int, answering: Answering) -> None:
    answering(side(1000, 1000), side(*other))
    assert cli.ended(["gate", *KERNELS, "--margin", margin]) == code
    assert cli.ended(["gate", *KERNELS]) == 1


def test_a_single_kernel_with_a_change_is_two(answering: Answering) -> None:
    asked = answering(side(1, 1), side(1, 1))
    arguments = ["-w", "aes", "-o", "x", "--cpu", "zen3", "--layouts", "16", "--margin", "2"]
    arguments += ["--data"]
    assert cli.ended(["gate", "./linux", "+CONFIG_X=y", *arguments]) == 0
    (request,) = asked
    assert (request.base, request.others) == ("tree:./linux", ("tree:./linux +CONFIG_X=y",))
    assert (request.workload, request.operations) == ("aes", ("x",))
    assert ([cpu.name for cpu in request.cpus], request.layouts) == (["zen3"], 16)
    assert request.lab.data_lines
    assert request.margin == 0.02


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "BASE is missing"),
        (["image:a"], "1 kernels, not two"),
        (["image:a", "image:b", "image:c"], "3 kernels, not two"),
        ([*KERNELS, "--frobnicate"], "there is no option --frobnicate"),
        ([*KERNELS, "--perturb", "0"], "cannot use --perturb 0"),
        ([*KERNELS, "--margin", "-1"], "a margin of -1 %"),
        ([*KERNELS, "--margin", "nan"], "a margin of nan %"),
        ([*KERNELS, "--cycles", "zen3", "--margin", "0"], "a margin of 0 %"),
        ([*KERNELS, "--cpu", "nonesuch"], "no CPU is called 'nonesuch'"),
        ([*KERNELS, "-w", "nonesuch"], "nonesuch"),
        (["./nonesuch", "./nowhere"], "./nonesuch"),
    ],
)
def test_wrong_usage_is_never_bad(
    arguments: list[str], words: str, own_cache: Path, capsys: Captured
) -> None:
    assert own_cache.is_dir()
    assert cli.ended(["gate", *arguments]) == 255
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    "error",
    [
        UserError("no such commit"),
        LabError("no QEMU"),
        ZeroDivisionError("a bug"),
        ExceptionGroup("", [LabError("a"), UserError("b")]),
        MemoryError(),
        KeyboardInterrupt(),
        SystemExit(1),
    ],
)
def test_a_crash_is_never_bad(
    error: BaseException, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_cache.is_dir()
    failing(monkeypatch, error)
    assert cli.ended(["gate", *KERNELS]) == 255


@pytest.mark.parametrize("code", [2, 3, 126, 127, 128, 130, -1])
def test_other_codes_are_no_answers(code: int) -> None:
    assert gate_code(lambda: code) == 255


def test_other_commands_keep_their_codes(own_cache: Path) -> None:
    assert own_cache.is_dir()
    assert cli.ended(["compare", "image:a"]) == 2
    assert cli.ended(["compare", "gate"]) == 2


def test_a_line_that_nothing_reads_does_not_turn_bad_into_good(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    answering(side(1000, 1000), side(2000, 2000))
    monkeypatch.setattr("kdelta.cli.output.forget_stream", lambda _: None)
    monkeypatch.setattr("sys.stdout", Gone())
    assert cli.ended(["gate", *KERNELS]) == 1


ZEN3 = load_cpu("zen3")
NOT_KNOWN = Judgement(ModelCycles(MeasureRequest(ZEN3), ZEN3).found())


def more_of(count: float) -> ComparedEnsembles:
    """So many more in the other kernel."""
    draws = [Draws(one, one, one, one, one, None) for one in (5, 5 + count)]
    return ComparedEnsembles(draws[0], draws[1], Bounds(count, count, count))


@functools.cache
def _an_effect() -> PlacementEffect:
    return cycle_effects(report().others[0].effects)[0]


def on_zen3(
    word: Word,
    code: CodeChange = CodeChange.DIFFERENT,
    relative: tuple[float, float] = (0.02, 0.0345),
    unpriced: float = 0,
    **verdict: Any,
) -> Comparison:
    """A path that is slower, and that verdict on model cycles; so many more of an instruction that
    has no price.
    """
    plain = comparison(side(1000, 1000), side(1001, 1001))
    assert plain.effects
    effect = msgspec.structs.replace(
        _an_effect(),
        region="open-close",
        verdict=CycleVerdict(word, **verdict),
        relative=Interval(*relative),
        unpriced={"hlt": more_of(unpriced)} if unpriced else {},
    )
    cycles = Cycles((effect,))
    is_relinked = code is CodeChange.RELINKED
    effects = of_relinked(plain.effects, ["open-close"] if is_relinked else [])
    return msgspec.structs.replace(
        plain, effects=effects, cpu=ZEN3, judged=(of_cycles(cycles, ZEN3),)
    )


@pytest.mark.parametrize(
    ("found", "percent", "code", "line"),
    [
        (on_zen3(Word.SAME), "0", 1, "slower: open-close +0.1% instructions"),
        (on_zen3(Word.SAME), "1", 0, "not slower: 2 same"),
        (on_zen3(Word.FASTER), "1", 0, "not slower: 1 faster, 1 same"),
        (
            on_zen3(Word.SLOWER),
            "1",
            1,
            "slower: open-close on zen3 +2% to +3.45% model cycles",
        ),
        (
            on_zen3(Word.UNRESOLVED, reason="layouts differ", layouts=700),
            "1",
            125,
            "cannot tell: open-close on zen3: layouts differ; --layouts 700 would probably do",
        ),
        (
            on_zen3(Word.UNRESOLVED, relative=(-0.3, 0.01), reason="prices"),
            "1",
            0,
            "not slower: 1 not slower by more than the margin, 1 same",
        ),
        (
            on_zen3(Word.UNRESOLVED, relative=(-0.3, 0.0101), reason="prices"),
            "1",
            125,
            "cannot tell: open-close on zen3: prices",
        ),
        (
            on_zen3(Word.NOT_SLOWER, relative=(-0.3, 0)),
            "1",
            0,
            "not slower: 1 not slower in what is counted, 1 same",
        ),
        (
            on_zen3(Word.NOT_COMPARABLE, relative=(-0.3, -0.2), reason="no VERW"),
            "1",
            125,
            "cannot tell: open-close on zen3: no VERW",
        ),
        *(
            (
                on_zen3(word, relative=(-0.3, -0.2), unpriced=2),
                "1",
                125,
                "cannot tell: open-close on zen3: hlt: more of it, at no known cost on zen3",
            )
            for word in (Word.UNRESOLVED, Word.FASTER, Word.SAME)
        ),
        (on_zen3(Word.FASTER, unpriced=-2), "1", 0, "not slower: 1 faster, 1 same"),
        # The same code relinked is never slower.
        (
            on_zen3(Word.PLACEMENT_ONLY, CodeChange.RELINKED),
            "0",
            0,
            "not slower: 2 placement only",
        ),
        (
            msgspec.structs.replace(on_zen3(Word.SAME), judged=(NOT_KNOWN,)),
            "1",
            125,
            "cannot tell: open-close on zen3: its model cycles are not known",
        ),
    ],
)
def test_both_verdicts_count(found: Comparison, percent: str, code: int, line: str) -> None:
    judged = tuple(judge(found, Fraction(percent) / 100))
    decision = decide_gate(judged)
    assert (decision.exit, gate_line(decision, judged)) == (code, line)


def test_many_are_counted_and_not_named(answering: Answering, capsys: Captured) -> None:
    slow = {f"op{index}": 200 - index for index in range(8)}
    answering(side(1, 1, **dict.fromkeys(slow, 100)), side(1, 1, **slow))
    assert cli.ended(["gate", *KERNELS]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("slower: op0 +100% instructions, op1 +99% instructions, ")
    assert shown.endswith(" op4 +96% instructions, and 3 more\n")


def test_nothing_was_measured() -> None:
    empty = side(1)
    empty = msgspec.structs.replace(empty, done=(RunResult(empty.done[0].run, RunCounts(())),))
    assert list(judge(comparison(empty, empty), Fraction(0))) == []


def test_the_help_says_how_to_bisect(capsys: Captured) -> None:
    assert cli.ended(["gate", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "git bisect run kdelta gate" in shown
    for code in ("0  ", "1  ", "125", "255"):
        assert f"\n    {code} " in shown


_GATE = """\
import pathlib, sys
from kdelta.cli import main as cli
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.gate import Judged, decide_gate
from kdelta.studies.gate.study import GateAnswer

async def run_gate(request, lab):
    cost = pathlib.Path("cost").read_text().strip()
    if cost == "crash":
        raise ZeroDivisionError
    judged = (Judged("op", Word.SLOWER if int(cost or 0) > 100 else Word.SAME),)
    return GateAnswer(decide_gate(judged, () if cost else ("it does not build",)), judged)

import kdelta.cli.gate
sys.modules["kdelta.cli.gate"].run_gate = run_gate
sys.argv = ["kdelta", "gate", "image:a", "image:b"]
sys.exit(cli.ended(sys.argv[1:]))
"""


def _bisect(folder: Path, costs: list[str]) -> str:
    """What `git bisect run kdelta gate` says of a history whose commits cost that much."""

    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(
            ["git", *who, *words], cwd=folder, capture_output=True, text=True, check=False, env=env
        )
        return done.stdout + done.stderr

    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    git("init", "-q")
    for index, cost in enumerate(costs):
        (folder / "cost").write_text(f"{cost}\n")
        git("add", "cost")
        git("commit", "-q", "--allow-empty", "-m", f"commit {index}")
    git("bisect", "start", "HEAD", f"HEAD~{len(costs) - 1}")
    return git("bisect", "run", sys.executable, "-c", _GATE)


@pytest.mark.build
@pytest.mark.slow
def test_git_bisect_finds_the_commit_around_one_that_does_not_build(tmp_path: Path) -> None:
    said = _bisect(tmp_path, ["100", "90", "80", "", "101", "200", "200"])
    # It was the one that does not build, or the one after it.
    assert "There are only 'skip'ped commits left to test." in said
    _, _, left = said.partition("could be any of:")
    assert len(re.findall("^[0-9a-f]{40}$", left, re.MULTILINE)) == 2


@pytest.mark.build
@pytest.mark.slow
def test_git_bisect_finds_the_commit(tmp_path: Path) -> None:
    said = _bisect(tmp_path, ["100", "90", "80", "99", "101", "200", "200"])
    assert re.search("is the first bad commit(?s:.*) commit 4\n", said)


@pytest.mark.build
@pytest.mark.slow
def test_git_bisect_stops_when_the_gate_crashes(tmp_path: Path) -> None:
    said = _bisect(tmp_path, ["100", "100", "crash", "200", "200"])
    assert "first bad commit" not in said
    assert "255" in said


def test_notes_on_what_was_cut_off_go_to_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    async def answer(*_: object) -> GateAnswer:
        note = "on zen2, fork: its trace was cut off"
        return GateAnswer(Decision(Exit.NOT_SLOWER, ()), (), (note,))

    monkeypatch.setattr("kdelta.cli.gate.run_gate", answer)
    assert cli.ended(("gate", *KERNELS)) == 0
    shown = capsys.readouterr()
    assert shown.out == "not slower:\n"
    assert "note: on zen2, fork: its trace was cut off\n" in shown.err
