# SPDX-License-Identifier: GPL-2.0-or-later
"""The traced runs of several workloads as one."""

from collections.abc import Sequence

import msgspec

from kdelta.counts.model import RegionCounts, RunCounts, merged_regions
from kdelta.counts.trace import Trace
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import RunResult, traces_of
from kdelta.measures.cycles.placement import PlacedKernel, place_traces, run_symbols
from kdelta.store.store import Store


def prefix_of(workload: str, workloads: Sequence[str]) -> str:
    """Return what stands before a region's name: with several workloads, whose it is."""
    return f"{workload}/" if len(workloads) > 1 else ""


def placed_together(
    kernel: Kernel, done: Sequence[RunResult], workloads: Sequence[str], store: Store
) -> PlacedKernel:
    """Return a kernel with its runs, one a workload, as one run: placed, and with their names."""
    counts: list[RegionCounts] = []
    traces: list[Trace] = []
    warnings: dict[str, None] = {}
    symbols = {}
    for one, workload in zip(done, workloads, strict=True):
        if one.counts is None:
            continue
        prefix = prefix_of(workload, workloads)
        counts += [
            msgspec.structs.replace(region, name=prefix + region.name)
            for region in merged_regions(one.counts).values()
        ]
        traces += [
            msgspec.structs.replace(trace, region=prefix + trace.region)
            for trace in traces_of(store, one.run)
        ]
        warnings.update(dict.fromkeys(one.counts.warnings))
        symbols.update(dict.fromkeys(run_symbols(kernel, store, one.run)))
    every = RunCounts(tuple(counts), tuple(warnings))
    return place_traces(kernel, done[0].run, every, tuple(traces), list(symbols))
