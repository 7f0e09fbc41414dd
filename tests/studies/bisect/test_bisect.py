# SPDX-License-Identifier: GPL-2.0-or-later
"""A bisection of the fake tree as a repository: real commits, builds, objects; planted effects."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kdelta.cpus.catalog import load_cpu
from kdelta.host.dirs import data_dir
from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.reach.touched import HARMLESS, Tree
from kdelta.lab.lab import Lab
from kdelta.measures.cycles.measure import ModelCycles
from kdelta.spec.errors import UserError
from kdelta.store.store import Store
from kdelta.studies.bisect.kernels import Commits
from kdelta.studies.bisect.model import BisectReport
from kdelta.studies.bisect.request import BisectRequest
from kdelta.studies.bisect.study import run_bisect
from tests.kernels.git_trees import git, state
from tests.report.shown import shown
from tests.studies.planted import (
    BROKEN,
    CORE,
    FASTER,
    LOCK,
    NO_BOOT,
    SLOWER,
    Planted,
    PlantedLab,
    exactly,
)
from tests.studies.search_lab import without_programs

pytestmark = pytest.mark.build

LOCK_H = "include/linux/lock.h"


@pytest.fixture
def planted(own_cache: Path, tmp_path: Path) -> Planted:
    assert own_cache.is_dir()
    return Planted(tmp_path)


@pytest.fixture
def lab(planted: Planted, store: Store, monkeypatch: pytest.MonkeyPatch) -> PlantedLab:
    without_programs(monkeypatch)
    return PlantedLab(planted, store)


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open(data_dir()) as opened:
        yield opened


def request_for(planted: Planted, good: str, bad: str = "main") -> BisectRequest:
    return BisectRequest(
        repository=str(planted.folder),
        range=f"{good}..{bad}",
        changes=("+CONFIG_OLD_DRIVER=y",),
    )


def bisected(request: BisectRequest, lab: Lab) -> BisectReport:
    return asyncio.run(run_bisect(request, lab))


def effects(report: BisectReport) -> dict[str, dict[str, int]]:
    """By subject, what is not zero."""
    return {
        one.commit.subject: {name: int(e.value) for name, e in one.effects.items() if e.value}
        for one in report.found
    }


def history(planted: Planted) -> str:
    """One that slows down, one that speeds up, unrelated and placement-only ones between."""
    good = planted.name("HEAD")
    for number in range(4):
        planted.unrelated(number)
    planted.placement(1)
    planted.change("core: slower", CORE, *SLOWER)
    planted.unrelated(5)
    planted.placement(2)
    planted.change("core: faster", CORE, *FASTER)
    planted.placement(3)
    planted.unrelated(6)
    return good


@pytest.mark.slow
def test_culprits_from_both_ends(planted: Planted, lab: PlantedLab) -> None:
    good = history(planted)
    before = state(planted.folder)
    report = bisected(request_for(planted, good), lab)
    assert state(planted.folder) == before
    assert effects(report) == {"core: slower": {"open": 30}, "core: faster": {"fault": -50}}
    assert all(one.confirmed for one in report.found)
    assert len(report.ruled_out) == 6
    assert report.candidates == 5
    assert report.placement
    assert len(report.builds) <= 2 + 2 * (3 + 3)
    assert len(lab.measured) == len(report.builds)
    text = shown("bisect", report)
    long = (str(planted.folder), good)
    assert all(len(row) <= 80 or any(one in row for one in long) for row in text.splitlines())
    assert '("core: slower")' in text
    assert "6 of 11 commits needed no kernel." in text
    back = bisected(request_for(planted, "main", good), lab)
    assert effects(back) == effects(report)
    assert "is older than" in back.notes[0]


@pytest.mark.slow
def test_asking_again_measures_the_same(planted: Planted, lab: PlantedLab) -> None:
    good = history(planted)
    first = bisected(request_for(planted, good), lab)
    asked = list(lab.measured)
    again = bisected(request_for(planted, good), lab)
    assert effects(again) == effects(first)
    assert lab.measured == asked * 2


@pytest.mark.slow
def test_what_does_not_build_or_boot_is_skipped(planted: Planted, lab: PlantedLab) -> None:
    good = planted.name("HEAD")
    planted.placement(1)
    planted.change("core: breaks the build", CORE, *BROKEN)
    planted.change("core: fixes the build", CORE, BROKEN[1], BROKEN[0])
    planted.placement(2)
    planted.change("core: slower", CORE, *SLOWER)
    planted.placement(3)
    planted.change("core: does not boot", CORE, *NO_BOOT)
    planted.change("core: boots again", CORE, NO_BOOT[1], NO_BOOT[0])
    planted.placement(4)
    request = request_for(planted, good)
    report = bisected(request, lab)
    assert effects(report) == {"core: slower": {"open": 30}}
    failed = {one.commit: one.status for one in report.builds if one.status != "ok"}
    asked = [one.commit for one in report.builds]
    again = bisected(request, lab)
    assert [one.commit for one in again.builds] == asked
    assert {one.commit: one.status for one in again.builds if one.status != "ok"} == failed
    assert not set(lab.measured[len(asked) :]) & failed.keys()
    assert lab


@pytest.mark.slow
def test_git_replays_the_log(planted: Planted, lab: PlantedLab, tmp_path: Path) -> None:
    good = history(planted)
    report = bisected(request_for(planted, good), lab)
    assert lab
    for one in report.found:
        log = tmp_path / "log"
        log.write_text(report.logs[one.commit.name])
        said = git(planted.folder, "bisect", "replay", str(log))
        word = "bad" if one.commit.subject == "core: slower" else "fast"
        assert f"{one.commit.name} is the first {word} commit" in said
        git(planted.folder, "bisect", "reset")


@pytest.mark.slow
def test_a_comment_is_ruled_out(planted: Planted, lab: PlantedLab) -> None:
    """In a header that executed code includes, even; a line more is no comment alone."""
    good = planted.name("HEAD")
    define = "#define LOCK_H\n"
    planted.change("lock.h: a comment", LOCK_H, define, "#define LOCK_H /* once */\n")
    planted.change("lock.h: a line", LOCK_H, "void lock(", "/* a line */\nvoid lock(")
    report = bisected(request_for(planted, good), lab)
    assert [one.commit.subject for one in report.ruled_out] == ["lock.h: a comment"]
    assert "does the same before and after it" in report.ruled_out[0].why
    assert lab


@pytest.mark.slow
def test_a_comment_that_a_script_reads_is_kept(
    planted: Planted, lab: PlantedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = planted.name("HEAD")
    planted.change("lock.h: a comment", LOCK_H, "#define LOCK_H\n", "#define LOCK_H /* once */\n")
    real = Commits.tree

    def parsed(kernels: Commits, commit: str) -> Tree:
        return msgspec.structs.replace(real(kernels, commit), parsed=frozenset({LOCK_H}))

    monkeypatch.setattr(Commits, "tree", parsed)
    report = bisected(request_for(planted, good), lab)
    assert (report.ruled_out, report.candidates) == ((), 1)
    assert lab


def kconfigs(planted: Planted) -> str:
    """Three commits that touch Kconfig; the last one changes the config."""
    good = planted.name("HEAD")
    planted.change("help", "Kconfig", 'mainmenu "Fake"', '# A comment\nmainmenu "Fake"')
    planted.change("new", "Kconfig", "choice\n", 'config NEW\n\tbool "New"\n\nchoice\n')
    planted.change("select", "Kconfig", "that nothing calls", 'it"\n\tselect NEW\n\n#"')
    return good


@pytest.mark.slow
def test_kconfig_files_that_grant_the_same(planted: Planted, lab: PlantedLab) -> None:
    report = bisected(request_for(planted, kconfigs(planted)), lab)
    assert [one.commit.subject for one in report.ruled_out] == ["help", "new"]
    assert {one.why for one in report.ruled_out} == {HARMLESS}
    assert report.candidates == 1
    assert lab


@pytest.mark.slow
def test_too_many_kconfig_files_to_ask(
    planted: Planted, lab: PlantedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdelta.studies.bisect.study.MOST_ASKED", 2)
    report = bisected(request_for(planted, kconfigs(planted)), lab)
    assert (report.ruled_out, report.candidates) == ((), 3)
    assert lab


@pytest.mark.slow
def test_equal_ends(planted: Planted, lab: PlantedLab) -> None:
    history(planted)
    report = bisected(request_for(planted, "main"), lab)
    assert len(lab.measured) == 1
    assert report.found == ()
    assert "same commit" in shown("bisect", report)


@pytest.mark.slow
def test_nothing_to_explain(planted: Planted, lab: PlantedLab) -> None:
    good = planted.name("HEAD")
    for number in range(3):
        planted.unrelated(number)
    report = bisected(request_for(planted, good), lab)
    assert len(report.builds) == 2
    assert len(lab.measured) == 2
    assert "no difference to explain" in shown("bisect", report)


@pytest.mark.slow
def test_an_end_that_does_not_build(planted: Planted, lab: PlantedLab) -> None:
    good = planted.name("HEAD")
    planted.change("core: breaks the build", CORE, *BROKEN)
    report = bisected(request_for(planted, good), lab)
    assert "nothing to compare: main: build-failed" in report.failure
    assert "nothing to compare" in shown("bisect", report)
    assert lab


@pytest.mark.slow
def test_among_merges(planted: Planted, lab: PlantedLab) -> None:
    planted.placement(1)
    good = planted.placement(2)
    git(planted.folder, "checkout", "-q", "-b", "side", f"{good}~1")
    for number in range(3):
        planted.change(
            f"pages: {number}", "mm/pages.c", new=f"int more_{number}(void) {{ return 2; }}\n"
        )
    planted.change("core: slower", CORE, *SLOWER)
    planted.change("pages: last", "mm/pages.c", new="int last(void) { return 2; }\n")
    git(planted.folder, "checkout", "-q", "main")
    planted.change("core: faster", CORE, *FASTER)
    git(planted.folder, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
    planted.unrelated(3)
    report = bisected(request_for(planted, good), lab)
    assert effects(report) == {"core: slower": {"open": 30}, "core: faster": {"fault": -50}}
    assert lab


@pytest.mark.slow
def test_a_commit_that_holds_no_kernel_is_skipped(planted: Planted, lab: PlantedLab) -> None:
    """As where one import was taken away before the next one came."""
    good = planted.name("HEAD")
    planted.change("core: slower", CORE, *SLOWER)
    text = (planted.folder / "Makefile").read_text()
    git(planted.folder, "rm", "-q", "Makefile")
    planted.commit("nothing")
    (planted.folder / "Makefile").write_text(text)
    planted.commit("all again")
    planted.placement(1)
    request = msgspec.structs.replace(request_for(planted, good), rule_out=False)
    report = bisected(request, lab)
    assert effects(report) == {"core: slower": {"open": 30}}
    (failed,) = [one for one in report.builds if one.status != "ok"]
    assert "is no kernel tree" in failed.detail
    with pytest.raises(UserError, match="is no kernel tree"):
        bisected(request_for(planted, "main~2", "main"), lab)
    assert lab


@pytest.mark.slow
def test_model_cycles_are_regions_of_their_own(
    planted: Planted, lab: PlantedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path is as it was, and what it executes costs more."""
    good = planted.name("HEAD")
    planted.change("lock: by two", LOCK, "*it += 1;", "*it += 2;")
    planted.change("core: slower", CORE, *SLOWER)
    cpu = load_cpu("generic-x86-64")

    def cycles(*_: object) -> dict[str, Estimate]:
        lock = planted.read(lab.measured[-1], LOCK)
        return {"fault": exactly(1000 + 200 * lock.count("+= 2"))}

    monkeypatch.setattr(ModelCycles, "figures", cycles)
    request = msgspec.structs.replace(request_for(planted, good), cpu=cpu, layouts=16)
    report = bisected(request, lab)
    assert effects(report) == {
        "core: slower": {"open": 30},
        "lock: by two": {"fault on generic-x86-64": 200},
    }
    units = {one.name: one.unit for one in report.regions}
    assert units["fault on generic-x86-64"] == "model cycles"
    assert units["fault"] == "instructions"
    assert "model cycles an iteration" in shown("bisect", report)


@pytest.mark.slow
def test_a_region_that_is_asked_for(planted: Planted, lab: PlantedLab) -> None:
    request = request_for(planted, history(planted))
    report = bisected(msgspec.structs.replace(request, regions=("fault",)), lab)
    assert effects(report) == {"core: faster": {"fault": -50}}
    assert report.asked == ("fault",)
    measured = len(lab.measured)
    with pytest.raises(UserError, match="there is no region 'defalt'") as caught:
        bisected(msgspec.structs.replace(request, regions=("fault", "defalt")), lab)
    assert "empty, fault, open" in caught.value.hint
    assert len(lab.measured) == measured + 1


@pytest.mark.slow
def test_no_more_builds_than_asked_for(planted: Planted, lab: PlantedLab) -> None:
    good = history(planted)
    request = msgspec.structs.replace(request_for(planted, good), max_builds=1)
    report = bisected(request, lab)
    assert len(report.builds) == 3
    assert report.groups
    assert lab
