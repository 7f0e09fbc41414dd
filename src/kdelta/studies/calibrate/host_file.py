# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPU file that a calibration ends in: a CPU of kdelta's with the prices that were measured."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from kdelta.cpus.catalog import HOST, user_path
from kdelta.cpus.cores import flags_of
from kdelta.cpus.file import counts_of_front_end
from kdelta.cpus.host import base_for, calibrated
from kdelta.cpus.misses import MISSES
from kdelta.cpus.model import (
    CPU,
    DATA_TLBS,
    EXPOSED,
    LINES,
    MEASURED,
    WAITS,
    Calibration,
    MissKind,
    Price,
)
from kdelta.cpus.text import write_cpu
from kdelta.host.files import lab_errors
from kdelta.spec.timings import MachineFacts, TimedSpecial
from kdelta.studies.calibrate.model import CalibrationReport, unpredictable_ranks

_ONE_OF: tuple[tuple[MissKind, MissKind], ...] = (
    (WAITS, "fetch-windows"),
    (LINES, "op-cache"),
)
"""Two ways to count one thing, or nearly: a file has the one that the fit kept, or else the first,
so that nothing is paid twice.
"""
_CPUINFO = Path("/proc/cpuinfo")
_STRINGS = ("rep-movs", "rep-stos")
_LONG_BYTES = 4096
_NOT_OF_THE_CORE = frozenset({"syscall", "page-fault", *_STRINGS})
"""What takes a kernel's path, too, and is no price of one instruction."""
_TRAPS = frozenset({"cpuid"})
"""What a hypervisor does in place of a virtual machine's core."""


def based_on(machine: MachineFacts) -> CPU:
    """The CPU of kdelta's whose geometry a machine has, or is nearest to. UserError if none is."""
    flags: frozenset[str] = frozenset()
    if machine.hypervisor:  # its numbers may be made up
        with lab_errors("reading", _CPUINFO):
            flags = flags_of(_CPUINFO.read_text(errors="replace"))
    return base_for(machine.arch, machine.cpu_numbers, flags)


def write_host(base: CPU, report: CalibrationReport, path: Path | None, *, by: str) -> Path | None:
    """Writes the file, at the given path or where `--cpu host` finds it, and returns where; None if
    no price was found.
    """
    cpu = host_cpu(base, report, by=by)
    if cpu is None:
        return None
    place = path or user_path(HOST)
    write_cpu(cpu, place)
    return place


def host_cpu(base: CPU, report: CalibrationReport, *, by: str) -> CPU | None:
    """The base with the prices of a report; None if it has none.

    What was left out of the fit, though links differ in it, costs between nothing and what it would
    cost at most.
    """
    misses = {kind: price for kind, price in measured_misses(report).items() if _has(base, kind)}
    if not misses:
        return None
    if EXPOSED in base.misses and EXPOSED not in misses:
        # It would stand for the price of "l1i", which was measured.
        kept = {kind: price for kind, price in base.misses.items() if kind != EXPOSED}
        said = {field: text for field, text in base.sources.items() if field != f"misses.{EXPOSED}"}
        base = msgspec.structs.replace(base, misses=kept, sources=said)
    ranks = unpredictable_ranks(report.fitted.quality)
    base = _with_strings(base, report.specials, report)
    rate = report.fitted.base_rate
    return calibrated(
        base,
        name=HOST,
        title=f"{report.machine.cpu}, calibrated",
        calibration=Calibration(
            when=report.when,
            host=report.machine.cpu,
            programs=len(report.rows),
            relinks=report.relinks,
            rank_correlation=(min(ranks), float(np.median(ranks))) if ranks else (0.0, 0.0),
            by=by,
            machine=report.machine.id,
        ),
        misses=misses,
        specials=_specials(base, report),
        cycles_per_insn=round(rate.value, 4) if rate else None,
        how=_how(report),
    )


def _how(report: CalibrationReport) -> str:
    return (
        f"by kdelta calibrate, {report.when}: {len(report.rows)} generated programs, "
        f"up to {report.relinks} links each"
    )


def measured_misses(report: CalibrationReport) -> dict[MissKind, Price]:
    """By kind, the intervals of what was priced, and of what was found not to matter."""
    fitted = report.fitted
    found = {
        _kind(name): Price(round(price.low, 3), round(price.high, 3))
        for name, price in (fitted.between | fitted.prices).items()
        if name in MISSES
    }
    for one in fitted.left_out:
        if one.name in MISSES and one.most is not None:
            found.setdefault(_kind(one.name), Price(0.0, round(one.most, 3)))
    if EXPOSED not in fitted.prices and LINES in fitted.prices:
        found.pop(EXPOSED, None)
    for first, second in _ONE_OF:
        if first in found and second in found:
            del found[first if second in fitted.prices else second]
    return found


def _has(base: CPU, kind: MissKind) -> bool:
    """Whether a CPU has what misses, as far as is known."""
    level = kind.partition("-")[0]
    if level in DATA_TLBS:
        return getattr(base, level) is not None
    return counts_of_front_end(base).get(kind, True)


def _kind(name: str) -> MissKind:
    kind: MissKind = msgspec.convert(name, MissKind)
    return kind


def _specials(base: CPU, report: CalibrationReport) -> dict[str, Price]:
    """Of instructions that cost the same whatever they are given."""
    left = _NOT_OF_THE_CORE | (_TRAPS if report.machine.hypervisor else frozenset())
    rate = report.fitted.base_rate.value if report.fitted.base_rate else base.cycles_per_insn
    return {
        one.kind: Price(
            round(max(0.0, one.cycles_low - rate), 2), round(max(0.0, one.cycles_high - rate), 2)
        )
        for one in report.specials
        if one.kind not in left and not one.argument
    }


def _with_strings(base: CPU, specials: Sequence[TimedSpecial], report: CalibrationReport) -> CPU:
    """With the rates of long string operations, from the worst to the best."""
    rates = [
        one.argument / one.cycles_median
        for one in specials
        if one.kind in _STRINGS and one.argument >= _LONG_BYTES and one.cycles_median > 0
    ]
    if not rates:
        return base
    return msgspec.structs.replace(
        base,
        string_bytes_per_cycle=Price(round(min(rates), 3), round(max(rates), 3)),
        sources={**base.sources, "strings": f"{MEASURED} {_how(report)}"},
    )
