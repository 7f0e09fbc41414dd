# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters next to exact counts, of files that were made for a kernel that was not booted."""

import asyncio
import errno
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kdelta.counts.model import merged_regions
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.plan import RunPlan
from kdelta.lab.wanted import RunResult
from kdelta.lab.work import Work
from kdelta.measures.clock.here import TimedProgram
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from kdelta.studies.counters import study
from kdelta.studies.counters.model import CountersReport
from kdelta.studies.counters.request import CountersRequest
from kdelta.studies.counters.study import run_counters
from tests.cli.studies import make_run
from tests.lab.fake_lab import FakeLab
from tests.measures.clock.made_runs import content, region
from tests.measures.clock.scripts import script
from tests.report.example import base_counts
from tests.synthetic import own, user
from tests.synthetic import region as synthetic_region

BANNER = "6.12.0 (a builder) #1 SMP Fri"
KERNEL = Kernel("a" * 64, "image:a", "/a", "x86_64", "6.12.0", banner=BANNER)
VERSION = "Linux version 6.12.0 (a builder) (gcc) #7 SMP Fri"
EXACT = {
    name: (one.cost("own", kernel=False).insns, one.cost("own", kernel=True).insns, one)
    for name, one in merged_regions(base_counts(0)).items()
}


class CountingLab(FakeLab):
    """Its runs count what the example's do."""

    status = RunStatus.OK
    found: Kernel | NoKernel = KERNEL

    def kernel(self, spec: str) -> Kernel | NoKernel:
        assert spec == "image:a"
        return self.found

    def run(self, kernel: Kernel, work: RunPlan, index: int) -> RunResult:
        del kernel, work
        return make_run(self.store, self.status, index)


@pytest.fixture(autouse=True)
def _no_workload_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Work, "plans", lambda self, *_: [self])


def as_counted(name: str, more: float = 0.0) -> dict[str, Any]:
    """A region whose counters say what exact runs count, and some more in the kernel."""
    user, kernel, one = EXACT[name]
    counts = [round(300 * insns / one.iteration_count) for insns in (user, kernel)]
    plain = region(name, 100.0)
    counters = {
        "user_instructions": [counts[0], plain["ns"], plain["ns"]],
        "kernel_instructions": [round(counts[1] * (1 + more)), plain["ns"], plain["ns"]],
    }
    return plain | {"counters": counters}


def asked(folder: Path, *regions: dict[str, Any], **facts: Any) -> CountersRequest:
    file = folder / "1.json"
    file.write_bytes(content({}, *regions, **{"version": VERSION, **facts}))
    return CountersRequest(kernel="image:a", files=(file,))


def checked(
    folder: Path, request: CountersRequest, lab: type[CountingLab] = CountingLab
) -> CountersReport:
    with Store.open(folder / "store") as store:
        return asyncio.run(run_counters(request, lab(store)))


def test_what_agrees_and_what_does_not(tmp_path: Path) -> None:
    regions = (as_counted("getppid"), as_counted("open-close", 0.2))
    report = checked(tmp_path, asked(tmp_path, *regions, cpu_flags="erms pti"))
    getppid, opened = report.operations
    assert (getppid.region, getppid.agrees) == ("getppid", True)
    assert (opened.region, opened.agrees) == ("open-close", False)
    assert opened.left == pytest.approx(0.2 * opened.exact.kernel, rel=0.2)
    assert report.more_flags == ("pti",)
    assert report.fewer_flags == ()
    assert len(report.kernel.runs) == 4
    assert any("operation no-op" in one for one in report.warnings)


def test_operations_that_are_asked_for(tmp_path: Path) -> None:
    request = asked(tmp_path, as_counted("getppid"), as_counted("open-close"))
    only = msgspec.structs.replace(request, operations=("open-close",))
    assert [one.region for one in checked(tmp_path, only).operations][-1] == "open-close"
    with pytest.raises(UserError, match="stat was not counted"):
        checked(tmp_path, msgspec.structs.replace(request, operations=("stat",)))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"release": "6.1.0"}, "1.json is of 6.1.0, and image:a is 6.12.0"),
        ({"machine": "aarch64"}, "1.json is of aarch64, and image:a is for x86_64"),
        (
            {"version": "Linux version 6.12.0 #1 SMP Sat"},
            "another build than image:a: SMP Sat, not SMP Fri",
        ),
    ],
)
def test_runs_of_another_kernel_refused(facts: dict[str, str], words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words):
        checked(tmp_path, asked(tmp_path, as_counted("getppid"), **facts))


def test_files_of_two_kernels_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    one = asked(tmp_path, as_counted("getppid"))
    other = asked(tmp_path / "other", as_counted("getppid"), build_id="c" * 40)
    both = msgspec.structs.replace(one, files=(*one.files, tmp_path / "other"))
    with pytest.raises(UserError, match="is of another kernel or workload than"):
        checked(tmp_path, both)
    assert len(checked(tmp_path, other).operations) == 1


def test_nothing_counted_refused_before_a_kernel_is_obtained(tmp_path: Path) -> None:
    class NoLab(CountingLab):
        def kernel(self, spec: str) -> Kernel | NoKernel:
            raise AssertionError(spec)

    request = asked(tmp_path, region("getppid", 1.0, counter_errno=errno.ENOENT))
    with pytest.raises(UserError, match="shows no counters"):
        checked(tmp_path, request, NoLab)


def test_exact_runs_that_fail(tmp_path: Path) -> None:
    class FailingLab(CountingLab):
        status = RunStatus.TIMED_OUT

    with pytest.raises(LabError, match=r"6\.12\.0 was not counted: timed-out"):
        checked(tmp_path, asked(tmp_path, as_counted("getppid")), FailingLab)


def test_without_files_the_bundle_runs_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = asked(tmp_path, as_counted("getppid"))
    seen: list[str] = []
    program = script(tmp_path, 'echo "$@" >words; cat 1.json')

    def bundle(name: str, names: tuple[str, ...], _: object) -> TimedProgram:
        seen.extend((name, *names))
        return program

    monkeypatch.setattr(study, "bundle_here", bundle)
    here = msgspec.structs.replace(request, files=(), operations=("getppid",))
    report = checked(tmp_path, here)
    assert seen == ["syscalls", "getppid"]
    assert (tmp_path / "words").read_text() == "no-op\n"
    assert json.loads(msgspec.json.encode(report.machine))["release"] == "6.12.0"


def test_faults_switches_and_charges_of_exact_runs() -> None:
    functions = {
        own("handle_mm_fault"): 400,
        own("finish_task_switch.isra.0"): 60,
        own("obj_cgroup_charge"): 20,
        own("mod_objcg_state"): 10,
        user("main", "bundle"): 30,
    }
    plain = synthetic_region("stat", functions, 10)
    called = tuple(
        msgspec.structs.replace(row, calls=20 if "switch" in row.name else 10)
        for row in plain.functions
    )
    found = study._count_of([msgspec.structs.replace(plain, functions=called)])
    assert (found.user, found.kernel) == (3.0, 49.0)
    assert (found.faults, found.switches, found.group) == (1.0, 2.0, 3.0)
