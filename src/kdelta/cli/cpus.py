# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta cpus`: the CPUs that are known, and all that is known of one."""

from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from kdelta.cli.output import emit
from kdelta.cpus.catalog import list_cpus, load_cpu
from kdelta.cpus.model import CPU, LRU, Cache, KernelPath
from kdelta.report.layout import finished, wrapped

_NAME = 14
_FIELD = 22
_INDENT = " " * 4
_LABELS = {
    "frontend": "front end",
    "l1i": "L1 instructions",
    "l1d": "L1 data",
    "l2": "L2",
    "itlb": "TLB, kernel's code",
    "itlb_small": "TLB, small pages",
    "btb": "branch targets",
    "base": "base rate",
    "clock": "clock",
    "strings": "string operations",
    "misses.l1i": "miss of a line",
    "misses.itlb": "miss of a page",
    "misses.btb": "miss of a target",
    "misses.l2": "miss in the L2",
}


def cpus(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CPU]...", help="Names, or paths of files of your own."),
    ] = None,
) -> None:
    """List the CPUs that model cycles can be had for.

    With a CPU's name, or the path of a CPU file: its caches and prices, each with where the figure
    is from, and the paths of a kernel that hang on it. What a buyer chooses may follow the name, as
    in cortex-a9,l2=256KiB,clock=1GHz (l1i, l1d, l2, l2-latency, replacement, clock).
    """
    if not names:
        emit(cpus_text(list_cpus().values()))
        return
    emit("\n".join(cpu_text(load_cpu(name)) for name in names))


def cpus_text(known: Iterable[CPU]) -> str:
    """A line for each CPU."""
    lines = [
        f"{cpu.name:<{_NAME}} {cpu.arch:<6} {cpu.frontend:<9} {_size(cpu.l1i.bytes):>7} "
        f"{cpu.l1i.ways:>2}-way  {cpu.title}"
        for cpu in known
    ]
    head = f"{'CPU':<{_NAME}} {'arch':<6} {'front end':<9} {'L1I':>14}  what it is"
    return "".join(f"{line}\n" for line in [head, *lines])


def cpu_text(cpu: CPU) -> str:
    """All that is known of a CPU, in lines of 80 columns."""
    lines = [f"{cpu.name}: {cpu.title}, {cpu.arch}", ""]
    for field, value in _figures(cpu):
        lines += wrapped(value, f"  {_LABELS[field]:<{_FIELD}} ", " " * (_FIELD + 3))
        lines += wrapped(cpu.sources[field], _INDENT, _INDENT)
    for kinds, price, source in _specials(cpu):
        words = ", ".join(kinds)
        lines += wrapped(f"{words:<{_FIELD}} {price}", "  ", _INDENT)
        lines += wrapped(source, _INDENT, _INDENT)
    if cpu.qemu.cpu or cpu.qemu.append or cpu.qemu.reason:
        lines += ["", "  in QEMU"]
        for text in (cpu.qemu.cpu.replace(",", ", "), cpu.qemu.append, cpu.qemu.reason):
            lines += wrapped(text, _INDENT, _INDENT) if text else []
    if cpu.paths:
        lines += ["", "  paths of a kernel that hang on it"]
        lines += [line for path in cpu.paths for line in _path_lines(path)]
    return finished(lines)


def _figures(cpu: CPU) -> Iterator[tuple[str, str]]:
    """(field of `CPU.sources`, its figures). Cycles are from hidden to exposed, or from the least
    to the most.
    """
    yield "frontend", cpu.frontend
    yield "l1i", _lines(cpu.l1i)
    yield "l1d", _lines(cpu.l1d)
    yield "l2", _lines(cpu.l2) + (", shared" if cpu.l2_shared else "")
    yield "itlb", _pages(cpu.itlb)
    if cpu.itlb_small:
        yield "itlb_small", _pages(cpu.itlb_small)
    if cpu.btb:
        yield "btb", f"{cpu.btb.entries} branches, {cpu.btb.ways}-way{_policy(cpu.btb)}"
    yield "base", f"{cpu.cycles_per_insn:g} cycles an instruction"
    if cpu.clock_mhz is not None:
        yield "clock", f"{cpu.clock_mhz:g} MHz"
    rate = cpu.string_bytes_per_cycle
    yield "strings", f"{rate.low:g} to {rate.high:g} bytes a cycle"
    for kind, miss in cpu.misses.items():
        word = "calibrated" if miss.calibrated else "not calibrated"
        yield f"misses.{kind}", f"{miss.hidden:g} to {miss.exposed:g} cycles, {word}"


def _specials(cpu: CPU) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """(special instructions, their price, its source): those that have these in common together."""
    alike: dict[tuple[str, str], list[str]] = {}
    for kind, price in cpu.specials.items():
        words = f"{price.low:g} to {price.high:g} cycles"
        alike.setdefault((words, cpu.sources[f"special.{kind}"]), []).append(kind)
    for (words, source), kinds in alike.items():
        yield tuple(kinds), words, source


def _lines(cache: Cache) -> str:
    return (
        f"{_size(cache.bytes)}, {cache.ways}-way, {cache.sets} sets, lines of "
        f"{cache.line_bytes} bytes{_policy(cache)}"
    )


def _policy(cache: Cache) -> str:
    return "" if cache.replacement == LRU else f", {cache.replacement}"


def _pages(tlb: Cache) -> str:
    ways = "fully associative" if tlb.sets == 1 else f"{tlb.ways}-way"
    return f"{tlb.entries} pages of {_size(tlb.line_bytes)}, {ways}{_policy(tlb)}"


def _size(count: int) -> str:
    """Bytes in the largest unit that needs no more than two decimals."""
    return f"{count >> 10} KiB" if count < 1 << 20 else f"{count / (1 << 20):g} MiB"


def _path_lines(path: KernelPath) -> list[str]:
    lines = wrapped(path.name, _INDENT, _INDENT)
    without = f"else: {path.otherwise}"
    if path.not_emulated:
        without += f" ({path.not_emulated})"
    return lines + wrapped(without, _INDENT * 2, _INDENT * 2)
