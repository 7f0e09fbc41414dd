# SPDX-License-Identifier: GPL-2.0-or-later
"""Outlines of studies of where code lies: `layout` and `place`."""

from collections.abc import Iterator

from kdelta.infer.ensembles import Interval
from kdelta.report.cut import cut_note
from kdelta.report.cycles import cpu_line
from kdelta.report.layout_model import LayoutRegion, LayoutReport
from kdelta.report.layout_text import KINDS, marked
from kdelta.report.layout_text import figure as padded
from kdelta.report.model import Unlike
from kdelta.report.outline import Case, Outcome, Outline, Suite, Table
from kdelta.report.outlines import parts
from kdelta.report.place_model import Applied, PlacedRegion, PlaceReport
from kdelta.report.stored import Stored


def layout_outline(stored: Stored) -> Outline:
    """The outline of a kernel's sensitivity to placement: no case of it can be slower."""
    report = stored.one(LayoutReport)
    sides = [("kernel", report.kernel)]
    swings = sorted(report.regions, key=lambda one: -one.cycles.swing)
    named = [f"{one.name} {100 * one.cycles.swing:.1f} %" for one in swings if one.cycles.swing > 0]
    what = f"{report.workload} on {report.cpu.name}"
    if not report.regions:
        short = f"{what}: no region was recorded."
    elif not named:
        short = f"{what}: no region hangs on where the functions are."
    else:
        short = (
            f"{what}: over {report.layouts} random layouts, {parts.counted(len(named), 'region')} "
            f"of {len(report.regions)} hang on where the functions are; at stake, if no miss is "
            f"hidden: {', '.join(named[: parts.NAMED])}."
        )
    cases = tuple(_layout_case(one) for one in report.regions)
    return Outline(
        subject=f"{report.workload}: placement of {parts.brief_name(report.kernel)}",
        short=(short,),
        suites=(parts.kernels_suite(sides), Suite(f"placement on {report.cpu.name}", cases)),
        tables=(*_layout_misses(report), *_layout_cycles(report)),
        failures=parts.failures_of(sides),
        facts=(
            ("workload", report.workload),
            *parts.kernel_facts(sides),
            *parts.lab_facts(report.machine),
            ("model", f"{cpu_line(report.cpu)}; {'; '.join(report.caches)}"),
            ("layouts", report.orders),
        ),
        notes=(
            *report.notes,
            *(cut_note(one) for one in report.cut),
            *_unlike(report.cpu.name, report.unlike),
        ),
        warnings=report.warnings,
    )


def _layout_case(region: LayoutRegion) -> Case:
    at_stake = f"{100 * region.cycles.swing:.1f} % of its model cycles at stake"
    lines = tuple(
        f"{kind} misses {_count(one.least)} to {_count(one.most)}, median {_count(one.median)}, "
        f"as shipped {_count(one.shipped)} (p{one.percentile:.0f})"
        for kind, one in region.misses.items()
    )
    return Case(region.name, Outcome.OK, at_stake, lines)


def _layout_misses(report: LayoutReport) -> Iterator[Table]:
    for kind in dict.fromkeys(kind for one in report.regions for kind in one.misses):
        held = [
            (marked(one.name, report.unlike), one.misses[kind])
            for one in report.regions
            if kind in one.misses and (one.misses[kind].most or one.misses[kind].shipped)
        ]
        if held:
            yield Table(
                f"{KINDS.get(kind, kind)} an iteration, over random layouts",
                ("operation", "least", "median", "most", "shipped", "p"),
                tuple(
                    (
                        name,
                        *(_count(x) for x in (one.least, one.median, one.most, one.shipped)),
                        f"p{one.percentile:.0f}",
                    )
                    for name, one in held
                ),
                note="p: how many per cent of the layouts have less than the shipped one.",
            )


def _layout_cycles(report: LayoutReport) -> Iterator[Table]:
    unmissed, held = report.unmissed
    if report.regions:
        yield Table(
            f"model cycles an iteration on {report.cpu.name}",
            ("operation", unmissed, "shipped", "at stake"),
            tuple(
                (
                    one.name,
                    _range(one.cycles.executed),
                    _range(one.cycles.shipped),
                    f"{100 * one.cycles.swing:.1f} %",
                )
                for one in report.regions
            ),
            note="From the lowest prices to the highest; at stake: how much the costliest layout "
            "takes more than the cheapest, of the median, if no miss is hidden"
            + (f"; {unmissed}: {held}." if held else "."),
        )


def place_outline(stored: Stored) -> Outline:
    """The outline of an order that was found: slower is what has more misses than as shipped."""
    report = stored.one(PlaceReport)
    sides = [("kernel", report.kernel)]
    if report.applied:
        sides.append(("relinked", report.applied.kernel))
    what = f"{', '.join(report.workloads)} on {report.cpu.name}"
    if not report.regions:
        short = f"{what}: no region was recorded."
    elif not report.file:
        short = f"{what}: no order is better than the layout as shipped."
    else:
        payers = [one.name for one in report.payers()]
        short = (
            f"{what}: {report.file} has an order of {report.functions} functions, by "
            f"{report.method}; {_costs(report)}"
        )
        short += f"; with more misses than as shipped: {', '.join(payers)}." if payers else "."
    return Outline(
        subject=f"{', '.join(report.workloads)}: an order for {parts.brief_name(report.kernel)}",
        short=(short,),
        suites=tuple(_place_suites(report, sides)),
        tables=tuple(_place_tables(report)),
        failures=parts.failures_of(sides),
        facts=(
            ("workload", ", ".join(report.workloads)),
            *parts.kernel_facts(sides),
            *parts.lab_facts(report.machine),
            ("model", f"{cpu_line(report.cpu)}; {'; '.join(report.caches)}"),
            ("layouts", f"{report.layouts} random orders, seed {report.seed}"),
        ),
        notes=(
            *report.notes,
            *(cut_note(one) for one in report.cut),
            *_unlike(report.cpu.name, report.unlike),
        ),
        warnings=tuple(
            dict.fromkeys((*report.warnings, *(report.applied.warnings if report.applied else ())))
        ),
    )


def _costs(report: PlaceReport) -> str:
    """What misses cost, if none is hidden, as a part of what the instructions cost."""
    shown = [f"{100 * cost:.2f} % by {method}" for method, cost in report.costs.items()]
    median = f"{100 * report.median:.2f} % in the median of random layouts"
    return f"exposed misses cost {', '.join([*shown, median])}"


def _place_suites(report: PlaceReport, sides: parts.Sides) -> Iterator[Suite]:
    yield parts.kernels_suite(sides)
    cases = tuple(_place_case(one) for one in report.regions)
    yield Suite(f"predicted on {report.cpu.name}", cases)
    if report.applied and report.applied.regions:
        yield Suite(
            "measured on the relinked kernel",
            tuple(
                Case(
                    one.name,
                    Outcome.SLOWER if one.pays else Outcome.OK,
                    f"L1I misses {_count(one.shipped)} -> {_count(one.measured)}",
                    (f"predicted {_count(one.predicted)}",),
                )
                for one in report.applied.regions
            ),
        )


def _place_case(region: PlacedRegion) -> Case:
    lines = [
        f"{kind} misses {_count(one.shipped)} -> {_count(one.predicted)}"
        for kind, one in region.misses.items()
    ]
    pays = any(one.pays for one in region.misses.values())
    words = "more misses than as shipped" if pays else "no more misses than as shipped"
    return Case(region.name, Outcome.SLOWER if pays else Outcome.OK, words, tuple(lines))


def _place_tables(report: PlaceReport) -> Iterator[Table]:
    for kind in dict.fromkeys(kind for one in report.regions for kind in one.misses):
        held = [(one.name, one.misses[kind]) for one in report.regions if kind in one.misses]
        yield Table(
            f"{KINDS.get(kind, kind)} an iteration",
            ("operation", "shipped", "median", "best", "order"),
            tuple(
                (name, *map(_count, (one.shipped, one.median, one.best, one.predicted)))
                for name, one in held
            ),
            note="median and best: of the random layouts; order: as predicted for it.",
        )
    if report.regions:
        yield Table(
            f"model cycles an iteration on {report.cpu.name}",
            ("operation", "weight", "shipped", "order"),
            tuple(
                (one.name, f"{one.weight:g}", _range(one.shipped), _range(one.predicted))
                for one in report.regions
            ),
            note="From the lowest prices to the highest.",
        )
    if report.applied and report.applied.regions:
        yield _applied(report.applied)


def _applied(applied: Applied) -> Table:
    return Table(
        "L1I misses an iteration, counted while the relinked kernel ran",
        ("operation", "shipped", "predicted", "measured", "path"),
        tuple(
            (
                one.name,
                *map(_count, (one.shipped, one.predicted, one.measured)),
                f"{one.path:+.6g}",
            )
            for one in applied.regions
        ),
        note="path: own instructions an iteration that the relinked kernel executes more.",
    )


def _unlike(cpu: str, unlike: tuple[Unlike, ...]) -> Iterator[str]:
    for one in unlike:
        hangs = f"; it bears on {', '.join(one.regions)}" if one.regions else ""
        yield f"not as on a real {cpu}: {one.text}{hangs}"


def _count(value: float) -> str:
    return padded(value).strip()


def _range(interval: Interval) -> str:
    return f"{interval.low:.0f}..{interval.high:.0f}"
