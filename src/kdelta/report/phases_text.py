# SPDX-License-Identifier: GPL-2.0-or-later
"""The phases of regions over layouts, as text: their misses, and the model's cycles and rates."""

from collections.abc import Callable, Sequence

from kdelta.report.layout import wrapped
from kdelta.report.layout_model import LayoutPhase, LayoutRegion
from kdelta.report.model import ReportedCPU
from kdelta.spec.phase import REST

_NAME, _FIGURE = 20, 9
_LINES = "l1i"
_MEGA = 10**6


def phase_lines(
    regions: Sequence[LayoutRegion], cpu: ReportedCPU, figure: Callable[[float], str]
) -> list[str]:
    """Two tables of the regions that have phases; nothing where none has."""
    held = [one for one in regions if one.phases]
    if not held:
        return []
    text = (
        "phases, an iteration, of all tasks and interrupts: how often each is called, its "
        "instructions, and its L1I misses over the layouts"
    )
    columns = ("calls", "insns", "least", "median", "most", "shipped")
    lines = ["", *wrapped(text, "", "  ")]
    lines.append(f"{'operation':<{_NAME}}{''.join(f'{c:>{_FIGURE}}' for c in columns)}{'p':>5}")
    for region in held:
        lines += [region.name, *(_misses(one, figure) for one in region.phases)]
    rate = "" if cpu.clock_mhz is None else f"; calls a second are the model's at {_mhz(cpu)}"
    text = (
        f"model cycles of phases on {cpu.name} as shipped, from the lowest prices to the highest; "
        f"at stake: as above{rate}, of a CPU that does nothing else"
    )
    lines += ["", *wrapped(text, "", "  ")]
    lines.append(f"{'operation':<{_NAME}}{'cycles a call':>19}{'at stake':>12}{'calls/s':>22}")
    for region in held:
        rows = [_cycles(one, cpu) for one in region.phases if one.name != REST and one.calls]
        lines += [region.name, *rows] if rows else []
    return lines


def _mhz(cpu: ReportedCPU) -> str:
    return f"{cpu.clock_mhz:g} MHz"


def _misses(phase: LayoutPhase, figure: Callable[[float], str]) -> str:
    found = phase.misses[_LINES]
    calls = figure(phase.calls) if phase.name != REST else "-"
    values = (phase.insns, found.least, found.median, found.most, found.shipped)
    cells = "".join(f"{figure(value):>{_FIGURE}}" for value in values)
    name = f"  {phase.name}"
    return f"{name:<{_NAME}}{calls:>{_FIGURE}}{cells}{f'p{found.percentile:.0f}':>5}"


def _cycles(phase: LayoutPhase, cpu: ReportedCPU) -> str:
    low, high = (end / phase.calls for end in (phase.cycles.shipped.low, phase.cycles.shipped.high))
    rates = ""
    if cpu.clock_mhz is not None and low > 0:
        rates = f"{cpu.clock_mhz * _MEGA / high:.0f}..{cpu.clock_mhz * _MEGA / low:.0f}"
    name = f"  {phase.name}"
    return (
        f"{name:<{_NAME}}{f'{low:.0f}..{high:.0f}':>19}{100 * phase.cycles.swing:>10.1f} %"
        f" {rates:>21}"
    )
