# SPDX-License-Identifier: GPL-2.0-or-later
"""A made kernel and made traces of it, placed by what the tests say."""

import msgspec
import numpy as np

from kdelta.counts.model import Cost, RunCounts
from kdelta.counts.symbols import parse_symbols
from kdelta.counts.trace import DATA, Trace, encode_traces
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import CPU, Cache
from kdelta.kernels.model import Kernel
from kdelta.lab.attachments import MODULE_SYMBOLS, SYMBOLS, TRACES
from kdelta.lab.wanted import RunResult
from kdelta.measures.cycles.placement import PlacedKernel, place_traces
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun, Run
from kdelta.store.store import Store
from tests.replay.made_kernel import START, kallsyms, text_rows, trace_of
from tests.synthetic import interrupts, own, region, run

LINE = 64
SIZES = {"alpha": LINE, "beta": LINE, "gamma": LINE, "delta": LINE}
KERNEL = Kernel(identity="made", spec="made", image="", arch="x86_64", release="6.0")
RUN = Run(
    key="k", kernel_identity="made", kernel_spec="made", kernel_release="6.0", machine={},
    workload="made", workload_identity="", perturbation=0,
    id="r", status=None, alive=False, detail="", started=0.0,
)  # fmt: skip


def small_cpu(sets: int = 4) -> CPU:
    """One line a set: two functions that lie a multiple of `sets` lines apart collide."""
    cpu = load_cpu("generic-x86-64")
    return msgspec.structs.replace(cpu, l1i=Cache(sets, 1, LINE), itlb=Cache(1, 1, 4096), btb=None)


def made_trace(functions: list[int], contexts: list[int], name: str = "loop") -> Trace:
    """Executes one line of each of these functions in turn, each in its context."""
    trace = trace_of(
        [(START + LINE * number, LINE) for number in range(4)],
        [[0], [1], [2], [3]],
        functions,
    )
    return msgspec.structs.replace(
        trace, region=name, contexts=np.array(contexts, dtype=np.uint8), iterations=10
    )


def made(trace: Trace, insns: int = 40) -> PlacedKernel:
    counts = run(region("loop", {own("alpha"): Cost(insns), interrupts("delta"): 7}, 10))
    symbols = parse_symbols(kallsyms(text_rows(SIZES, LINE)))
    return place_traces(KERNEL, RUN, counts, (trace,), symbols)


def with_data(trace: Trace) -> Trace:
    """After each of two functions an access to a line of its own; code lies from 0, data behind."""
    lines = np.array([0x8000, 0x8080], dtype=np.uint64)
    return msgspec.structs.replace(
        trace,
        items=np.array([0, DATA, 1, DATA | 1], dtype=np.uint32),
        starts=np.array([0, 4], dtype=np.uint64),
        physical=trace.addresses - np.uint64(START),
        data_virtual=lines,
        data_physical=lines,
        data_stores=np.zeros(2, dtype=np.bool_),
    )


def traced_run(store: Store, counts: RunCounts, sequences: dict[str, list[int]]) -> RunResult:
    """Return a run that is kept with the traces of its regions."""
    run_id = store.start_run(
        NewRun(
            key="key",
            kernel_identity="id",
            kernel_spec="spec",
            kernel_release="6.12",
            machine={"name": "tcg"},
            workload="w",
            workload_identity="w",
            perturbation=0,
        )
    )
    traces = [made_trace(order, [0] * len(order), name) for name, order in sequences.items()]
    symbols = kallsyms(text_rows(SIZES, LINE))
    finished = store.finish_run(
        run_id,
        RunStatus.OK,
        detail="",
        counts=counts,
        console="",
        seconds=1,
        attachments={TRACES: encode_traces(traces), SYMBOLS: symbols, MODULE_SYMBOLS: b""},
    )
    return RunResult(finished, counts)
