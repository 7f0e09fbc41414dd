# SPDX-License-Identifier: GPL-2.0-or-later
"""Conflicts of two CPUs that are planted in 40 commits of a real kernel are found by bisect; what
moves code or data otherwise is not.
"""

import asyncio
import shutil
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

import pytest

from kdelta.host.command import quiet
from kdelta.infer.conflicts.changes import Contention
from kdelta.infer.effects.estimate import Estimate
from kdelta.kernels.sources.source import Source, source_file, source_of
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.measures.conflicts.words import because
from kdelta.spec.kernel import SourceSpec, parse_kernel_spec
from kdelta.spec.run import MachineOptions
from kdelta.store.store import Store
from kdelta.studies.bisect.model import BisectReport
from kdelta.studies.bisect.request import BisectRequest
from kdelta.studies.bisect.study import run_bisect
from kdelta.studies.conflicts.study import ConflictsRequest, run_conflicts
from tests.kernels.git_trees import git

pytestmark = [pytest.mark.guest, pytest.mark.build, pytest.mark.slow]

SPEC = "deb-src:linux-source-6.12"
PAIR = "getppid-processes"
FILE = "kernel/sys.c"
CALL = "SYSCALL_DEFINE0(getppid)\n{\n\tint pid;\n\n"
COMMITS = 40
CHANGES = ("+CONFIG_DEBUG_KERNEL=y", "+CONFIG_KALLSYMS_ALL=y")  # names of variables

Planted = Mapping[int, tuple[str, str]]

LOCK, ALL_CPUS, EACH_CPU, ONE_LINE, SPLIT, FLUSH, OF_FIRST = 5, 10, 17, 24, 28, 31, 36
TAKES = "{ spinlock_t *one = &planted_locks[PLANTED_LOCK].lock; spin_lock(one); spin_unlock(one); }"
PLANTED = {
    LOCK: (
        (
            "static struct { spinlock_t lock; } ____cacheline_aligned_in_smp planted_locks[2];\n"
            "#define PLANTED_LOCK 0"
        ),
        TAKES,
    ),
    ALL_CPUS: ("unsigned long planted_calls ____cacheline_aligned_in_smp;", "planted_calls++;"),
    EACH_CPU: (
        "DEFINE_PER_CPU(unsigned long, planted_own_calls);",
        "this_cpu_inc(planted_own_calls);",
    ),
    ONE_LINE: (
        "struct { unsigned long of[NR_CPUS]; } planted_slots ____cacheline_aligned_in_smp;",
        "planted_slots.of[raw_smp_processor_id()]++;",
    ),
    SPLIT: ("#undef PLANTED_LOCK\n#define PLANTED_LOCK (raw_smp_processor_id() & 1)", ""),
    FLUSH: ("#include <asm/tlbflush.h>", "flush_tlb_all();"),
    OF_FIRST: (
        "DEFINE_PER_CPU_ALIGNED(unsigned long, planted_first_calls);",
        "per_cpu(planted_first_calls, 0)++;",
    ),
}
"""By its number what a commit declares, and what getppid does since. SPLIT is one lock that becomes
one of each CPU.
"""

READ_COMMITS, STATE, MOVED = 21, 1, 13
READ = {
    STATE: (
        ("unsigned long planted_state[16] ____cacheline_aligned_in_smp;\n#define PLANTED_MODE 8"),
        "planted_state[0]++; READ_ONCE(planted_state[PLANTED_MODE]);",
    ),
    MOVED: ("#undef PLANTED_MODE\n#define PLANTED_MODE 1", ""),
}
"""A field that is only read, in the line after that of one that all CPUs write, and then in it."""

MOVES: tuple[Callable[[int], str], ...] = (
    lambda n: f"int moved_{n}(void) {{ return {n}; }}",
    lambda n: f"unsigned long moved_{n}[{n}] = {{ 1 }};",
    lambda n: f"unsigned long moved_{n}[{n}];",
    lambda n: f"DEFINE_PER_CPU(unsigned long, moved_{n});",
    lambda n: f"unsigned long moved_{n} __read_mostly = {n};",
    lambda n: f"char moved_{n}[{n}] ____cacheline_aligned_in_smp;",
)
"""What moves code, data, or variables of each CPU, before getppid and its counters."""


def planted_text(text: str, number: int, planted: Planted) -> str:
    """The file after so many commits."""
    assert text.count(CALL) == 1
    numbers = range(1, number + 1)
    before = [planted[n][0] if n in planted else MOVES[n % len(MOVES)](n) for n in numbers]
    done = [planted[n][1] for n in numbers if n in planted]
    work = "".join(f"\t{line}\n" for line in done)
    return text.replace(CALL, "\n".join(before) + "\n\n" + CALL + work)


@pytest.fixture(scope="module")
def source() -> Source:
    spec = parse_kernel_spec(SPEC)
    assert isinstance(spec, SourceSpec)
    found = source_of(spec, quiet)
    assert isinstance(found, Source)
    return found


def history(source: Source, above: Path, planted: Planted, commits: int) -> Path:
    """A history on the kernel, which the cache may drop meanwhile, in a folder below that one."""
    folder = above / "linux"
    git(above, "init", "-q", "-b", "main", str(folder))
    shutil.copytree(source.folder / "git/objects", folder / ".git/objects", dirs_exist_ok=True)
    text = source_file(source, FILE)
    assert text is not None
    (folder / FILE).parent.mkdir()
    git(folder, "read-tree", source.tree)
    parents: list[str] = []
    for number in range(commits + 1):
        (folder / FILE).write_text(planted_text(text, number, planted))
        git(folder, "update-index", "--cacheinfo", f"100644,{_blob(folder)},{FILE}")
        tree = git(folder, "write-tree").strip()
        subject = f"sys: {'planted' if number in planted else 'moved'} {number}"
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


def bisected(repository: Path, commits: int, store: Store) -> BisectReport:
    """Of the last so many commits."""
    request = BisectRequest(
        repository=str(repository),
        range=f"main~{commits}..main",
        changes=CHANGES,
        workloads=("pairs",),
        operations=(PAIR,),
        lab=LabRequest(machine=MachineOptions(cpus=2)),
    )
    report = asyncio.run(run_bisect(request, Lab(store, Silent())))
    assert not report.failure
    return report


def reasons_of(report: BisectReport) -> dict[str, str]:
    """Why conflicts differ, by the commits' numbers."""
    return {
        one.commit.subject.rpartition(" ")[2]: effect.reason
        for one in report.found
        for by in one.measured
        for effect in by.effects
        if by.measure == "conflicts"
    }


READER = "planted_state+0x8 (read 2 times by __x64_sys_getppid, next to planted_state)"


@pytest.mark.timeout(2 * 3600)
def test_a_field_that_is_read_in_a_line_that_became_written_is_found(
    source: Source, tmp_path: Path, store: Store
) -> None:
    repository = history(source, tmp_path, READ, READ_COMMITS)
    report = bisected(repository, READ_COMMITS - STATE, store)
    found = conflicts_of(report)
    assert {subject: one.value for subject, one in found.items()} == {f"sys: planted {MOVED}": 2}
    assert reasons_of(report)[str(MOVED)] == f"+{READER}"
    assert not report.groups
    ends = (f"git:{repository}@main~{READ_COMMITS - STATE}", f"git:{repository}@main")
    kernels = tuple(" +".join((end, *(one[1:] for one in CHANGES))) for end in ends)
    request = ConflictsRequest(kernels=kernels, operations=(PAIR,))
    (change,) = asyncio.run(run_conflicts(request, Lab(store, Silent()))).changes
    assert change.contention is Contention.MORE
    assert because(change) == f"+{READER}"


@pytest.mark.timeout(4 * 3600)
def test_planted_conflicts_are_found_and_nothing_else(
    source: Source, tmp_path: Path, store: Store
) -> None:
    report = bisected(history(source, tmp_path, PLANTED, COMMITS), COMMITS, store)
    found = conflicts_of(report)
    contended = (LOCK, ALL_CPUS, ONE_LINE, SPLIT, FLUSH, OF_FIRST)
    assert set(found) == {f"sys: planted {n}" for n in contended}
    # Each CPU takes the lock by a read and a write, and gives it back by a write. Of a counter it
    # reads and writes once, whether it is one variable or only one line, and one access in
    # thousands is one to something else.
    values = {number: found[f"sys: planted {number}"].value for number in contended}
    assert values[LOCK] == -values[SPLIT] == 6
    assert all(abs(values[n] - 4) < Fraction(1, 100) for n in (ALL_CPUS, ONE_LINE, OF_FIRST))
    assert values[FLUSH] > 4
    reasons = reasons_of(report)
    assert "function call interrupts" in reasons.pop(str(FLUSH))
    assert reasons == {
        str(LOCK): "+planted_locks",
        str(ALL_CPUS): "+planted_calls",
        str(EACH_CPU): "",
        str(ONE_LINE): "+planted_slots and +planted_slots+0x8 by __x64_sys_getppid",
        str(SPLIT): "-planted_locks",
        str(OF_FIRST): "+planted_first_calls",
    }
    assert not report.groups
