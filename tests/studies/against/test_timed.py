# SPDX-License-Identifier: GPL-2.0-or-later
"""Two programs timed here: scripts in their place, next to verdicts on made paths."""

import random
import secrets
from collections.abc import Sequence
from pathlib import Path

import pytest

from kdelta.infer.effects.effects import Effects, Word, compare_runs
from kdelta.infer.effects.gate import Exit, decide_gate
from kdelta.lab.options import TimedHere
from kdelta.lab.progress import Silent
from kdelta.measures.clock.here import TimedProgram
from kdelta.studies.against.timed import TimedPrograms, time_programs
from tests.measures.clock.made_runs import content
from tests.measures.clock.scripts import printing, script
from tests.report.example_against import counts

ASKED = TimedHere(clock="this", most_pairs=20)


@pytest.fixture(autouse=True)
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "randbelow", random.Random(4).randrange)


def path(writes: int = 200) -> Effects:
    """The old program writes 100 times."""
    return compare_runs([counts(100)] * 3, [counts(writes)] * 3)


def times(
    ns: float, runs: int = 20, seed: int = 1, name: str = "command"
) -> list[dict[str, float]]:
    shake = random.Random(seed)
    return [{name: ns * shake.gauss(1, 0.002)} for _ in range(runs)]


def timed(
    folder: Path,
    old: Sequence[dict[str, float]] | TimedProgram,
    new: Sequence[dict[str, float]] | TimedProgram,
    found: Effects | None = None,
) -> TimedPrograms:
    programs = [
        one
        if isinstance(one, TimedProgram)
        else printing(folder, one, name, bundle=name, workload=name, arguments=name)
        for name, one in (("old", old), ("new", new))
    ]
    return time_programs((programs[0], programs[1]), ASKED, found or path(), Silent())


def test_slower_by_path_and_clock(tmp_path: Path) -> None:
    made = timed(tmp_path, times(1e6), times(1.2e6, seed=2))
    (effect,) = made.found.effects
    assert (effect.word, effect.reason) == (Word.SLOWER, "explained by the path")
    assert decide_gate(made.judged).exit is Exit.SLOWER
    # It ends as soon as that is known, which takes seven pairs.
    assert 7 <= int((tmp_path / "new.count").read_text()) < 12
    assert any("under 6.12.0, which runs here" in one for one in made.found.notes)


def test_clock_that_disagrees_with_the_path(tmp_path: Path) -> None:
    (effect,) = timed(tmp_path, times(1.2e6), times(1e6, seed=2)).found.effects
    assert effect.word is Word.FASTER
    assert effect.reason.startswith("clock and model disagree")


def test_same_by_the_clock_is_not_slower(tmp_path: Path) -> None:
    made = timed(tmp_path, times(1e6), times(1e6, seed=2), path(100))
    (effect,) = made.found.effects
    assert (effect.word, effect.reason) == (Word.SAME, "no difference")
    assert decide_gate(made.judged).exit is Exit.NOT_SLOWER


def test_program_that_fails_here_is_not_timed(tmp_path: Path) -> None:
    broken = script(tmp_path, "echo no display >&2; exit 1", "new")
    made = timed(tmp_path, times(1e6), broken)
    assert made.found.notes == ("not timed: new failed: no display",)
    decision = decide_gate(made.judged)
    assert decision.exit is Exit.CANNOT_TELL
    assert decision.because == ("command by the clock: not timed: new failed: no display",)


def test_program_that_fails_later_keeps_the_pairs_before(tmp_path: Path) -> None:
    made = timed(tmp_path, times(1e6), times(1.002e6, 5, 2))
    (effect,) = made.found.effects
    assert effect.word is Word.UNRESOLVED
    assert made.found.notes[0].startswith("a pair was not timed, and is the last: new failed")
    assert any("5 pairs of runs" in one for one in made.found.notes)


def test_program_that_changes_while_it_is_timed_is_not_timed(tmp_path: Path) -> None:
    new = printing(tmp_path, times(1.2e6, seed=2), "new")
    changed = tmp_path / "new1.json"
    changed.write_bytes(content({"command": 1.2e6}, bundle="another"))
    (note,) = timed(tmp_path, times(1e6), new).found.notes
    assert "is from another bundle than" in note


@pytest.mark.slow
def test_regions_that_only_the_path_has_are_named(tmp_path: Path) -> None:
    old, new = (times(1e6, seed=seed, name="inner") for seed in (1, 2))
    made = timed(tmp_path, old, new)
    assert any("not timed on their own: command;" in one for one in made.found.notes)


def test_programs_without_a_region_in_common(tmp_path: Path) -> None:
    made = timed(tmp_path, times(1e6, name="a"), times(1e6, name="b"))
    assert made.found.notes == ("not timed: there is no region that both programs have",)
    assert decide_gate(made.judged).exit is Exit.CANNOT_TELL
