# SPDX-License-Identifier: GPL-2.0-or-later
"""Conflicts of two CPUs that are planted in 40 commits of a real kernel are found by bisect; what
moves code or data otherwise is not.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.host.command import quiet
from kdelta.infer.effects.estimate import Estimate
from kdelta.kernels.sources.source import Source, source_file, source_of
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.spec.kernel import SourceSpec, parse_kernel_spec
from kdelta.spec.run import MachineOptions
from kdelta.store.store import Store
from kdelta.studies.bisect.model import BisectReport
from kdelta.studies.bisect.request import BisectRequest
from kdelta.studies.bisect.study import run_bisect
from tests.kernels.git_trees import git

pytestmark = [pytest.mark.guest, pytest.mark.build, pytest.mark.slow]

SPEC = "deb-src:linux-source-6.12"
PAIR = "getppid-processes"
FILE = "kernel/sys.c"
CALL = "SYSCALL_DEFINE0(getppid)\n{\n\tint pid;\n\n"
COMMITS = 40

ALL_CPUS, EACH_CPU, ONE_LINE, FLUSH, OF_FIRST = 10, 17, 24, 31, 36
PLANTED = {
    ALL_CPUS: ("unsigned long planted_calls ____cacheline_aligned_in_smp;", "planted_calls++;"),
    EACH_CPU: (
        "DEFINE_PER_CPU(unsigned long, planted_own_calls);",
        "this_cpu_inc(planted_own_calls);",
    ),
    ONE_LINE: (
        "struct { unsigned long of[NR_CPUS]; } planted_slots ____cacheline_aligned_in_smp;",
        "planted_slots.of[raw_smp_processor_id()]++;",
    ),
    FLUSH: ("#include <asm/tlbflush.h>", "flush_tlb_all();"),
    OF_FIRST: (
        "DEFINE_PER_CPU_ALIGNED(unsigned long, planted_first_calls);",
        "per_cpu(planted_first_calls, 0)++;",
    ),
}
"""By its number what a commit declares, and what getppid does since."""

MOVES: tuple[Callable[[int], str], ...] = (
    lambda n: f"int moved_{n}(void) {{ return {n}; }}",
    lambda n: f"unsigned long moved_{n}[{n}] = {{ 1 }};",
    lambda n: f"unsigned long moved_{n}[{n}];",
    lambda n: f"DEFINE_PER_CPU(unsigned long, moved_{n});",
    lambda n: f"unsigned long moved_{n} __read_mostly = {n};",
    lambda n: f"char moved_{n}[{n}] ____cacheline_aligned_in_smp;",
)
"""What moves code, data, or variables of each CPU, before getppid and its counters."""


def planted_text(text: str, number: int) -> str:
    """The file after so many commits."""
    assert text.count(CALL) == 1
    numbers = range(1, number + 1)
    before = [PLANTED[n][0] if n in PLANTED else MOVES[n % len(MOVES)](n) for n in numbers]
    done = [PLANTED[n][1] for n in numbers if n in PLANTED]
    work = "".join(f"\t{line}\n" for line in done)
    return text.replace(CALL, "\n".join(before) + "\n\n" + CALL + work)


@pytest.fixture(scope="module")
def source() -> Source:
    spec = parse_kernel_spec(SPEC)
    assert isinstance(spec, SourceSpec)
    found = source_of(spec, quiet)
    assert isinstance(found, Source)
    return found


@pytest.fixture
def repository(source: Source, tmp_path: Path) -> Path:
    """A history of 40 commits on the kernel, which shares that one's objects."""
    folder = tmp_path / "linux"
    git(tmp_path, "init", "-q", "-b", "main", str(folder))
    objects = source.folder / "git/objects"
    (folder / ".git/objects/info/alternates").write_text(f"{objects}\n")
    text = source_file(source, FILE)
    assert text is not None
    (folder / FILE).parent.mkdir()
    git(folder, "read-tree", source.tree)
    parents: list[str] = []
    for number in range(COMMITS + 1):
        (folder / FILE).write_text(planted_text(text, number))
        git(folder, "update-index", "--cacheinfo", f"100644,{_blob(folder)},{FILE}")
        tree = git(folder, "write-tree").strip()
        subject = f"sys: {'planted' if number in PLANTED else 'moved'} {number}"
        made = git(folder, "commit-tree", tree, "-m", subject, *parents).strip()
        parents = ["-p", made]
    git(folder, "update-ref", "refs/heads/main", parents[1])
    return folder


def _blob(folder: Path) -> str:
    return git(folder, "hash-object", "-w", FILE).strip()


def conflicts_of(report: BisectReport) -> dict[str, Estimate]:
    """The effects on conflicts, by the subjects of the commits that have them."""
    name = f"{PAIR} (conflicts)"
    return {
        one.commit.subject: one.effects[name]
        for one in report.found
        if one.effects.get(name) and one.effects[name].value
    }


@pytest.mark.timeout(4 * 3600)
def test_planted_conflicts_are_found_and_nothing_else(repository: Path, store: Store) -> None:
    request = BisectRequest(
        repository=str(repository),
        range=f"main~{COMMITS}..main",
        workloads=("pairs",),
        operations=(PAIR,),
        lab=LabRequest(machine=MachineOptions(cpus=2)),
    )
    report = asyncio.run(run_bisect(request, Lab(store, Silent())))
    assert not report.failure
    found = conflicts_of(report)
    assert set(found) == {f"sys: planted {n}" for n in (ALL_CPUS, ONE_LINE, FLUSH, OF_FIRST)}
    # Both CPUs read and write once, whether it is one variable or only one line. What both flush
    # later varies by some accesses, and so does what is counted on top of it.
    for number in (ALL_CPUS, ONE_LINE):
        assert found[f"sys: planted {number}"].exact
        assert found[f"sys: planted {number}"].value == 4
    assert all(one.value > 0 for one in found.values())
    reasons = {
        one.commit.subject: effect.reason
        for one in report.found
        for by in one.measured
        for effect in by.effects
        if by.measure == "conflicts"
    }
    # The small kernel has no names of variables (CONFIG_KALLSYMS_ALL).
    assert reasons["sys: planted 10"] == "+unknown memory by __x64_sys_getppid"
    assert all(reasons[subject] for subject in found)
    # A counter of each CPU costs instructions, and contends for nothing.
    assert "sys: planted 17" in {one.commit.subject for one in report.found}
    assert not report.groups
