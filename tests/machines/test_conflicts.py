# SPDX-License-Identifier: GPL-2.0-or-later
"""What two CPUs contend for on real kernels: known lines, repetition, and a search by brute force.

The reference is a plugin of its own, which writes down every access; nothing of it is shared with
what is tested.
"""

import functools
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from kdelta.counts.btf import KernelTypes
from kdelta.counts.conflict_file import read_conflicts, read_raw
from kdelta.counts.conflicts import Conflicts
from kdelta.counts.model import RunCounts, merged_regions
from kdelta.counts.raw import Sources, read_region
from kdelta.counts.symbols import code_table, parse_symbols
from kdelta.guests.job import Job, JobFile
from kdelta.host.emulator import find_qemu
from kdelta.host.native import native_folder
from kdelta.host.target import target
from kdelta.infer.effects.same import partings
from kdelta.machines import tcg
from kdelta.machines.chunks import read_chunks
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.tcg import NOTHING_MORE, Guest, Recording
from kdelta.workloads.catalog import build_workload, find_workload
from tests.machines.bench import NEW, OLD, compiler, counts_of, guest, run_job
from tests.machines.every_access import LINE, Lines, Use, by_region
from tests.machines.stress import stressed
from tests.native.conftest import compile_c

pytestmark = pytest.mark.guest

PAIRS = find_workload("pairs")
CONFLICTS = Recording(conflicts=True)
NOT_BLOCKING = (
    *("getppid-processes", "getrusage-threads", "stat-same-file", "stat-two-files"),
    *("open-close-same-file", "open-close-two-files", "create-unlink-same-folder"),
    *("readdir-same-folder", "lock-same-file", "fstat-same-descriptor", "lseek-same-descriptor"),
    *("pread-same-file", "pwrite-same-file", "dup-close-threads", "eventfd-same-counter"),
    *("epoll-wait-same-set", "poll-same-pipe", "mmap-munmap-threads", "page-fault-new-threads"),
    *("signal-self-processes", "socket-close-processes"),
)
"""More than 20 pairs whose CPUs do not wait for each other, so that few other tasks run."""


@functools.cache
def program() -> Path:
    return build_workload(PAIRS, by=compiler("x86_64"))


def run_pairs(
    *names: str, where: Guest, recording: Recording = CONFLICTS
) -> tuple[GuestOutcome, RunCounts]:
    file = JobFile(program(), PAIRS.program, 0o755)
    job = Job(argv=(PAIRS.program, "--clock", *names), files=(file,))
    outcome = run_job(job, where, recording=recording)
    return outcome, counts_of(outcome, {"pairs": program().read_bytes()})


def conflicts(outcome: GuestOutcome) -> dict[str, Conflicts]:
    assert outcome.counts
    assert outcome.symbols
    sources = Sources(outcome.symbols, outcome.messages.get("modules", b""))
    return {one.region: one for one in read_conflicts(outcome.counts, sources)}


def fields(found: Conflicts) -> set[str]:
    return {one.place for line in found.steady for one in line.fields}


def test_one_file_is_contended_for_and_two_are_not() -> None:
    """A lookup of the last part of a path takes a reference, whose count and lock are one word."""
    outcome, counts = run_pairs("stat-two-files", "stat-same-file", where=guest(NEW, cpus=2))
    found = conflicts(outcome)
    assert found["stat-two-files"].steady == ()
    (line,) = found["stat-same-file"].steady
    assert line.name == "dentry.d_lockref.lock"
    assert (line.is_true, line.count) == (True, 1)
    assert {use.function for use in line.uses} == {"lockref_get_not_dead", "lockref_put_return"}
    assert all(one.locked >= 2 * 400 for one in line.cpus)
    # Not because one of them does less.
    own = {name: one.median_own_insns() for name, one in merged_regions(counts).items()}
    assert own["stat-same-file"] == own["stat-two-files"]
    assert {region.idle_ticks() for region in counts.regions} == {0}


@pytest.mark.slow
@pytest.mark.parametrize("cpus", [2, 4])
@pytest.mark.parametrize("spec", [OLD, NEW])
def test_conflicts_change_no_counts_and_repeat(spec: str, cpus: int) -> None:
    names = tuple(one.name for one in PAIRS.operations)
    where = guest(spec, cpus=cpus)
    _, plain = run_pairs(*names, where=where, recording=NOTHING_MORE)
    first, counts = run_pairs(*names, where=where)
    assert list(partings(plain, counts)) == []
    with stressed("all"):
        second, _ = run_pairs(*names, where=where)
    assert conflicts(first) == conflicts(second)
    assert {region.idle_ticks() for region in counts.regions} == {0}


@pytest.mark.slow
def test_page_faults_of_threads_take_no_mmap_lock_since_locks_of_areas() -> None:
    """Linux 6.4 brought CONFIG_PER_VMA_LOCK."""
    found = {}
    for spec in (OLD, NEW):
        outcome, _ = run_pairs("page-fault-new-threads", where=guest(spec, cpus=2))
        found[spec] = fields(conflicts(outcome)["page-fault-new-threads"])
    assert "mm_struct.mmap_lock.count" in found[OLD]
    assert "mm_struct.mmap_lock.count" not in found[NEW]


KNOWN = {
    "stat-same-file": "dentry.d_lockref.lock",
    "fstat-same-descriptor": "file.f_count",
    "lseek-same-descriptor": "file.f_pos_lock.owner",
    "pwrite-same-file": "shmem_inode_info.vfs_inode.i_rwsem.count",
    "dup-close-threads": "files_struct.file_lock",
    "mmap-munmap-threads": "mm_struct.mmap_lock.count",
    "page-fault-same-file": "page._refcount",
    "signal-self-threads": "sighand_struct.siglock",
}
"""Lines that are known to be contended for where an object is shared."""


@pytest.mark.slow
def test_lines_that_are_known_are_named() -> None:
    outcome, _ = run_pairs(*KNOWN, where=guest(NEW, cpus=2))
    found = conflicts(outcome)
    assert {name: field for name, field in KNOWN.items() if field in fields(found[name])} == KNOWN


@pytest.mark.slow
def test_a_kernel_without_types_has_lines_by_symbol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdelta.counts.conflict_file.KernelTypes", lambda _: None)
    outcome, _ = run_pairs("stat-same-file", where=guest(NEW, cpus=2))
    (line,) = conflicts(outcome)["stat-same-file"].steady
    assert line.name == "dentry+0x80 by lockref_put_return"


@pytest.mark.slow
def test_names_are_known_where_user_code_has_no_mapping_of_the_kernel() -> None:
    """A region begins in user code."""
    outcome, _ = run_pairs("stat-same-file", where=guest(NEW, "pti=on", cpus=2))
    (line,) = conflicts(outcome)["stat-same-file"].steady
    assert line.name == "dentry.d_lockref.lock"


@pytest.mark.slow
@pytest.mark.parametrize("spec", [OLD, NEW])
def test_lines_are_those_of_every_access(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = compile_c(
        tmp_path / "accesses.so",
        [Path(__file__).parent / "accesses" / "accesses.c"],
        *("-shared", "-fPIC", f"-I{native_folder() / 'plugin'}"),
        f"-DPLUGIN_API={find_qemu(target('x86_64'), '').plugin_apis[1]}",
    )
    written = tmp_path / "accesses"
    line_of = tcg.qemu_argv

    def with_another(*args: object, **kwargs: object) -> list[str]:
        argv = line_of(*args, **kwargs)  # type: ignore[arg-type]
        return [*argv, "-plugin", f"{plugin},out={written}"]

    where = guest(spec, cpus=2)
    run_pairs("getppid-processes", where=where)  # its snapshot is there from now on
    monkeypatch.setattr(tcg, "qemu_argv", with_another)
    outcome, _ = run_pairs(*NOT_BLOCKING, where=where)
    assert outcome.counts
    assert outcome.symbols
    code = code_table(parse_symbols(outcome.symbols.read_bytes()))
    reference, checked, readers = by_region(written, code), 0, 0
    name, iterations = "", 0
    for tag, payload in read_chunks(outcome.counts):
        if tag == b"REGN":
            region = read_region(payload)
            name, iterations = region.name, len(region.iterations)
        elif tag == b"CNFL":
            found, written_down = lines_of(payload), reference[checked]
            ours, theirs = (steady(lines, iterations) for lines in (found, written_down))
            assert ours == theirs, name
            readers += must_be_the_same(found, written_down, iterations)
            checked += 1
    assert checked == len(NOT_BLOCKING)
    assert sum(bool(steady(one, 100)) for one in reference) > len(NOT_BLOCKING) / 2
    assert readers > 100


def must_be_the_same(found: Lines, reference: Lines, iterations: int) -> int:
    """Compare which instructions access which bytes of lines that are contended for, how often and
    on which CPU; return how many of them only read. The reference has CPUs by other numbers.
    """
    lines = steady(found, iterations).keys()
    ours, theirs = (
        {
            (at, use): done
            for (at, _), uses in every.items()
            if at in lines and is_steady(by_cpu(uses), iterations)
            for use, done in uses.items()
        }
        for every in (found, reference)
    )
    first, second = (sorted({cpu for _, (_, cpu) in uses}) for uses in (ours, theirs))
    by_number = [
        {(at, (insn, numbers[cpu])): done for (at, (insn, cpu)), done in theirs.items()}
        for order in itertools.permutations(first)
        if len(order) == len(second)
        for numbers in [dict(zip(second, order, strict=True))]
    ]
    assert not ours or ours in by_number
    return sum(not writes for _, writes, _ in ours.values())


def lines_of(payload: memoryview) -> Lines:
    """What was found."""
    raw = read_raw(payload)
    vaddr = {int(row["number"]): int(row["vaddr"]) for row in raw.lines}
    found: dict[tuple[int, int], dict[Use, list[int]]] = {}
    for row in raw.accesses:
        number = int(row["line"])
        use = int(row["insn"]), int(row["cpu"])
        done = found.setdefault((vaddr[number], number), {}).setdefault(use, [0, 0, 0])
        done[0] += int(row["reads"])
        done[1] += int(row["writes"])
        done[2] |= int(row["bytes_read"]) | int(row["bytes_written"])
    return found


def steady(lines: Lines, iterations: int) -> dict[int, list[int]]:
    """Lines of which one CPU writes and another one accesses in half of the iterations; with reads
    and writes of both CPUs, the least first.
    """
    return {
        line: sorted(count for one in done.values() for count in one)
        for (line, _), uses in lines.items()
        for done in [by_cpu(uses)]
        if is_steady(done, iterations)
    }


def is_steady(done: Mapping[int, list[int]], iterations: int) -> bool:
    """Whether one CPU writes and another one accesses, by reads and writes of each."""
    return any(
        2 * one[1] >= iterations and 2 * sum(other) >= iterations
        for at, one in done.items()
        for number, other in done.items()
        if number != at
    )


def by_cpu(uses: Mapping[Use, list[int]]) -> dict[int, list[int]]:
    """Reads and writes."""
    found: dict[int, list[int]] = {}
    for (_, cpu), (reads, writes, _) in uses.items():
        done = found.setdefault(cpu, [0, 0])
        done[0] += reads
        done[1] += writes
    return found


NEAR = (
    *("getrusage-threads", "stat-same-file", "open-close-same-file", "fstat-same-descriptor"),
    *("lseek-same-descriptor", "pread-same-descriptor", "readdir-same-folder", "poll-same-pipe"),
    *("eventfd-same-counter", "futex-ping-pong-across", "page-fault-threads"),
    "thread-create-join-threads",
)
"""Pairs in which fields are read in lines that are contended for."""


@pytest.mark.slow
@pytest.mark.parametrize("spec", [OLD, NEW])
def test_fields_of_a_line_lie_in_one_by_their_offsets(spec: str) -> None:
    """The offsets are those of the kernel's description of its types, read member by member."""
    outcome, _ = run_pairs(*NEAR, where=guest(spec, cpus=2))
    assert outcome.counts
    types = KernelTypes(
        next(bytes(of) for tag, of in read_chunks(outcome.counts) if tag == b"BTF ")
    )
    checked = 0
    for name, found in conflicts(outcome).items():
        for line in found.steady:
            if line.where not in {"object", "page"} or any(one.skew_bytes for one in line.fields):
                continue
            paths = [
                one.place.replace("?", "").partition("/")[0].split(".")
                for one in line.fields
                if "." in one.place and "[" not in one.place
            ]
            offsets = {
                offset_of(types, number, path)
                for struct, *path in paths
                if (number := types.struct(struct))
            }
            assert len({one // LINE for one in offsets}) <= 1, (name, paths, offsets)
            checked += len(offsets) > 1
    assert checked > 10
    near = {
        one.place: one.function
        for line in conflicts(outcome)["thread-create-join-threads"].steady
        if any(one.place == "mm_struct.mm_count" for one in line.fields)
        for one in line.fields
        if one.is_neighbor
    }
    reader = near.get("mm_struct.membarrier_state", "")
    assert reader.startswith("finish_task_switch") == (spec == OLD)


def offset_of(types: KernelTypes, number: int, path: Sequence[str]) -> int:
    """Where a field is, member by member."""
    for one in types.members(number) if path else ():
        if one.name == path[0]:
            return one.offset_bytes + offset_of(types, one.type, path[1:])
        if not one.name and has(types, one.type, path[0]):
            return one.offset_bytes + offset_of(types, one.type, path)
    assert not path
    return 0


def has(types: KernelTypes, number: int, name: str) -> bool:
    return any(
        one.name == name or (not one.name and has(types, one.type, name))
        for one in types.members(number)
    )
