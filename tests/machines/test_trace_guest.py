# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces of a real kernel: they agree with the counters, repeat, and are cut at their limit."""

import asyncio
import functools
import itertools
from collections.abc import Iterator

import msgspec
import pytest

from kdelta.counts.model import CONTEXTS, RunCounts
from kdelta.counts.trace import Trace
from kdelta.counts.trace_file import read_traces
from kdelta.guests.job import job_archive
from kdelta.infer.same import partings
from kdelta.machines.outcome import Outcome
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.machines.tcg import TRACE_LIMIT, TraceMode, run
from kdelta.workloads.catalog import find_workload
from tests.machines.bench import counts_of, guest, new_setting, syscalls_job

pytestmark = [pytest.mark.guest, pytest.mark.network]

CHEAP = ("getppid", "open-close", "page-fault", "pipe-round-trip", "read-zero-64k")


def _outcome(words: tuple[str, ...], trace: TraceMode, limit: int = TRACE_LIMIT) -> Outcome:
    where = guest(memory_mib=1024)

    async def go() -> Outcome:
        snapshot = await obtain_snapshot(where, new_setting())
        assert not isinstance(snapshot, Outcome)
        setting = msgspec.structs.replace(new_setting(), trace=trace, trace_limit=limit)
        return await run(where, job_archive(syscalls_job(*words)), setting, snapshot)

    return asyncio.run(go())


@functools.cache
def _traced(*words: str) -> tuple[RunCounts, tuple[Trace, ...]]:
    outcome = _outcome(words, "on")
    counts = counts_of(outcome)
    assert outcome.counts
    return counts, read_traces(outcome.counts)


def _pieces(trace: Trace, context: int) -> Iterator[int]:
    for piece in trace.sequence[trace.contexts == context]:
        yield from trace.items[int(trace.starts[piece]) : int(trace.starts[piece + 1])]


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


def test_every_operation_agrees_and_is_small() -> None:
    counts, traces = _traced(*find_workload("syscalls").arguments)
    assert {trace.region for trace in traces} == {region.name for region in counts.regions}
    for trace in traces:
        assert len(trace.items) < 100_000
        assert 10 * len(trace.sequence) < trace.executed_blocks() + 100


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
    outcome = _outcome(CHEAP, "on")
    assert outcome.counts
    assert read_traces(outcome.counts) == first
    plain = _outcome(CHEAP, "off")
    assert plain.counts
    assert read_traces(plain.counts) == ()
    assert list(partings(counts_of(plain), first_counts)) == []


def test_a_limit_is_kept_and_said() -> None:
    whole_counts, whole = _traced("getppid", "open-close")
    outcome = _outcome(("getppid", "open-close"), "on", 1000)
    counts = counts_of(outcome)
    assert outcome.counts
    getppid, cut = read_traces(outcome.counts)
    assert (getppid.truncated, cut.truncated) == (False, True)
    assert getppid == whole[0]
    assert 0 < len(cut.items) <= 1000
    assert 0 < cut.executed_blocks() < whole[1].executed_blocks()
    assert any("trace" in warning and "open-close" in warning for warning in counts.warnings)
    assert counts.regions == whole_counts.regions
