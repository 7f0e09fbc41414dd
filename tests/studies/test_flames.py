# SPDX-License-Identifier: GPL-2.0-or-later
"""Which profiles a page's flame graphs are of: found in the store, recorded where they are not."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kdelta.counts.profile import Profile
from kdelta.counts.profile_file import encode_profiles
from kdelta.lab.lab import PROFILES, Lab, profiles_of
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.report.model import KernelRuns, ReportedRun
from kdelta.report.stored import Stored
from kdelta.spec.errors import LabError
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun, Run
from kdelta.store.store import Store
from kdelta.studies.compare.assemble import compare_reports
from kdelta.studies.compare.model import Compared, CompareReport
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import run_compare
from kdelta.studies.flames import flames_of, record_profiles
from tests.machines.bench import NEW, OLD
from tests.profiles import profile_of
from tests.report.example import base_counts, report
from tests.report.html.pages import stored


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as found:
        yield found


def made(store: Store, kernel: str, *profiles: Profile) -> Run:
    """A run of a kernel, with these profiles or none."""
    new = NewRun(f"key of {kernel}", kernel, kernel, "6.1", {}, "syscalls", "b" * 64, 0)
    kept = {PROFILES: encode_profiles(profiles)} if profiles else {}
    return store.finish_run(
        store.start_run(new), RunStatus.OK, counts=base_counts(0), attachments=kept
    )


def side(kernel: str, *runs: Run) -> KernelRuns:
    return KernelRuns(
        kernel, kernel, f"release of {kernel}", tuple(ReportedRun(one) for one in runs)
    )


def comparison(base: KernelRuns, *others: KernelRuns) -> Stored:
    effects = report().others[0].effects
    compared = tuple(Compared(one, effects) for one in others)
    return stored("compare", CompareReport("syscalls", {}, base, compared))


OPEN = profile_of({("f",): 5}, region="open-close")
STAT = profile_of({("g",): 7}, region="stat")


def test_runs_without_profiles_have_no_graphs(store: Store) -> None:
    plain, other = made(store, "base"), made(store, "other", OPEN)
    assert flames_of(comparison(side("base", plain), side("other", other)), store) == ()


def test_the_same_run_made_once_more_has_them(store: Store) -> None:
    base, other = made(store, "base"), made(store, "other")
    made(store, "base", OPEN, STAT)
    made(store, "other", STAT)
    found = flames_of(comparison(side("base", base), side("other", other)), store)
    assert [(one.region, one.sides, one.about) for one in found] == [
        ("stat", ("base", "other"), "")
    ]


def test_of_several_kernels_it_is_reported_which(store: Store) -> None:
    runs = {name: made(store, name, OPEN) for name in ("base", "one", "two")}
    sides = [side(name, run) for name, run in runs.items()]
    found = flames_of(comparison(*sides), store)
    assert [one.about for one in found] == ["release of one", "release of two"]


def test_profiles_that_are_lost_are_reported(store: Store, tmp_path: Path) -> None:
    base, other = made(store, "base", OPEN), made(store, "other", STAT)
    blob = base.attachments[PROFILES]
    for file in tmp_path.rglob(f"*{blob[2:]}*"):
        file.unlink()
    said: list[str] = []
    whole = comparison(side("base", base), side("other", other))
    assert flames_of(whole, store, said.append) == ()
    assert len(said) == 1
    assert said[0].startswith("no flame graphs: ")


class Told(Silent):
    """Notes what is reported."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def log(self, line: str) -> None:
        self.said.append(line)


def test_what_goes_wrong_with_a_report_that_is_done_is_reported(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def broken(*_: object) -> None:
        inner = ExceptionGroup("runs of one", [LabError("the disk is full", "free some")])
        raise ExceptionGroup("runs", [inner])

    monkeypatch.setattr(Lab, "runs", broken)
    told = Told()
    gone = f"image:{tmp_path / 'gone'}"
    asyncio.run(record_profiles(CompareRequest(base=gone, others=(gone,)), Lab(store, told)))
    assert told.said == ["no profiles for flame graphs: the disk is full"]


@pytest.mark.guest
@pytest.mark.slow
def test_profiles_of_both_kernels_are_recorded(store: Store) -> None:
    request = CompareRequest(
        base=OLD, others=(NEW,), operations=("getppid",), lab=LabRequest(perturbations=2)
    )
    found = asyncio.run(run_compare(request, Lab(store, Silent())))
    whole = stored("compare", *compare_reports(found, store))
    assert flames_of(whole, store) == ()
    asyncio.run(record_profiles(request, Lab(store, Silent())))
    graphs = flames_of(whole, store)
    assert "getppid" in {one.region for one in graphs}
    (one,) = (one for one in graphs if one.region == "getppid")
    names = {name for _, name in one.names}
    assert {"do_syscall_64", "__x64_sys_getppid"} <= names
    for at, done in enumerate((found[0].base.done[0], found[0].other.done[0])):
        run = store.find_run(done.run.key)
        assert run is not None
        profile = next(one for one in profiles_of(store, run) if one.region == "getppid")
        assert one.total("insns", at) == profile.row_costs().insns.sum() > 0
    runs = len(store.runs())
    asyncio.run(record_profiles(request, Lab(store, Silent())))
    assert len(store.runs()) == runs, "what was recorded is not recorded again"
    assert msgspec.structs.asdict(graphs[0])["iterations"]
