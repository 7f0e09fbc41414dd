# SPDX-License-Identifier: GPL-2.0-or-later
"""The clock in a bisection: commits that were found are timed, and nothing is searched by time."""

import asyncio
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Word
from kdelta.kernels.kbuild.built import built_kernels
from kdelta.lab.lab import Lab
from kdelta.lab.options import TimedBy
from kdelta.lab.request import LabRequest
from kdelta.lab.work import Work
from kdelta.measures.clock.fit import Expected
from kdelta.measures.model import Judgement, Measure, RunPair
from kdelta.measures.registry import MEASURES
from kdelta.report.measured import Effect
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import GitSpec, parse_kernel_spec
from kdelta.spec.run import MachineOptions
from kdelta.store.store import Store
from kdelta.studies.bisect.model import BisectReport
from kdelta.studies.bisect.request import BisectRequest
from kdelta.studies.bisect.study import run_bisect
from tests.report.shown import unwrapped
from tests.studies.fake_clock import FakeClock, set_clock
from tests.studies.planted import CORE, FASTER, LOCK, SLOWER, Planted, PlantedLab
from tests.studies.search_lab import without_programs

pytestmark = pytest.mark.build

MACHINE = MachineOptions(memory_mib=700)


@pytest.fixture
def planted(own_cache: Path, tmp_path: Path) -> Planted:
    assert own_cache.is_dir()
    return Planted(tmp_path)


@pytest.fixture
def lab(planted: Planted, store: Store, monkeypatch: pytest.MonkeyPatch) -> PlantedLab:
    without_programs(monkeypatch)
    return PlantedLab(planted, store)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    return set_clock(monkeypatch)


def bisected(planted: Planted, good: str, lab: PlantedLab, timed: TimedBy) -> BisectReport:
    request = BisectRequest(
        repository=str(planted.folder),
        range=f"{good}..main",
        timed=timed,
        lab=LabRequest(machine=MACHINE),
    )
    return asyncio.run(run_bisect(request, lab))


def commits(clock: FakeClock) -> list[tuple[str, ...]]:
    """Return the commits of the kernels that were timed, in pairs."""
    found = []
    for pair in clock.timed:
        specs = [parse_kernel_spec(one.spec) for one in pair]
        found.append(tuple(one.revision for one in specs if isinstance(one, GitSpec)))
    return found


@pytest.mark.slow
def test_each_commit_that_is_found_is_timed_against_what_is_before_it(
    planted: Planted, lab: PlantedLab, clock: FakeClock
) -> None:
    good = planted.placement(1)
    slower = planted.change("core: slower", CORE, *SLOWER)
    before = planted.placement(2)
    faster = planted.change("core: faster", CORE, *FASTER)
    timed = TimedBy(clock="kvm", most_pairs=5)
    report = bisected(planted, good, lab, timed)
    assert {one.commit.name for one in report.found} == {slower, faster}
    assert set(commits(clock)) == {(good, slower), (before, faster)}
    assert clock.asked[-1].timed == timed
    assert clock.asked[-1].works == (Work("syscalls"),)
    assert clock.machines == [MACHINE, MACHINE]
    ends = [parse_kernel_spec(one) for one in clock.checked]
    assert [one.revision for one in ends if isinstance(one, GitSpec)] == [good, faster]
    for one in report.found:
        (found,) = one.measured
        words = {effect.region: effect.word for effect in found.effects}
        wanted = ("open", Word.SLOWER) if one.commit.name == slower else ("fault", Word.FASTER)
        assert words == {"open": Word.SAME, "fault": Word.SAME, "empty": Word.SAME} | {
            wanted[0]: wanted[1]
        }
    text = unwrapped("bisect", report)
    assert f"{slower[:12]} open 206 266 slower" in text
    assert f"{slower[:12]}: 1 pairs of boots" in report.notes or (
        f"{slower[:12]}: 2 pairs of boots" in report.notes
    )


class Cycles(Measure):
    """What kernels are searched by, in place of model cycles."""

    name = "cycles"
    unit = "cycles"

    def judge(self, _lab: Lab, _pair: RunPair) -> Judgement:
        """Return that a region is slower as linked."""
        return Judgement(self.found([Effect("open", Word.SLOWER, as_linked=Interval(0.2, 0.4))]))


@pytest.mark.slow
def test_the_clock_is_given_what_kernels_were_searched_by(
    planted: Planted, lab: PlantedLab, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MEASURES, "cycles", lambda asked: None if asked.timed.clock else Cycles())
    good = planted.name("HEAD")
    planted.change("core: slower", CORE, *SLOWER)
    bisected(planted, good, lab, TimedBy(clock="kvm"))
    (expected,) = clock.expected
    known = msgspec.structs.replace(expected["open"], change=None)
    assert known == Expected(Word.SLOWER, Word.SLOWER, Interval(0.2, 0.4))


@pytest.mark.slow
def test_a_search_is_the_same_with_a_clock_that_fails(
    planted: Planted, lab: PlantedLab, clock: FakeClock
) -> None:
    good = planted.name("HEAD")
    planted.change("core: slower", CORE, *SLOWER)
    clock.broken = "Kernel panic"
    report = bisected(planted, good, lab, TimedBy(clock="emulated"))
    (found,) = report.found
    (measured,) = found.measured
    assert measured.effects == ()
    assert "not timed: Kernel panic" in report.notes
    assert f"No times are known of {found.commit.short}" in unwrapped("bisect", report)
    plain = bisected(planted, good, lab, TimedBy())
    bare = tuple(msgspec.structs.replace(one, measured=()) for one in report.found)
    notes = tuple(one for one in report.notes if one != "not timed: Kernel panic")
    assert msgspec.structs.replace(report, found=bare, notes=notes) == msgspec.structs.replace(
        plain, ends=report.ends, builds=report.builds
    )
    assert len(clock.timed) == 1


@pytest.mark.slow
def test_nothing_is_timed_where_nothing_is_found(
    planted: Planted, lab: PlantedLab, clock: FakeClock
) -> None:
    good = planted.name("HEAD")
    planted.unrelated(1)
    report = bisected(planted, good, lab, TimedBy(clock="emulated"))
    assert clock.timed == []
    assert "times are not known: no commit was found" in report.notes


@pytest.mark.slow
def test_commits_that_are_not_distinguished_are_not_timed(
    planted: Planted, lab: PlantedLab, clock: FakeClock
) -> None:
    good = planted.name("HEAD")
    planted.change("core: slower", CORE, *SLOWER)
    planted.change("lock: more", LOCK, new="int more;\nint more_of(void) { return 1; }\n")
    request = BisectRequest(
        repository=str(planted.folder),
        range=f"{good}..main",
        timed=TimedBy(clock="emulated"),
        max_builds=0,
    )
    report = asyncio.run(run_bisect(request, lab))
    assert [len(one.commits) for one in report.groups] == [2]
    assert clock.timed == []
    assert "times are not known of 1 group of commits: these were not distinguished" in report.notes


def test_what_cannot_be_timed_is_refused_before_anything_is_built(
    planted: Planted, lab: PlantedLab, clock: FakeClock
) -> None:
    good = planted.name("HEAD")
    planted.unrelated(1)
    with pytest.raises(UserError, match="are of a clock, and none is named"):
        bisected(planted, good, lab, TimedBy(margin=Fraction(1, 50)))
    with pytest.raises(UserError, match="not built with a section for each function: --links"):
        bisected(planted, good, lab, TimedBy(clock="kvm", links=True))
    clock.refused = "KVM cannot be used"
    with pytest.raises(UserError, match="KVM cannot be used"):
        bisected(planted, good, lab, TimedBy(clock="kvm"))
    assert lab.made == []
    assert list(built_kernels()) == []
