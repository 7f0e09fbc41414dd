# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta place` as text that can be pasted into a mail."""

from kdelta.infer.ensembles import Interval
from kdelta.report.cut import cut_lines
from kdelta.report.cycles import cpu_line
from kdelta.report.layout import (
    failed_lines,
    finished,
    labelled,
    machine_lines,
    warning_lines,
    wrapped,
)
from kdelta.report.layout_text import FIGURE, KINDS, NAME, cut, figure, marked, unlike_lines
from kdelta.report.place_applied import applied_lines
from kdelta.report.place_model import PlacedMisses, PlaceReport
from kdelta.spec.identity import short

_METHOD = 20


def place_text(report: PlaceReport) -> str:
    """The whole report."""
    lines = [f"kdelta place: {_workloads(report)}, misses an iteration", ""]
    lines += _head(report)
    if report.regions:
        lines += ["", *_methods(report)]
        for kind in dict.fromkeys(kind for one in report.regions for kind in one.misses):
            lines += ["", *_misses(kind, report)]
        lines += cut_lines(report.cut)
        lines += ["", *_cycles(report)]
        lines += ["", *_payers(report)]
    lines += applied_lines(report)
    lines += unlike_lines(report.cpu.name, report.unlike)
    if report.notes:
        lines += ["", "notes"]
        lines += [line for note in report.notes for line in wrapped(note, "  ", "    ")]
    lines += warning_lines(_warnings(report))
    return finished(lines)


def _warnings(report: PlaceReport) -> tuple[str, ...]:
    applied = report.applied.warnings if report.applied else ()
    return tuple(dict.fromkeys((*report.warnings, *applied)))


def _workloads(report: PlaceReport) -> str:
    many = "s" if len(report.workloads) > 1 else ""
    return f"workload{many} {', '.join(report.workloads)}"


def _head(report: PlaceReport) -> list[str]:
    lines = labelled("kernel", report.kernel.spec)
    if report.kernel.failure:
        return lines + labelled("", f"no kernel: {report.kernel.failure}")
    identity = short(report.kernel.identity)
    lines += labelled("", f"release {report.kernel.release}, identity {identity}")
    lines += machine_lines(report.machine)
    lines += labelled("model", f"{cpu_line(report.cpu)}; {'; '.join(report.caches)}")
    lines += labelled("layouts", f"{report.layouts} random orders, seed {report.seed}")
    if report.file:
        filling = f", {report.padding} of them only to fill" if report.padding else ""
        text = f"{report.file}: {report.functions} names{filling}, method {report.method}"
        lines += labelled("order", text)
    elif report.regions:
        lines += labelled("order", "none is better than the layout as shipped; no file is written")
    failed = failed_lines("kernel", report.kernel.failed)
    return [*lines, "", "failed runs", *failed] if failed else lines


def _methods(report: PlaceReport) -> list[str]:
    text = (
        "what misses cost, if none is hidden, as a part of what the instructions cost; mean of the "
        f"operations by weight ({report.evaluations} orders were judged in the search)"
    )
    lines = wrapped(text, "", "  ")
    for method, cost in report.costs.items():
        taken = "  <- taken" if method == report.method else ""
        lines.append(f"  {method:<{_METHOD}}{100 * cost:>8.2f} %{taken}")
    lines.append(f"  {'random, median':<{_METHOD}}{100 * report.median:>8.2f} %")
    lines.append(f"  {'random, best':<{_METHOD}}{100 * report.best:>8.2f} %")
    return lines


def _misses(kind: str, report: PlaceReport) -> list[str]:
    held = [(one, one.misses[kind]) for one in report.regions if kind in one.misses]
    title = KINDS.get(kind, f"{kind} misses")
    missing = [(one, found) for one, found in held if _any(found)]
    if not missing:
        return [f"{title}: none, neither as shipped nor ordered nor in half of the layouts"]
    words = ("shipped", "median", "best", "order", "no sets", "bound")
    lines = wrapped(
        f"{title}; median and best of the random layouts; no sets: of the order, if lines could "
        "lie anywhere in the cache; bound: no order has less",
        "",
        "  ",
    )
    lines.append(f"{'operation':<{NAME}}" + "".join(f"{word:>{FIGURE}}" for word in words))
    lines += [_row(marked(one.name, report.unlike), found) for one, found in missing]
    quiet = [one.name for one, found in held if not _any(found)]
    if quiet:
        lines += wrapped(f"none in these columns: {', '.join(quiet)}", "", "  ")
    return lines


def _any(found: PlacedMisses) -> bool:
    return any((found.shipped, found.predicted, found.median, found.best))


def _row(name: str, found: PlacedMisses) -> str:
    values = (found.shipped, found.median, found.best, found.predicted)
    cells = "".join(f"{figure(value):>{FIGURE}}" for value in values)
    for bound in (found.associative, found.bound):
        cells += f"{'?' if bound is None else figure(bound):>{FIGURE}}"
    return f"{cut(name)}{cells}" + (" !" if found.pays else "")


def _cycles(report: PlaceReport) -> list[str]:
    text = f"model cycles an iteration on {report.cpu.name}, from the lowest prices to the highest"
    lines = [text, f"{'operation':<{NAME}}{'weight':>8}{'shipped':>21}{'order':>21}"]
    lines += [
        f"{cut(marked(one.name, report.unlike))}{one.weight:>8g}{_range(one.shipped):>21}"
        f"{_range(one.predicted):>21}"
        for one in report.regions
    ]
    return lines


def _range(interval: Interval) -> str:
    return f"{interval.low:.0f}..{interval.high:.0f}"


def _payers(report: PlaceReport) -> list[str]:
    """Who has more misses than as shipped, or that nobody has."""
    payers = report.payers()
    if not payers:
        return ["no operation has more misses of any kind than as shipped"]
    lines = ["operations that pay (!): misses an iteration more than as shipped"]
    for one in payers:
        more = [
            f"{figure(found.pays)} {KINDS.get(kind, kind)}"
            for kind, found in one.misses.items()
            if found.pays
        ]
        lines += wrapped(f"{one.name}: {', '.join(more)}", "  ", "    ")
    return lines
