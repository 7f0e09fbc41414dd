# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta clock`: what it judges, and what it refuses."""

import errno
import json
import random
import secrets
from pathlib import Path
from typing import Any

import pytest

from kdelta.studies.clock import floor
from tests.cli.studies import kdelta
from tests.measures.clock.made_runs import FACTS, content, region, write_boots
from tests.measures.clock.scripts import printing, script

Captured = pytest.CaptureFixture[str]


def folders(tmp_path: Path, slower: float, boots: int = 12, **facts: Any) -> tuple[str, str]:
    """Boots of two kernels, in an order that is drawn; the other's stat is slower by that part."""
    drawn = random.Random(3)
    a, b = tmp_path / "A", tmp_path / "B"
    for folder in (a, b):
        folder.mkdir()
    for at in range(boots):
        first = drawn.random() < 0.5
        for folder, factor, late in ((a, 1.0, not first), (b, 1 + slower, first)):
            times = {
                "getppid": 80 * drawn.uniform(0.998, 1.002),
                "stat": 800 * factor * drawn.uniform(0.998, 1.002),
            }
            named = {
                "boot_id": f"{folder.name}{at}",
                "when": FACTS["when"] + 1000 * at + 500 * late,
            }
            own: dict[str, Any] = {"build_id": "b" * 40, "release": "6.13.0"} if folder == b else {}
            (folder / f"{at}.json").write_bytes(content(times, **named, **own, **facts))
    return str(a), str(b)


def test_judge_slower_operation_and_same_one(
    tmp_path: Path, own_data: Path, capsys: Captured
) -> None:
    assert own_data
    assert kdelta("clock", "judge", *folders(tmp_path, 0.05), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    words = {one["region"]: one["word"] for one in document["found"]["effects"]}
    assert words == {"getppid": "same", "stat": "slower"}
    (stat,) = (one for one in document["found"]["effects"] if one["region"] == "stat")
    assert 0.04 < stat["change"]["low"] < 0.05 < stat["change"]["high"] < 0.06
    assert document["pairs"] == 12
    assert kdelta("report", "last") == 0
    text = capsys.readouterr().out
    assert "Of 2 operations: 1 slower, 1 same." in text
    assert "a verdict is on these two builds" in " ".join(text.split())


def test_judge_few_pairs_unresolved(tmp_path: Path, own_data: Path, capsys: Captured) -> None:
    assert own_data
    assert kdelta("clock", "judge", *folders(tmp_path, 0.05, boots=3)) == 0
    assert "2 unresolved" in capsys.readouterr().out


def test_judge_boots_at_one_time_refused(tmp_path: Path, own_data: Path, capsys: Captured) -> None:
    assert own_data
    a, b = (write_boots(tmp_path / name, *({"stat": 1.0},) * 3) for name in "AB")
    assert kdelta("clock", "judge", str(a), str(b)) == 2
    assert "overlap in time" in capsys.readouterr().err


def test_judge_fixed_order_unresolved_and_warned(
    tmp_path: Path, own_data: Path, capsys: Captured
) -> None:
    assert own_data
    a = write_boots(tmp_path / "A", *({"stat": 100.0},) * 12)
    b = write_boots(tmp_path / "B", *({"stat": 150.0},) * 12, first=3600)
    assert kdelta("clock", "judge", str(a), str(b)) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Of 1 operation: 1 unresolved" in text
    assert "toss a coin for each pair" in text
    assert "both folders are of one kernel" in text


def test_judge_machine_that_moves_warned(tmp_path: Path, own_data: Path, capsys: Captured) -> None:
    assert own_data
    facts = {"governor": "schedutil", "boost": "1", "smt": "on", "cpu_flags": "hypervisor"}
    assert kdelta("clock", "judge", *folders(tmp_path, 0.0, boots=2, **facts)) == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in ("is schedutil", "boost is on", "SMT is on", "is a virtual one", "TSC may follow"):
        assert words in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("judge", "A"), "1 folders, not two"),
        (("judge", "nowhere", "here"), "nowhere is no folder"),
        (("judge", "A", "B", "--margin", "0"), "cannot use --margin"),
        (("judge", "A", "B", "--margin", "100"), "cannot use --margin"),
        (("pack",), "pack needs a file to write"),
        (("pack", "A", "--output", "x.tar"), "pack takes no folder: A"),
        (("pack", "-w", "nat", "--output", "x.tar"), "nat cannot be packed: it starts programs"),
        (("pack", "-w", "nut", "--output", "x.tar"), "no workload is called 'nut'"),
        (("pack", "--arch", "mips", "--output", "x.tar"), "mips"),
        (("time",), "ACTION"),
        (("check", "image:a"), "--counts is what check does"),
        (("judge", "A", "B", "--counts"), "--counts is what check does"),
        (("check", "--counts"), "check needs a kernel"),
        (
            ("check", "--counts", "image:a", "+cmdline:psi=0", "nowhere.json"),
            "cannot read nowhere.json",
        ),
    ],
)
@pytest.mark.slow
def test_clock_refuses(
    words: tuple[str, ...], message: str, own_data: Path, own_cache: Path, capsys: Captured
) -> None:
    assert own_data
    assert own_cache
    assert kdelta("clock", *words) == 2
    assert message in capsys.readouterr().err


def test_judge_one_boot_only(tmp_path: Path, own_data: Path, capsys: Captured) -> None:
    assert own_data
    a = write_boots(tmp_path / "A", {"stat": 1.0}, {"stat": 1.0}, boot_id="x")
    b = write_boots(tmp_path / "B", {"stat": 1.0}, {"stat": 1.0}, first=20_000)
    assert kdelta("clock", "judge", str(a), str(b)) == 2
    assert "not 2 pairs of boots to compare, but 1" in capsys.readouterr().err
    assert (
        kdelta(
            "clock",
            "judge",
            str(b),
            str(write_boots(tmp_path / "C", *({"stat": 1.0},) * 2, first=23_000)),
            "-o",
            "stot",
        )
        == 2
    )
    assert "did you mean stat?" in capsys.readouterr().err


def test_judge_counters_that_are_refused_named(
    tmp_path: Path, own_data: Path, capsys: Captured
) -> None:
    assert own_data
    for name in "AB":
        (tmp_path / name).mkdir()
        for at in range(2):
            refused = region("stat", 100.0, counter_errno=errno.EACCES)
            facts = {
                "boot_id": f"{name}{at}",
                "when": FACTS["when"] + 900 * at + 300 * (name == "B"),
            }
            (tmp_path / name / f"{at}.json").write_bytes(content({}, refused, **facts))
    assert kdelta("clock", "judge", str(tmp_path / "A"), str(tmp_path / "B")) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "perf_event_paranoid is 2; as root: sysctl kernel.perf_event_paranoid=1" in text


def fake_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairs: int, **facts: Any) -> None:
    """Put fakes in place of a floor: stat differs by 0.1 % from run to run, fork by 5 %."""
    drawn = random.Random(7)
    runs = [
        {"stat": 800 * drawn.gauss(1, 0.001), "fork": 50_000 * drawn.gauss(1, 0.05)}
        for _ in range(2 * pairs)
    ]
    program = printing(tmp_path, runs, **facts)
    monkeypatch.setattr(floor, "bundle_here", lambda *_: program)
    monkeypatch.setattr(secrets, "randbelow", drawn.randrange)


@pytest.mark.slow
def test_floor_by_operation(
    tmp_path: Path, own_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert own_data
    fake_floor(tmp_path, monkeypatch, 20, load="2.50 1 1", boost="1", smt="on", governor="")
    assert kdelta("clock", "floor", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    stat, fork = report["floor"]
    assert (report["pairs"], report["base"]["runs"], report["base"]["boots"]) == (20, 40, 1)
    assert stat["ns"] == pytest.approx(800, rel=0.01)
    assert 0.0001 < stat["half_width"] <= stat["margin"] < 0.003
    assert 0.01 < fork["half_width"] <= fork["margin"] < 0.2
    assert [one["word"] for one in report["found"]["effects"]] == ["same", "unresolved"]
    for form, words in (("text", "in fork, the worst of 2."), ("junit", "stat"), ("html", "floor")):
        assert kdelta("report", "last", "--format", form) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert words in text
        assert "the load was 2.50" in text or form == "junit"
    assert "no_turbo" not in text
    for words in ("cpufreq/boost", "smt/control", "a process and no boot", "shows no cpufreq"):
        assert words in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--pairs", "6"), "--pairs"),
        (("A",), "floor takes no folder: A"),
        (("-w", "nat"), "nat cannot be packed"),
        (("-o", "stot"), "'stot'"),
    ],
)
def test_floor_refuses(
    words: tuple[str, ...], message: str, own_data: Path, capsys: Captured
) -> None:
    assert own_data
    assert kdelta("clock", "floor", *words) == 2
    assert message in capsys.readouterr().err


def test_floor_of_a_bundle_that_fails(
    tmp_path: Path, own_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert own_data
    broken = script(tmp_path, "echo no memory >&2; exit 1")
    monkeypatch.setattr(floor, "bundle_here", lambda *_: broken)
    assert kdelta("clock", "floor") == 3
    assert "bundle failed: no memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("pack", "-o", "getppid"), "pack takes no --operation"),
        (("pack", "--margin", "3"), "pack takes no --margin"),
        (("judge", "a", "b", "-w", "aes"), "judge takes no --workload"),
        (("judge", "a", "b", "--pairs", "9"), "judge takes no --pairs"),
        (("floor", "--arch", "arm64"), "floor takes no --arch"),
        (("check", "--counts", "image:x", "--output", "y"), "check takes no --output"),
        (
            ("pack", "--program", "x", "-w", "aes"),
            "--program and --workload: one of them",
        ),
    ],
)
def test_option_that_is_of_another_action_is_refused(
    words: tuple[str, ...], message: str, capsys: Captured
) -> None:
    assert kdelta("clock", *words) == 2
    assert message in capsys.readouterr().err
