# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta cpus`: the CPUs that are known, and all that is known of one."""

from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from kdelta import __version__
from kdelta.cli.named_cpu import named_cpu
from kdelta.cli.output import emit
from kdelta.cli.plain_options import Json
from kdelta.cpus.catalog import list_cpus, load_user_cpu, refuse_shadow, user_paths
from kdelta.cpus.misses import MISSES
from kdelta.cpus.model import CPU, LRU, Cache, Core, KernelPath
from kdelta.lab.cpus import default_cpus
from kdelta.report.cpus import bytes_text, listed_cpus, prices_word
from kdelta.report.lines import finished, wrapped
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument
from kdelta.studies.documents import document_text

_NAME = 15
_FIELD = 22
_INDENT = " " * 4
_LABELS = {
    "core": "known by",
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
    "transfer": "line transfer",
    "dtlb": "TLB, data",
    "dtlb_large": "TLB, data, large pages",
    "dtlb_store": "TLB, stores",
    "stlb": "TLB, second level",
    **{f"misses.{kind}": names.price for kind, names in MISSES.items()},
}


class CpusOptions(msgspec.Struct, frozen=True):
    """In which form."""

    json: Json = False


_ALL: list[str] = []


def cpus(
    *,
    form: CpusOptions,
    names: Annotated[
        list[str],
        Argument(
            metavar="[CPU]...", help="Names, or paths of files of your own.", values="CPU|FILE"
        ),
    ] = _ALL,
) -> None:
    """List the CPUs that have model cycles, and which have measured costs.

    With a CPU's name, or the path of a CPU file: its caches and prices, each with where the figure
    is from, and the paths of a kernel that depend on it. What a buyer chooses may follow the name,
    as in cortex-a9,l2=256KiB,clock=1GHz (l1i, l1d, l2, l2-latency, replacement, clock). The user's
    own files are in $XDG_CONFIG_HOME/kdelta/cpus; host is kdelta's file of this machine's core.
    """
    if names:
        chosen = [named_cpu(name) for name in names]
        listed = document_text(listed_cpus(chosen), __version__) if form.json else ""
        emit(listed or "\n".join(cpu_text(cpu) for cpu in chosen))
        return
    own, wrong = _own()
    known = [*list_cpus().values(), *own]
    as_json = document_text(listed_cpus(known, wrong), __version__) if form.json else ""
    emit(as_json or cpus_text(known, wrong))


def _own() -> tuple[list[CPU], list[str]]:
    """The user's CPUs, and what is wrong with files that are none."""
    found, wrong = [], []
    for name in user_paths():
        try:
            refuse_shadow(name)
            found.append(load_user_cpu(name))
        except UserError as error:
            wrong.append(error.message)
    return found, wrong


def cpus_text(known: Iterable[CPU], wrong: Iterable[str] = ()) -> str:
    """A line for each CPU, with how many of its prices of misses were timed by a clock; and which
    files are none.
    """
    every = list(known)
    lines = [f"{'CPU':<{_NAME}} {'arch':<6} {'front end':<9} {'L1I':>7} {'timed':>5}  what it is"]
    lines += [
        f"{cpu.name:<{_NAME}} {cpu.arch:<6} {cpu.frontend:<9} {bytes_text(cpu.l1i.bytes):>7} "
        f"{prices_word(cpu):>5}  {cpu.title}"
        for cpu in every
    ]
    like = ", ".join(f"{cpu.arch} guests are like {cpu.name}" for cpu in default_cpus())
    lines += ["", *wrapped(f"Without --cpu and --qemu-cpu {like}.", "", "  ")]
    lines += [line for one in wrong for line in ["", *wrapped(f"no CPU: {one}", "", "  ")]]
    return "".join(f"{line}\n" for line in lines)


def cpu_text(cpu: CPU) -> str:
    """All that is known of a CPU, in lines of 80 columns."""
    lines = [f"{cpu.name}: {cpu.title}, {cpu.arch}"]
    lines.append("")
    for field, value in _figures(cpu):
        lines += wrapped(value, f"  {_LABELS[field]:<{_FIELD}} ", " " * (_FIELD + 3))
        lines += wrapped(cpu.sources[field], _INDENT, _INDENT)
    for kinds, price, source in _specials(cpu):
        lines += wrapped(f"{kinds:<{_FIELD}} {price}", "  ", _INDENT)
        lines += wrapped(source, _INDENT, _INDENT)
    if cpu.qemu.cpu or cpu.qemu.append or cpu.qemu.reason:
        lines += ["", "  in QEMU"]
        for text in (cpu.qemu.cpu.replace(",", ", "), cpu.qemu.append, cpu.qemu.reason):
            lines += wrapped(text, _INDENT, _INDENT) if text else []
    if cpu.qemu.force:
        lines += wrapped(f"forced in the kernel: {', '.join(cpu.qemu.force)}", _INDENT, _INDENT)
        lines += wrapped(cpu.qemu.force_source, _INDENT, _INDENT)
    if cpu.paths:
        lines += ["", "  paths of a kernel that depend on it"]
        lines += [line for path in cpu.paths for line in _path_lines(path)]
    return finished(lines)


def _figures(cpu: CPU) -> Iterator[tuple[str, str]]:
    """(field of `CPU.sources`, its figures). Cycles are from hidden to exposed, or from the least
    to the most.
    """
    if cpu.core:
        yield "core", _core(cpu.core)
    yield "frontend", cpu.frontend
    yield "l1i", _lines(cpu.l1i)
    yield "l1d", _lines(cpu.l1d)
    yield "l2", _lines(cpu.l2) + (", shared" if cpu.l2_shared else "")
    for name in ("itlb", "itlb_small", "dtlb", "dtlb_large", "dtlb_store", "stlb"):
        if tlb := getattr(cpu, name):
            yield name, _pages(tlb)
    if cpu.btb:
        yield "btb", f"{cpu.btb.entries} branches, {cpu.btb.ways}-way{_policy(cpu.btb)}"
    yield "base", f"{cpu.cycles_per_insn:g} cycles an instruction"
    if cpu.clock_mhz is not None:
        yield "clock", f"{cpu.clock_mhz:g} MHz"
    strings = cpu.string_bytes_per_cycle
    yield "strings", f"{strings.low:g} to {strings.high:g} bytes a cycle"
    if cpu.transfer:
        near, far = (
            f"{low:g} to {high:g} ns" for low, high in (cpu.transfer.near, cpu.transfer.far)
        )
        yield "transfer", f"{near} from a near CPU, {far} from a far one"
    for kind, miss in cpu.misses.items():
        word = "measured" if miss.calibrated else "not measured"
        yield f"misses.{kind}", f"{miss.hidden:g} to {miss.exposed:g} cycles, {word}"


def _core(core: Core) -> str:
    """Families and models, or implementers and parts, as /proc/cpuinfo has them."""
    words = [
        f"{first:#x} {low:#x}" + (f" to {high:#x}" if high > low else "")
        for first, low, high in core.numbers
    ]
    flags = [*core.flags, *(f"no {flag}" for flag in core.without)]
    return ", ".join(words) + (f"; else {', '.join(flags)}" if flags else "")


def _specials(cpu: CPU) -> Iterator[tuple[str, str, str]]:
    """(special instructions, their price, its source): those that have these in common together."""
    alike: dict[tuple[str, str], list[str]] = {}
    for kind, price in cpu.specials.items():
        words = f"{price.low:g} to {price.high:g} cycles"
        alike.setdefault((words, cpu.sources[f"special.{kind}"]), []).append(kind)
    for (words, source), kinds in alike.items():
        yield ", ".join(kinds), words, source


def _lines(cache: Cache) -> str:
    return (
        f"{bytes_text(cache.bytes)}, {cache.ways}-way, {cache.sets} sets, lines of "
        f"{cache.line_bytes} bytes{_policy(cache)}"
    )


def _policy(cache: Cache) -> str:
    return "" if cache.replacement == LRU else f", {cache.replacement}"


def _pages(tlb: Cache) -> str:
    ways = "fully associative" if tlb.sets == 1 else f"{tlb.ways}-way"
    return f"{tlb.entries} pages of {bytes_text(tlb.line_bytes)}, {ways}{_policy(tlb)}"


def _path_lines(path: KernelPath) -> list[str]:
    why = f" ({path.not_emulated})" if path.not_emulated else ""
    without = wrapped(f"else: {path.otherwise}{why}", _INDENT * 2, _INDENT * 2)
    return wrapped(path.name, _INDENT, _INDENT) + without
