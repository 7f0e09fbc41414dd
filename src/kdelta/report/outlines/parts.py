# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts that the outlines of several kinds have: kernels, the machine, sums that add up."""

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from kdelta.infer.effects import Word
from kdelta.infer.estimate import Estimate, Quantity
from kdelta.infer.functions import FunctionChange, FunctionEffect
from kdelta.report import figures
from kdelta.report.comparison import worth_a_line
from kdelta.report.layout import function_name, machine_facts
from kdelta.report.model import Facts, Side
from kdelta.report.outline import Case, Failure, Outcome, Suite, Table
from kdelta.spec.errors import LabError
from kdelta.spec.identity import short

Sides = Sequence[tuple[str, Side]]
"""Kernels, and what each is called."""

WORDS = (
    Word.SLOWER,
    Word.FASTER,
    Word.MIXED,
    Word.NOT_STEADY,
    Word.DEPENDS_ON_STATE,
    Word.DEPENDS_ON_SPEED,
    Word.PLACEMENT_ONLY,
    Word.NOT_SLOWER,
    Word.SAME,
    Word.UNRESOLVED,
    Word.NOT_COMPARABLE,
)
"""The words of verdicts, the worst first."""

NAMED = 3
"""So many are named in a sentence."""

_LONG = 60


def plain(hundredths: int) -> str:
    """A figure."""
    return figures.plain(hundredths, 0, aligned=False)


def signed(hundredths: int, value: Fraction) -> str:
    """A difference; `value` is what was rounded."""
    return figures.signed(hundredths, 1, value, aligned=False)


def sides_of(cost: Quantity) -> tuple[str, str, str]:
    """Base, other and their difference, which add up as printed."""
    base, other = figures.pair(cost)
    return plain(base), plain(other), signed(other - base, cost.effect.value)


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def tallied(words: Iterable[Word]) -> str:
    """How many there are of each word, the worst first: "1 slower, 3 same"."""
    found = Counter(words)
    return ", ".join(f"{found[word]} {word}" for word in WORDS if found[word])


def is_some(effect: Estimate) -> bool:
    """Whether an effect is more than its spread."""
    return effect.low > 0 or effect.high < 0


def sign_outcome(effects: Iterable[Estimate]) -> Outcome:
    """Slower if any of these is more, beyond its spread."""
    return Outcome.SLOWER if any(one.low > 0 for one in effects) else Outcome.OK


def brief_name(side: Side) -> str:
    """What a kernel is called where there is little room: its release if the spec is long."""
    if len(side.spec) <= _LONG:
        return side.spec
    return side.release or f"...{side.spec[-_LONG:]}"


def kernels_suite(sides: Sides) -> Suite:
    """A case for each kernel: whether it was there, and its runs went well."""
    return Suite("kernels", tuple(_kernel_case(who, side) for who, side in sides))


def _kernel_case(who: str, side: Side) -> Case:
    name = f"kernel {who}"
    if side.failure:
        return Case(name, Outcome.FAILED, f"{side.spec}: no kernel: {side.failure}")
    failed = [f"{one.run.word}: {one.run.detail}".rstrip(": ") for one in side.failed]
    if failed:
        verdict = f"{side.spec}: {len(failed)} of {len(side.runs)} runs failed"
        return Case(name, Outcome.FAILED, verdict, tuple(dict.fromkeys(failed)))
    return Case(name, Outcome.OK, f"{side.spec}: {counted(len(side.runs), 'run')}")


def failures_of(sides: Sides) -> tuple[Failure, ...]:
    """What of these kernels was not built, booted or run."""
    found = []
    for who, side in sides:
        if side.failure:
            found.append(Failure(f"{who}: no kernel: {side.failure}"))
        for one in side.failed:
            reason = f": {one.run.detail}" if one.run.detail else ""
            text = f"{who}, perturbation {one.run.perturbation}: {one.run.word}{reason}"
            found.append(Failure(f"{text} (run {one.run.id})", one.console_tail))
    return tuple(found)


def kernel_facts(sides: Sides) -> list[tuple[str, str]]:
    """Each kernel as a fact: its spec, release and identity."""
    return [
        (who, f"{side.spec} ({side.release}, identity {short(side.identity)})")
        if side.identity
        else (who, side.spec)
        for who, side in sides
    ]


def lab_facts(machine: Facts) -> list[tuple[str, str]]:
    """The machine and its CPU."""
    return list(machine_facts(machine))


def functions_table(
    name: str, unit: str, whole: Quantity, functions: Sequence[FunctionEffect], limit: int
) -> Table | None:
    """The functions that account for a difference, in rows that add up to it as printed; None if
    nothing changed. LabError if they do not add up.
    """
    base, other = figures.pair(whole)
    total, rounding = other - base, figures.unit_of(whole.base.value, whole.other.value)
    named, rest = worth_a_line(functions, limit)
    values = [one.cost.effect.value for one in named]
    if rest:
        values.append(sum((one.cost.effect.value for one in rest), Fraction(0)))
    if not values:
        return None
    must_add_up(name, values, whole.effect.value)
    printed = figures.rounded_to_total(values, total, rounding)
    rows = [_function_row(one, diff, rounding) for one, diff in zip(named, printed, strict=False)]
    if rest:
        rows.append((f"other functions ({len(rest)})", signed(printed[-1], values[-1]), "", "", ""))
    last = ("total", signed(total, whole.effect.value), figures.percent(whole.percent))
    return Table(
        title=f"{name}: functions, {unit}",
        heads=("function", "diff", "%", "base", "other"),
        rows=tuple(rows),
        total=(*last, plain(base), plain(other)),
        folded=True,
    )


def must_add_up(name: str, values: Sequence[Fraction], total: Fraction) -> None:
    """LabError unless these are all of it, exactly; so only rounding is left to be evened out."""
    found = sum(values, Fraction(0))
    if found != total:
        raise LabError(
            f"{name}: the rows add up to {float(found)}, and the total is {float(total)}",
            "this is an error of kdelta; please report it with the output of --format json",
        )


def _function_row(function: FunctionEffect, diff: int, rounding: int) -> tuple[str, ...]:
    # The other side is rounded, and the base follows: so the row adds up as printed.
    other = figures.scaled(function.cost.other.value, rounding)
    part = figures.percent(function.cost.percent)
    cells = part, plain(other - diff), plain(other)
    if function.change is FunctionChange.ADDED:
        cells = "added", "-", plain(diff)
    elif function.change is FunctionChange.REMOVED:
        cells = "removed", plain(-diff), "-"
    name = function_name(function.name, function.origin, function.moved_from)
    return name, signed(diff, function.cost.effect.value), *cells
