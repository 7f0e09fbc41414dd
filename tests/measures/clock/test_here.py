# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that time themselves here: scripts in their place, which end in all ways."""

import random
import secrets
import time
from pathlib import Path

import pytest

from kdelta.measures.clock import here
from kdelta.measures.clock.here import TimedProgram, bundle_here, pairs_here, timed_here
from kdelta.spec.errors import LabError, UserError
from tests.measures.clock.made_runs import content
from tests.measures.clock.scripts import printing, script


def test_run_of_a_program_that_prints_besides(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(content({"stat": 100.0}))
    found = timed_here(script(tmp_path, "echo words >&2; read line; cat run"))
    assert found.ns == {"stat": pytest.approx(100.0, rel=0.01)}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("echo first >&2; echo the reason >&2; exit 3", "bundle failed: the reason"),
        ("exit 3", "bundle failed: it ended with 3"),
        ("kill -9 $$", "bundle failed: it ended with -9"),
        ("echo nothing", "bundle is not from a bundle"),
    ],
)
def test_program_that_fails_named_with_its_last_words(
    lines: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(LabError, match=words):
        timed_here(script(tmp_path, lines))


def test_program_that_cannot_start(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="new could not be started: No such file"):
        timed_here(TimedProgram((str(tmp_path / "new"),), "new"))


def has_ended(pid: int) -> bool:
    """Whether a process that was killed is gone within a minute."""
    for _ in range(600):
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True
        if text.rpartition(")")[2].split()[0] in "ZX":
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
def test_program_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    hanging = script(tmp_path, "sleep 55 & echo $! >pid; wait", seconds=1.0)
    with pytest.raises(LabError, match="bundle did not end within 1 seconds"):
        timed_here(hanging)
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_what_a_program_leaves_running_is_ended(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(content({"stat": 100.0}))
    timed_here(script(tmp_path, "sleep 55 & echo $! >pid; cat run"))
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_program_that_prints_without_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(here, "PRINTED_BYTES", 3 << 20)
    with pytest.raises(LabError, match="bundle printed more than 3 MiB"):
        timed_here(script(tmp_path, "exec yes >&2"))


def test_pairs_are_of_their_program_in_an_order_that_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "randbelow", random.Random(5).randrange)
    old = printing(tmp_path, [{"stat": 100.0}] * 9, "old")
    new = printing(tmp_path, [{"stat": 150.0}] * 9, "new")
    begun: list[str] = []
    *_, timed = pairs_here((old, new), 9, begun.append)
    assert begun == [f"pair {number} of at most 9" for number in range(1, 10)]
    assert {round(pair.base.ns()["stat"]) for pair in timed.pairs} == {100}
    assert {round(pair.other.ns()["stat"]) for pair in timed.pairs} == {150}
    assert {pair.is_base_first for pair in timed.pairs} == {True, False}
    assert timed.alone == (0, 0)


def test_order_that_is_drawn_is_not_taken_for_a_fixed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "randbelow", lambda _: 1)
    program = printing(tmp_path, [{"stat": 100.0}] * 12)
    *_, timed = pairs_here((program, program), 6, lambda _: None)
    assert not timed.is_of_fixed_order


def test_machine_that_changes_in_between_is_refused(tmp_path: Path) -> None:
    programs = (
        printing(tmp_path, [{"stat": 100.0}], "old"),
        printing(tmp_path, [{"stat": 100.0}], "new", governor="powersave"),
    )
    with pytest.raises(UserError, match="is from another cpufreq governor than"):
        list(pairs_here(programs, 1, lambda _: None))


def test_unknown_operation_refused_before_anything_is_compiled() -> None:
    with pytest.raises(UserError, match="no operation of syscalls is called 'stot'"):
        bundle_here("syscalls", ("stot",), lambda _: None)


def test_host_without_bundles_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "host_target", lambda: None)
    with pytest.raises(UserError, match="nothing can be timed here"):
        bundle_here("syscalls", (), lambda _: None)
