# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta crossing` as text that can be pasted into a mail."""

from collections.abc import Sequence
from fractions import Fraction

from kdelta.infer.crossing import ArmCost, Crossing, OperationCrossing, Share
from kdelta.infer.ensembles import Interval
from kdelta.infer.estimate import ZERO
from kdelta.report import figures
from kdelta.report.crossing_model import ARM_NAMES, ARM_TEXTS, NOT_AFFECTED, CrossingReport
from kdelta.report.layout import (
    failed_lines,
    finished,
    labelled,
    machine_lines,
    warning_lines,
    wrapped,
)
from kdelta.report.layout_text import unlike_lines
from kdelta.report.text import COUNTED
from kdelta.spec.identity import short

ARM = 18
FIGURE = 13
SHARE = 9
NAME = 20
GAINED = 24
KIND = 16
CELL = 12

HEADS = ("stock", "mit.off", "kernel", "direct", "no entry")


def crossing_text(report: CrossingReport, operations: int = 60) -> str:
    """The whole report; `operations` is how many of those that gain most have a line of their own.
    Raises LabError if what is printed does not add up.
    """
    lines = _head(report)
    total = shown_total(report.found)
    if total.arms:
        alone = total is not report.found.total
        title = total.name if alone else f"total of {_summed(report)} operations"
        lines += ["", f"{title}, an iteration{'' if alone else ' of each'}"]
        lines += _taken_apart(total)
        lines += ["", *_specials(total)]
        lines += ["", *_others(total)]
    if len(report.found.operations) > 1:
        lines += ["", *_operations(report, operations)]
    lines += _chosen(report)
    if report.cpu:
        lines += _prices(report)
        lines += unlike_lines(report.cpu.name, report.unlike)
    if report.notes:
        lines += ["", "notes"]
        lines += [line for note in report.notes for line in wrapped(note, "  ", "    ")]
    lines += warning_lines(report.warnings)
    return finished(lines)


def shown_total(found: Crossing) -> OperationCrossing:
    """What stands for all: of a single operation, that one."""
    return found.operations[0] if len(found.operations) == 1 else found.total


def _head(report: CrossingReport) -> list[str]:
    lines = [f"kdelta crossing: workload {report.workload}, instructions an iteration", ""]
    shown = set()
    for arm in report.arms:
        if arm.side.spec in shown:
            continue
        shown.add(arm.side.spec)
        lines += labelled("kernel", arm.side.spec)
        if arm.side.failure:
            lines += labelled("", f"no kernel: {arm.side.failure}")
        else:
            lines += labelled(
                "", f"release {arm.side.release}, identity {short(arm.side.identity)}"
            )
    lines += machine_lines(report.machine) if report.machine else []
    if report.cpu:
        lines += labelled("priced", f"{report.cpu.name} ({report.cpu.title}); the path alone")
    runs = " and ".join(map(str, sorted({len(arm.side.runs) for arm in report.arms})))
    lines += labelled("runs", f"{runs} an arm, perturbed by boot, seed, memory, phase, warm-up")
    lines += labelled("counted", COUNTED)
    lines += ["", "arms"]
    for arm in report.arms:
        told = ARM_TEXTS[arm.name]
        if arm.side.failure:
            told += "; not there: see above"
        elif not any(run.ok for run in arm.side.runs):
            told += "; no run of it went well: see below"
        lines += wrapped(told, f"  {ARM_NAMES[arm.name]:<{ARM}}", " " * (ARM + 2))
    failed = [line for who, side in report.sides for line in failed_lines(who, side.failed)]
    return [*lines, "", "failed runs", *failed] if failed else lines


def _summed(report: CrossingReport) -> int:
    return len(report.found.operations) - len(report.found.left_out)


def _taken_apart(one: OperationCrossing) -> list[str]:
    """The arms as the published table has them, and where the gain is from."""
    heads = ("total", "user", "system")
    lines = [f"  {'':<{ARM}}{''.join(f'{head:>{FIGURE}}' for head in heads)}{'gain':>{SHARE}}  n"]
    first = one.arms[0].insns.value
    for arm in one.arms:
        cells = "".join(_figure(value.value) for value in (arm.insns, arm.user, arm.kernel))
        gain = figures.percent(100 * (first - arm.insns.value) / first) if first else "-"
        lines.append(f"  {ARM_NAMES[arm.arm]:<{ARM}}{cells}{gain:>{SHARE}}  {_spread(arm)}")
    return [*lines, *_shares(one), *_cycles(one)]


def _spread(arm: ArmCost) -> str:
    return figures.spread(arm.insns)


def _shares(one: OperationCrossing) -> list[str]:
    if one.whole is None:
        return []
    heads = ("gained", "user", "system")
    lines = ["", f"  {'':<{ARM}}{''.join(f'{head:>{FIGURE}}' for head in heads)}{'share':>{SHARE}}"]
    rows = [*one.shares, one.whole]
    printed = {
        figure: added_up([getattr(share, figure) for share in rows])
        for figure in ("insns", "user", "kernel")
    }
    for at, share in enumerate(rows):
        name = "whole" if share is one.whole else share_name(share)
        cells = "".join(
            figures.signed(printed[figure][at], FIGURE, getattr(share, figure), aligned=False)
            for figure in ("insns", "user", "kernel")
        )
        lines.append(f"  {name:<{ARM}}{cells}{share_text(share):>{SHARE}}")
    return lines


def _cycles(one: OperationCrossing) -> list[str]:
    """Model cycles of the path, and what each part gains of them."""
    rows = [(ARM_NAMES[arm.arm], arm.cycles) for arm in one.arms if arm.cycles]
    whole = [one.whole] if one.whole else []
    rows += [
        (f"gained: {'whole' if share is one.whole else share_name(share)}", share.cycles)
        for share in (*one.shares, *whole)
        if share.cycles
    ]
    lines = [f"  {name:<{GAINED}}{_interval(cycles)}" for name, cycles in rows if cycles]
    return ["", "  model cycles of the path, from the lowest prices to the highest", *lines] * bool(
        lines
    )


def added_up(values: Sequence[Fraction]) -> list[int]:
    """The values in hundredths, so that all but the last add up to it."""
    total = figures.scaled(values[-1])
    return [*figures.rounded_to_total(values[:-1], total), total]


def share_name(share: Share) -> str:
    """What was left out between two arms."""
    return " + ".join(share.parts)


def share_text(share: Share) -> str:
    """How much of the whole gain it is, in per cent."""
    return "-" if share.of_whole is None else f"{float(100 * share.of_whole):.1f}%"


def _specials(one: OperationCrossing) -> list[str]:
    kinds = sorted({kind for arm in one.arms for kind in arm.specials})
    heads = "".join(f"{HEADS[list(ARM_NAMES).index(arm.arm)]:>{CELL}}" for arm in one.arms)
    lines = ["special instructions of the tasks' own work, an iteration", f"  {'':<{KIND}}{heads}"]
    for kind in kinds:
        cells = "".join(
            f"{figures.number(arm.amounts.get(kind, ZERO)):>{CELL}}" for arm in one.arms
        )
        lines.append(f"  {kind:<{KIND}}{cells}")
    return lines if kinds else [lines[0], "  none"]


def _others(one: OperationCrossing) -> list[str]:
    lines = [
        "executed on the tasks' time, an iteration",
        f"  {'':<{ARM}}{'interrupts':>{FIGURE}}{'other tasks':>{FIGURE}}",
    ]
    lines += [
        f"  {ARM_NAMES[arm.arm]:<{ARM}}{_figure(arm.interrupts.value)}{_figure(arm.other.value)}"
        for arm in one.arms
    ]
    return lines


def _operations(report: CrossingReport, limit: int) -> list[str]:
    ranked = sorted(report.found.operations, key=gained, reverse=True)
    arms = [arm.name for arm in report.arms]
    heads = "".join(f"{HEADS[list(ARM_NAMES).index(arm)]:>9}" for arm in arms)
    lines = ["operations, most gained first", f"  {'':<{NAME}}{heads}{'gain':>7}"]
    for one in ranked[:limit]:
        cells = ""
        for name in arms:
            found = one.arm(name)
            cells += f"{figures.short(found.insns.value) if found else '-':>9}"
        lines.append(f"  {one.name:<{NAME}}{cells}{gain_text(one):>7}")
    if len(ranked) > limit:
        lines.append(f"  and {len(ranked) - limit} more")
    if report.found.left_out:
        names = ", ".join(report.found.left_out)
        lines += wrapped(f"not in the total, since not every run has it: {names}", "  ", "    ")
    return lines


def gained(one: OperationCrossing) -> Fraction:
    """Which part of its work in the first arm the last one does without."""
    first = one.arms[0].insns.value
    return one.whole.insns / first if one.whole and first else ZERO


def gain_text(one: OperationCrossing) -> str:
    """The same in per cent."""
    return f"{float(100 * gained(one)):.1f}%" if one.whole else "-"


def _chosen(report: CrossingReport) -> list[str]:
    """What the kernels said of vulnerabilities, each answer once."""
    lines = ["", "what the kernels chose (vulnerabilities)"]
    said: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for arm in report.arms:
        if arm.chose:
            said.setdefault(tuple(sorted(arm.chose.items())), []).append(ARM_NAMES[arm.name])
    for chose, arms in said.items():
        lines += wrapped(f"{', '.join(arms)}:", "  ", "    ")
        affected = [(name, words) for name, words in chose if words != NOT_AFFECTED]
        for name, words in affected:
            lines += wrapped(f"{name}: {words}", "    ", "      ")
        if len(affected) < len(chose):
            lines.append(f"    not affected by {len(chose) - len(affected)} of {len(chose)}")
    return lines if said else []


def _prices(report: CrossingReport) -> list[str]:
    lines = ["", "prices that nobody published or measured, cycles beyond an instruction"]
    for kind, price in report.found.assumed.items():
        lines.append(f"  {kind:<{KIND}}{_interval(price)} (assumed by the CPU's file)")
    for kind, price in report.found.unpriced.items():
        lines.append(f"  {kind:<{KIND}}{_interval(price)} (the file has none: from least to most)")
    return lines if len(lines) > 2 else []


def _figure(value: Fraction) -> str:
    return figures.plain(figures.scaled(value, figures.unit_of(abs(value))), FIGURE, aligned=False)


def _interval(found: Interval) -> str:
    ends = [f"{end:.0f}" if abs(end) >= 100 else f"{end:.1f}" for end in (found.low, found.high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
