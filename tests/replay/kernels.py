# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of a few functions, and regions that call them, for tests of orders."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from kdelta.counts.symbols import parse_symbols
from kdelta.counts.trace import Trace
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import CPU, Cache, MissPrice
from kdelta.replay.functions import Placement, placement_of
from tests.replay.made_kernel import START, Row, digest_of, kallsyms, text_rows, trace_of

LINE = 64
LARGE_PAGES = Cache(1, 4, 2 << 20)

Call = str | tuple[str, int]
"""A function, executed whole, or with the context in which it is."""


def cpu_of(sets: int, ways: int, itlb: Cache = LARGE_PAGES, btb: Cache | None = None) -> CPU:
    """A CPU with an L1I of that many lines of 64 bytes."""
    cpu = load_cpu("generic-x86-64")
    misses = {**cpu.misses, "btb": MissPrice(0, 20, calibrated=False)}
    return msgspec.structs.replace(
        cpu, l1i=Cache(sets, ways, LINE), itlb=itlb, btb=btb, cycles_per_insn=0.5, misses=misses
    )


def region(
    rows: Sequence[Row],
    calls: Sequence[Call],
    *,
    times: int = 1,
    name: str = "made",
    left: int = 1,
) -> Trace:
    """A region that executes these functions so many times over, each in a block of its own up to
    so many bytes from the next function."""
    ends = [at for at, _, _ in rows[1:]]
    starts = {name: (at, end) for (at, _, name), end in zip(rows, ends, strict=False)}
    called = [(call, 0) if isinstance(call, str) else call for call in calls]
    names = list(dict.fromkeys(function for function, _ in called))
    blocks = [(starts[name][0], starts[name][1] - starts[name][0] - left) for name in names]
    sequence = [names.index(function) for function, _ in called] * times
    trace = trace_of(blocks, [[index] for index in range(len(names))], sequence)
    contexts = np.array([context for _, context in called] * times, dtype=np.uint8)
    return msgspec.structs.replace(trace, region=name, contexts=contexts, iterations=times)


def lines(**sizes: int) -> list[Row]:
    """Functions of so many lines each, in this order."""
    return text_rows({name: LINE * size for name, size in sizes.items()}, alignment=LINE)


def placed(
    rows: Sequence[Row], *traces: Trace, sizes: Mapping[str, int] | None = None
) -> Placement:
    """sizes: what a digest says of some functions."""
    known = {name: (".text", size, 1) for name, size in (sizes or {}).items()}
    digest = digest_of({"a.c.o": known}) if known else None
    return placement_of(traces, parse_symbols(kallsyms(rows)), digest=digest)


def paged(*executed: str) -> Placement:
    """Functions a, b, page and c, of which page asks for one, and what stays right behind them."""
    rows: list[Row] = [(START, "T", "_stext"), (START, "t", "a"), (START + 64, "t", "b")]
    rows += [(START + 4096, "t", "page"), (START + 4160, "t", "c")]
    rows += [(START + 4208, "T", "__noinstr_text_start"), (START + 4208, "T", "do_syscall_64")]
    rows += [(START + 4300, "T", "__noinstr_text_end"), (START + 8192, "T", "_etext")]
    sizes = {"a": 64, "b": 64, "page": 64, "c": 48, "do_syscall_64": 92}
    digest = digest_of({"a.c.o": {name: (".text", size, 1) for name, size in sizes.items()}})
    trace = region(rows, [*executed, "do_syscall_64"])
    return placement_of([trace], parse_symbols(kallsyms(rows)), digest=digest, alignment=16)
