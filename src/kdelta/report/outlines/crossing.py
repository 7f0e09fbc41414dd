# SPDX-License-Identifier: GPL-2.0-or-later
"""The outline of what crossing into the kernel costs."""

from fractions import Fraction

from kdelta.infer.crossing import OperationCrossing
from kdelta.report import figures
from kdelta.report.crossing_model import ARM_NAMES, CrossingReport
from kdelta.report.crossing_text import added_up, gain_text, share_name, share_text, shown_total
from kdelta.report.outline import Case, Outcome, Outline, Suite, Table
from kdelta.report.outlines import parts
from kdelta.report.stored import Stored

_NOTHING = "nothing can be told: fewer than two arms ran"


def crossing_outline(stored: Stored) -> Outline:
    """The outline. A gain is no verdict on a kernel, so that no case is slower."""
    report = stored.one(CrossingReport)
    found = report.found
    total = shown_total(found)
    said = crossing_sentence(total)
    spec = report.arms[0].side.spec
    return Outline(
        subject=f"{report.workload}: {said} on {spec}",
        short=(f"{said}.",),
        suites=(
            parts.kernels_suite(report.sides),
            Suite("operations", tuple(_case(one) for one in found.operations)),
        ),
        tables=(
            Table(
                "instructions an iteration",
                ("arm", "total", "user", "system", "gain"),
                tuple(_arm_row(total, at) for at in range(len(total.arms))),
            ),
            *_shares(total),
            _operations(report),
        ),
        failures=parts.failures_of(report.sides),
        facts=(*parts.kernel_facts(report.sides), *parts.lab_facts(report.machine)),
        notes=report.notes,
        warnings=report.warnings,
    )


def crossing_sentence(total: OperationCrossing) -> str:
    """What is gained in all, and what of it is what."""
    if total.whole is None:
        return _NOTHING
    first = total.arms[0].insns.value
    gained = figures.percent(-100 * total.whole.insns / first) if first else "0%"
    shares = ", ".join(f"{share_name(one)} {share_text(one)}" for one in total.shares)
    return (
        f"from {ARM_NAMES[total.whole.before]} to {ARM_NAMES[total.whole.after]} {gained} of "
        f"instructions, of which {shares}"
    )


def _case(one: OperationCrossing) -> Case:
    return Case(one.name, Outcome.OK if one.whole else Outcome.UNKNOWN, crossing_sentence(one))


def _number(value: Fraction) -> str:
    return figures.number(value)


def _arm_row(total: OperationCrossing, at: int) -> tuple[str, ...]:
    arm, first = total.arms[at], total.arms[0].insns.value
    cells = (_number(one.value) for one in (arm.insns, arm.user, arm.kernel))
    gain = figures.percent(100 * (first - arm.insns.value) / first) if first else "-"
    return (ARM_NAMES[arm.arm], *cells, gain)


def _shares(total: OperationCrossing) -> tuple[Table, ...]:
    if total.whole is None:
        return ()
    rows = [*total.shares, total.whole]
    printed = [
        added_up([getattr(share, figure) for share in rows])
        for figure in ("insns", "user", "kernel")
    ]
    exact = [[getattr(share, figure) for share in rows] for figure in ("insns", "user", "kernel")]
    cells = [
        tuple(
            parts.signed(column[at], values[at])
            for column, values in zip(printed, exact, strict=True)
        )
        for at in range(len(rows))
    ]
    *body, last = zip(rows, cells, strict=True)
    return (
        Table(
            "where the gain is from, instructions an iteration",
            ("part", "gained", "user", "system", "share"),
            tuple((share_name(one), *row, share_text(one)) for one, row in body),
            total=("whole", *last[1], share_text(last[0])),
        ),
    )


def _operations(report: CrossingReport) -> Table:
    arms = [arm.name for arm in report.arms]
    rows = []
    for one in report.found.operations:
        having = [one.arm(name) for name in arms]
        cells = (_number(arm.insns.value) if arm else "-" for arm in having)
        rows.append((one.name, *cells, gain_text(one)))
    return Table(
        "operations, instructions an iteration",
        ("operation", *(ARM_NAMES[name] for name in arms), "gain"),
        tuple(rows),
        folded=True,
    )
