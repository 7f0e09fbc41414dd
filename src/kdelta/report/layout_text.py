# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta layout` as text that can be pasted into a mail."""

from collections.abc import Sequence

from kdelta.infer.ensembles import Interval
from kdelta.infer.sensitivity import Distribution
from kdelta.report.cut import cut_lines
from kdelta.report.cycles import cpu_line, data_kind
from kdelta.report.layout import (
    failed_lines,
    finished,
    labelled,
    machine_lines,
    warning_lines,
    wrapped,
)
from kdelta.report.layout_model import LayoutRegion, LayoutReport
from kdelta.report.model import Unlike
from kdelta.report.phases_text import phase_lines
from kdelta.report.replacement_text import replacement_lines
from kdelta.spec.identity import short

NAME = 20
FIGURE = 9
_BINS = 10
_BAR = 40
_SETS_SHOWN = 6
_PERCENTILE = "p: how many per cent of the layouts have less than the shipped one"

KINDS = {
    "l1i": "L1I misses",
    "itlb": "ITLB misses",
    "btb": "BTB misses",
    "l2": "L2 misses of code and data",
    "l2_code": "L2 misses of code",
    "l2_data": "L2 misses of data",
    "conditional": "mispredicted conditional branches",
    "indirect": "mispredicted indirect branches",
    "return": "mispredicted returns",
    "btb-first": "misses of the first BTB",
    "l1i-exposed": "cycles that L1I misses leave exposed",
    "fetch-windows": "fetched windows",
    "op-cache": "misses of decoded operations",
    "fetch-waits": "cycles of waiting for windows",
}
_COLUMNS = ("least", "25 %", "median", "75 %", "most", "shipped")


def layout_text(report: LayoutReport, regions: int = 5, collisions: int = 10) -> str:
    """The whole report; `regions` is how many of those on which placement bears most are taken
    apart, and `collisions` how many of each are named.
    """
    lines = [f"kdelta layout: workload {report.workload}, misses an iteration", ""]
    lines += _head(report)
    for kind in _kinds(report.regions):
        lines += ["", *_misses(kind, report)]
    lines += _data(report)
    for kind in _policies(report.regions):
        held = [(one.name, one.replacement[kind]) for one in report.regions if one.replacement]
        beside = replacement_lines(KINDS.get(kind, kind), held, figure)
        lines += ["", *beside] if beside else []
    lines += cut_lines(report.cut)
    if report.regions:
        lines += ["", *_cycles(report)]
    lines += phase_lines(report.regions, report.cpu, figure)
    ranked = sorted(report.regions, key=lambda one: -one.cycles.swing)
    for region in [one for one in ranked if one.cycles.swing > 0][:regions]:
        lines += ["", *_region(region, report, collisions)]
    lines += unlike_lines(report.cpu.name, report.unlike)
    if report.notes:
        lines += ["", "notes"]
        lines += [line for note in report.notes for line in wrapped(note, "  ", "    ")]
    lines += warning_lines(report.warnings)
    return finished(lines)


def _head(report: LayoutReport) -> list[str]:
    lines = labelled("kernel", report.kernel.spec)
    if report.kernel.failure:
        return lines + labelled("", f"no kernel: {report.kernel.failure}")
    identity = short(report.kernel.identity)
    lines += labelled("", f"release {report.kernel.release}, identity {identity}")
    lines += machine_lines(report.machine)
    lines += labelled("model", f"{cpu_line(report.cpu)}; {'; '.join(report.caches)}")
    if report.executed:
        text = f"{report.orders}; of {report.executed} executed functions {report.movable} move"
        text += f", aligned to {report.alignment} as linked" if report.alignment else ""
        lines += labelled("layouts", text)
    failed = failed_lines("kernel", report.kernel.failed)
    return [*lines, "", "failed runs", *failed] if failed else lines


def _kinds(regions: Sequence[LayoutRegion]) -> dict[str, None]:
    return dict.fromkeys(kind for region in regions for kind in region.misses)


def _policies(regions: Sequence[LayoutRegion]) -> dict[str, None]:
    return dict.fromkeys(kind for region in regions for kind in region.replacement)


def marked(name: str, unlike: Sequence[Unlike]) -> str:
    """The name, with a star where what it does hangs on what was not as on the CPU."""
    return f"{name}*" if any(name in one.regions for one in unlike) else name


def _misses(kind: str, report: LayoutReport) -> list[str]:
    """A table of those that miss at all, and the names of the others."""
    held = [
        (marked(one.name, report.unlike), one.misses[kind])
        for one in report.regions
        if kind in one.misses
    ]
    title = KINDS.get(kind, f"{kind} misses")
    missing = [(name, found) for name, found in held if found.most or found.shipped]
    if not missing:
        return [f"{title}: none in any layout"]
    lines = wrapped(f"{title}; {_PERCENTILE}", "", "  ")
    lines += [_heading("operation")]
    lines += [_row(name, found) for name, found in missing]
    quiet = [name for name, found in held if not (found.most or found.shipped)]
    if quiet:
        lines += wrapped(f"none in any layout: {', '.join(quiet)}", "", "  ")
    return lines


def _data(report: LayoutReport) -> list[str]:
    """What accesses to data miss: the same in all layouts, so that a row has one figure a kind."""
    kinds = dict.fromkeys(kind for region in report.regions for kind in region.data)
    held = [kind for kind in kinds if any(one.data.get(kind) for one in report.regions)]
    if not kinds:
        return []
    title = "misses of data, the same in all layouts of code; st.: stores"
    if not held:
        return ["", f"{title}: none"]
    lines = ["", title]
    lines.append(f"{'operation':<{NAME}}" + "".join(f"{data_kind(k):>{FIGURE}}" for k in held))
    for one in report.regions:
        cells = "".join(f"{figure(one.data.get(kind, 0.0)):>{FIGURE}}" for kind in held)
        lines.append(f"{cut(marked(one.name, report.unlike))}{cells}")
    left = [data_kind(kind) for kind in kinds if kind not in held]
    return lines + (wrapped(f"none in any: {', '.join(left)}", "", "  ") if left else [])


def _heading(name: str) -> str:
    cells = "".join(f"{word:>{FIGURE}}" for word in _COLUMNS)
    return f"{name:<{NAME}}{cells}{'p':>5}"


def _row(name: str, found: Distribution) -> str:
    values = (
        found.least,
        found.quarter,
        found.median,
        found.three_quarters,
        found.most,
        found.shipped,
    )
    cells = "".join(f"{figure(value):>{FIGURE}}" for value in values)
    return f"{cut(name)}{cells}{f'p{found.percentile:.0f}':>5}"


def cut(name: str) -> str:
    """The name in its column; a longer one gets a line of its own."""
    return f"{name:<{NAME}}" if len(name) < NAME else f"{name}\n{'':<{NAME}}"


def figure(value: float) -> str:
    """In at most eight characters."""
    for places in (2, 1, 0):
        text = f"{value:.{places}f}"
        if len(text) < FIGURE:
            return text
    return f"{value:.2e}"


def _cycles(report: LayoutReport) -> list[str]:
    text = (
        f"model cycles an iteration on {report.cpu.name}, from the lowest prices to the highest; "
        "at stake: how much the costliest layout takes more than the cheapest, of the median, if "
        "no miss is hidden"
    )
    unmissed, held = report.unmissed
    text += f"; {unmissed}: {held}" if held else ""
    lines = wrapped(text, "", "  ")
    lines.append(f"{'operation':<{NAME}}{unmissed:>19}{'shipped':>19}{'at stake':>12}")
    for region in report.regions:
        found = region.cycles
        lines.append(
            f"{cut(marked(region.name, report.unlike))}{_range(found.executed):>19}"
            f"{_range(found.shipped):>19}{100 * found.swing:>10.1f} %"
        )
    return lines


def _range(interval: Interval) -> str:
    return f"{_cycle(interval.low)}..{_cycle(interval.high)}"


def _cycle(value: float) -> str:
    return f"{value:.0f}" if abs(value) < 10**8 else f"{value:.2e}"


def _region(region: LayoutRegion, report: LayoutReport, collisions: int) -> list[str]:
    lines = [region.name, "-" * len(region.name)]
    for kind, found in region.misses.items():
        if _bars_differ(region.draws[kind], found.shipped):
            lines += [f"{KINDS.get(kind, kind)} over {region.layouts} random layouts"]
            lines += histogram(region.draws[kind], found.shipped)
    lines += _aligned(region)
    lines += _collisions(region, report, collisions)
    return lines


def _bars_differ(draws: Sequence[float], shipped: float) -> bool:
    """Whether a histogram's bars would have names of their own."""
    least, most = min(*draws, shipped), max(*draws, shipped)
    return figure(least) != figure(least + (most - least) / _BINS)


def histogram(draws: Sequence[float], shipped: float) -> list[str]:
    """Bars of how many layouts have how much, and where the shipped one is."""
    least, most = min(*draws, shipped), max(*draws, shipped)
    width = (most - least) / _BINS
    if not width:
        return [f"  {figure(least):>{FIGURE}} {len(draws):>6} {'#' * _BAR}  <- shipped"]
    bins = [min(int((value - least) / width), _BINS - 1) for value in (*draws, shipped)]
    counts = [bins[:-1].count(index) for index in range(_BINS)]
    lines = []
    for index, count in enumerate(counts):
        low = least + index * width
        bar = "#" * -(-count * _BAR // max(counts))
        mark = "  <- shipped" if index == bins[-1] else ""
        lines.append(f"  {figure(low):>{FIGURE}} {count:>6} {bar}{mark}".rstrip())
    lines.append(f"  {figure(most):>{FIGURE}}")
    return lines


def _aligned(region: LayoutRegion) -> list[str]:
    kinds = [
        kind
        for kind in region.misses
        if any(kind in one.drawn and one.drawn[kind].varies for one in region.aligned)
    ]
    lines = []
    for kind in kinds:
        lines += [
            f"functions aligned to: {KINDS.get(kind, kind)}; shipped: in the order as linked",
            _heading("  bytes"),
        ]
        lines += [_row(f"  {one.bytes}", one.drawn[kind]) for one in region.aligned]
    return lines


def _collisions(region: LayoutRegion, report: LayoutReport, most: int) -> list[str]:
    if not region.collisions or not most:
        return []
    text = (
        f"collisions as shipped, {figure(region.colliding)} misses an iteration, interrupts' and "
        f"others' too; sets of the L1I; model cycles on {report.cpu.name}"
    )
    lines = wrapped(text, "", "  ")
    named = region.collisions[:most]
    for one in named:
        functions = " ".join(dict.fromkeys(one.functions))
        if one.functions[0] == one.functions[1]:
            functions += " with itself"
        cost = f"{figure(one.misses):>{FIGURE}} {_range(one.cycles):>9}  "
        lines += wrapped(f"{functions}, {_sets(one.sets)}", cost, " " * len(cost))
    rest = region.pairs - len(named)
    if rest:
        left = region.colliding - sum(one.misses for one in named)
        lines.append(f"{figure(max(0.0, left)):>{FIGURE}} {'':>9}  in {rest} more pairs")
    return lines


def _sets(sets: tuple[int, ...]) -> str:
    """The sets, runs of them as one."""
    runs: list[list[int]] = []
    for number in sets:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [str(low) if low == high else f"{low}-{high}" for low, high in runs]
    shown = ", ".join(words[:_SETS_SHOWN])
    more = f" and {len(words) - _SETS_SHOWN} more" if len(words) > _SETS_SHOWN else ""
    return f"set{'s' if len(sets) > 1 else ''} {shown}{more}"


def unlike_lines(cpu: str, unlike: Sequence[Unlike]) -> list[str]:
    """Which paths were not those of the CPU, and whose figures hang on them."""
    if not unlike:
        return []
    lines = ["", f"not as on {cpu}; what hangs on it (*) is not representative"]
    for one in unlike:
        regions = f"; operations: {', '.join(one.regions)}" if one.regions else ""
        lines += wrapped(one.text + regions, "  ", "    ")
    return lines
