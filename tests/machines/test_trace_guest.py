# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces of a real kernel: they agree with the counters, repeat, and are cut at their limit."""

import asyncio
import functools
import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from kdelta.counts.model import CONTEXTS, RunCounts
from kdelta.counts.trace import DATA, Trace
from kdelta.counts.trace_file import read_traces
from kdelta.guests.job import Job, JobFile, job_archive
from kdelta.host.native import native_folder
from kdelta.infer.effects.same import partings
from kdelta.lab.lab import Lab, RunResult, traces_of
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest, Program
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.machines.tcg import Recording, run_guest
from kdelta.spec.errors import LabError
from kdelta.store.store import Store
from kdelta.studies.run.request import RunRequest
from kdelta.studies.run.study import run_command
from kdelta.workloads.catalog import find_workload
from tests.machines.bench import OLD, counts_of, guest, new_setting, process_folder, syscalls_job

pytestmark = pytest.mark.guest

CHEAP = ("getppid", "open-close", "page-fault", "pipe-round-trip", "read-zero-64k")
TRACED = Recording("on")


def _outcome(words: tuple[str, ...], recording: Recording) -> GuestOutcome:
    return _outcome_of(syscalls_job(*words), recording)


def _outcome_of(job: Job, recording: Recording) -> GuestOutcome:
    where = guest()

    async def go() -> GuestOutcome:
        snapshot = await obtain_snapshot(where, new_setting())
        assert not isinstance(snapshot, GuestOutcome)
        setting = msgspec.structs.replace(new_setting(), recording=recording)
        return await run_guest(where, job_archive(job), setting, snapshot)

    return asyncio.run(go())


@functools.cache
def _traced(*words: str) -> tuple[RunCounts, tuple[Trace, ...]]:
    outcome = _outcome(words, TRACED)
    counts = counts_of(outcome)
    assert outcome.counts
    return counts, read_traces(outcome.counts)


def _pieces(trace: Trace, context: int) -> Iterator[int]:
    for piece in trace.sequence[trace.contexts == context]:
        yield from trace.items[int(trace.starts[piece]) : int(trace.starts[piece + 1])]


@pytest.mark.slow
def test_a_trace_executes_what_the_counters_counted() -> None:
    """Reading compares them block by block; here the sums, which that comparison implies."""
    counts, traces = _traced(*CHEAP)
    assert [trace.region for trace in traces] == [region.name for region in counts.regions]
    for region, trace in zip(counts.regions, traces, strict=True):
        assert trace.iterations == region.iteration_count
        assert not trace.truncated
        for context, name in enumerate(CONTEXTS):
            counted = region.cost(name).insns
            # Whole blocks: more by what faults left, less by silent string operations.
            assert trace.executed_insns(context) == pytest.approx(counted, rel=0.02, abs=64)


def test_where_nothing_faults_the_sums_part_only_at_the_marks() -> None:
    counts, traces = _traced(*CHEAP)
    region, trace = next(
        (region, trace)
        for region, trace in zip(counts.regions, traces, strict=True)
        if region.name == "getppid"
    )
    excess = trace.executed_insns() - region.executed_insns()
    ends = [next(_pieces(trace, 0)), trace.items[int(trace.starts[trace.sequence[-1] + 1]) - 1]]
    assert 0 < excess < sum(int(trace.insns[block]) for block in ends)


@pytest.mark.slow
def test_every_operation_agrees_and_is_small() -> None:
    counts, traces = _traced(*find_workload("syscalls").arguments)
    assert {trace.region for trace in traces} == {region.name for region in counts.regions}
    for trace in traces:
        assert len(trace.items) < 200_000
        assert 10 * len(trace.sequence) < trace.executions().sum() + 100


def test_code_follows_itself() -> None:
    """Not every block ends with a jump that is taken: many go on at the next address."""
    _, traces = _traced(*CHEAP)
    trace = next(trace for trace in traces if trace.region == "getppid")
    blocks = list(_pieces(trace, 0))[:5000]
    ends = trace.addresses + trace.sizes
    follows = sum(
        int(trace.addresses[after]) == int(ends[block])
        for block, after in itertools.pairwise(blocks)
    )
    assert follows > len(blocks) / 4


def test_traces_repeat_and_leave_the_counts_alone() -> None:
    first_counts, first = _traced(*CHEAP)
    outcome = _outcome(CHEAP, TRACED)
    assert outcome.counts
    assert read_traces(outcome.counts) == first
    plain = _outcome(CHEAP, Recording())
    assert plain.counts
    assert read_traces(plain.counts) == ()
    assert list(partings(counts_of(plain), first_counts)) == []


@pytest.mark.slow
def test_a_limit_is_kept_and_said() -> None:
    whole_counts, whole = _traced("getppid", "mmap-munmap")
    limit = len(whole[1].items) - 1
    assert len(whole[0].items) < limit
    outcome = _outcome(("getppid", "mmap-munmap"), Recording("on", trace_limit=limit))
    counts = counts_of(outcome)
    assert outcome.counts
    getppid, cut = read_traces(outcome.counts)
    assert (getppid.truncated, cut.truncated) == (False, True)
    assert getppid == whole[0]
    assert 0 < len(cut.items) <= limit
    assert 0 < cut.executions().sum() < whole[1].executions().sum()
    assert any("trace" in warning and "mmap-munmap" in warning for warning in counts.warnings)
    assert counts.regions == whole_counts.regions


@pytest.mark.slow
def test_a_stored_run_is_made_again_when_it_lacks_what_is_asked_for(tmp_path: Path) -> None:
    """What it records is no part of what makes it that run."""
    with Store.open(tmp_path / "store") as store:

        def stored(**recorded: Any) -> RunResult:
            lab = LabRequest(perturbations=1, **recorded)
            request = RunRequest(kernel=OLD, program=Program(("true",), find=False), lab=lab)
            return asyncio.run(run_command(request, Lab(store, Silent())))[0]

        plain, traced = stored(), stored(trace=True)
        assert not plain.stored
        assert not traced.stored
        assert traced.run.key == plain.run.key
        (trace,) = traces_of(store, traced.run)
        assert (trace.region, trace.truncated) == ("command", False)
        with pytest.raises(LabError, match="was not traced"):
            traces_of(store, plain.run)
        assert stored(trace=True).stored
        assert stored().stored
        data = stored(data_lines=True)
        assert not data.stored
        assert traces_of(store, data.run)[0].data_virtual is not None
        assert stored(trace=True).stored


def _lines(trace: Trace) -> dict[tuple[int, bool], set[int]]:
    """By virtual address of a line, and whether it was stored to: its physical addresses."""
    assert trace.data_virtual is not None
    assert trace.data_physical is not None
    assert trace.data_stores is not None
    found: dict[tuple[int, bool], set[int]] = {}
    rows = (trace.data_virtual.tolist(), trace.data_stores.tolist(), trace.data_physical.tolist())
    for virtual, store, physical in zip(*rows, strict=True):
        found.setdefault((virtual, store), set()).add(physical)
    return found


READS_ITSELF = """
#include "kdelta.h"
#include <string.h>
static char table[1 << 16] __attribute__((aligned(4096)));
static char source[4096] __attribute__((aligned(4096)));
__attribute__((noinline, aligned(64))) int read_here(void)
{
    const volatile char *code = (const volatile char *)read_here;
    return *code;
}
int main(void)
{
    memset(table, 1, sizeof table);
    memset(source, 1, sizeof source);
    kdelta_begin("mine");
    read_here();
    for (unsigned i = 0; i < sizeof table; i += 128)
        ((volatile char *)table)[i]++;
    __asm__ volatile("rep movsb" : : "S"(source), "D"(table), "c"(4096) : "memory");
    kdelta_end();
}
"""


@functools.cache
def _own_reader() -> tuple[Trace, dict[str, int], RunCounts]:
    """Its trace with data, the addresses of its symbols, and its counts."""
    folder = process_folder()
    include = f"-I{native_folder() / 'include'}"
    program, source = folder / "own", folder / "own.c"
    argv = ["gcc", "-O1", "-static", include, "-o", str(program), str(source)]
    source.write_text(READS_ITSELF)
    subprocess.run(argv, check=True)
    nm = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in nm.splitlines())
    symbols = {row[2]: int(row[0], 16) for row in rows if len(row) == 3}
    job = Job(argv=("/own",), files=(JobFile(program, "/own", 0o755),), seconds=60)
    outcome = _outcome_of(job, Recording("data"))
    counts = counts_of(outcome, {"own": program.read_bytes()})
    assert outcome.counts
    (trace,) = read_traces(outcome.counts)
    return trace, symbols, counts


@pytest.mark.slow
def test_the_data_of_a_program_that_is_known() -> None:
    trace, symbols, _ = _own_reader()
    lines = _lines(trace)
    start = symbols["table"]
    touched = range(start, start + (1 << 16), 128)
    copied = range(start, start + 4096, 64)
    for line in (*touched, *copied):
        assert len(lines[line, True]) == 1
    assert all((line, False) in lines for line in touched)
    assert all((symbols["source"] + at, False) in lines for at in range(0, 4096, 64))
    between = range(start + 4096 + 64, start + (1 << 16), 128)
    assert not any((line, store) in lines for line in between for store in (False, True))


@pytest.mark.slow
def test_a_copy_is_two_items_a_line() -> None:
    """Its 4,096 loads and stores repeat the two before them."""
    trace, symbols, _ = _own_reader()
    assert trace.data_virtual is not None
    source = np.flatnonzero(trace.data_virtual - np.uint64(symbols["source"]) < 4096)
    items = [item & (DATA - 1) for c in range(3) for item in _pieces(trace, c) if item >= DATA]
    reads = [item for item in items if item in set(source.tolist())]
    assert 64 <= len(reads) < 80


def test_the_physical_address_of_code_is_that_of_its_bytes_as_data() -> None:
    trace, symbols, _ = _own_reader()
    address = symbols["read_here"]
    (physical,) = _lines(trace)[address, False]
    assert trace.physical is not None
    (block,) = np.flatnonzero(trace.addresses == address)
    assert int(trace.physical[block]) == physical


def _direct_map(trace: Trace) -> set[int]:
    """Where the kernel has physical address 0 in its map of all memory, which begins there
    (Documentation/arch/x86/x86_64/mm.rst).
    """
    return {
        virtual - physical
        for (virtual, _), found in _lines(trace).items()
        for physical in found
        if 0 <= virtual - 0xFFFF888000000000 < 1 << 40
    }


@pytest.mark.slow
def test_data_leaves_blocks_and_counts_alone() -> None:
    words = ("open-close", "pipe-round-trip")
    counts, plain = _traced(*words)
    outcome = _outcome(words, Recording("data"))
    assert outcome.counts
    assert list(partings(counts, counts_of(outcome))) == []
    for trace, bare in zip(read_traces(outcome.counts), plain, strict=True):
        assert np.array_equal(trace.addresses, bare.addresses)
        assert _direct_map(trace) == {0xFFFF888000000000}
        for context in range(len(CONTEXTS)):
            blocks = [item for item in _pieces(trace, context) if item < DATA]
            assert blocks == list(_pieces(bare, context))


@pytest.mark.slow
def test_what_the_processor_itself_reads_is_no_data() -> None:
    """The table of interrupts, which no instruction reads; a jump may be the last before one."""
    outcome = _outcome(("fork-large",), Recording("data"))
    assert outcome.counts
    (trace,) = read_traces(outcome.counts)
    assert CONTEXTS.index("interrupts") in trace.contexts
    # Documentation/arch/x86/x86_64/mm.rst: the CPU entry area, whose first page is that table.
    entry_area = 0xFFFFFE0000000000
    offsets = [virtual - entry_area for virtual, _ in _lines(trace)]
    assert [offset for offset in offsets if 0 <= offset < 4096] == []
    assert any(0 <= offset < 1 << 20 for offset in offsets)
