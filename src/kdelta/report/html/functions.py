# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions account for an operation's difference, and what else than those changed."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from kdelta.infer.effects import BackgroundEffect, Costs, OperationEffect, Word
from kdelta.infer.estimate import Quantity
from kdelta.infer.functions import FunctionEffect
from kdelta.report import figures
from kdelta.report.comparison import BACKGROUND_NAMES
from kdelta.report.html import words
from kdelta.report.html.model import Cell, Column, Fold, Table
from kdelta.report.layout import function_name
from kdelta.spec.errors import LabError

MOST = 25
"""Functions that are named of one operation; what is left is in one row."""

_WORDS = set(Word) - {Word.SAME}

COLUMNS = (
    Column("function", "name"),
    Column("diff", "number", "instructions an iteration"),
    Column("%", "number", "of the function's own"),
    Column("base", "number"),
    Column("other", "number"),
)

_KINDS = (
    ("kernel_insns", "kernel"),
    ("user_insns", "user"),
    ("loads", "loads"),
    ("stores", "stores"),
    ("string_bytes", "string bytes"),
    ("interrupts", "interrupts"),
    ("background", "other tasks"),
)


def changed(operation: OperationEffect) -> bool:
    """Whether an operation is taken apart."""
    return bool(
        operation.verdict.word in _WORDS and operation.costs and operation.costs.insns.effect.value
    )


def folds(operations: Sequence[OperationEffect], mark: str) -> list[Fold]:
    """For each operation that changed, the functions that did it; LabError if the rows do not add
    up as they are shown.
    """
    return [
        _fold(one.name, one.costs.insns, one.functions, mark)
        for one in operations
        if changed(one) and one.costs
    ]


def background_folds(background: Sequence[BackgroundEffect], mark: str) -> list[Fold]:
    """The same of interrupts and other tasks."""
    return [
        _fold(f"{BACKGROUND_NAMES[one.context]}, a virtual second", one.rate, one.functions, mark)
        for one in background
        if one.verdict.word in _WORDS and one.rate.effect.value
    ]


def _fold(name: str, whole: Quantity, functions: Sequence[FunctionEffect], mark: str) -> Fold:
    part = words.percent(whole.percent)
    summary = f"{name}: {words.signed(whole.effect.value)} instructions ({part})"
    table = functions_table(f"of-{name}{mark}", name, whole, functions)
    return Fold(summary, (table,), id=f"functions-of-{name}{mark}")


def functions_table(
    id_: str, name: str, whole: Quantity, functions: Sequence[FunctionEffect]
) -> Table:
    """The functions that changed, the largest first, in rows that add up to the whole as shown."""
    moved = [one for one in functions if one.cost.effect.value]
    named, rest = moved[:MOST], moved[MOST:]
    base, other = figures.pair(whole)
    unit = figures.unit_of(whole.base.value, whole.other.value)
    values = [one.cost.effect.value for one in named]
    values.append(sum((one.cost.effect.value for one in rest), Fraction(0)))
    shown = figures.rounded_to_total(values, other - base, unit)
    if sum(shown) != other - base:
        raise LabError(
            f"{name}: the rows add up to {sum(shown)} hundredths, and it has {other - base}",
            "this is an error of kdelta; please report it with the output of --json",
        )
    rows = [_row(one, diff) for one, diff in zip(named, shown, strict=False)]
    if rest:
        text = f"{words.counted(len(rest), 'other function')}"
        rows.append((Cell(text), _diff(shown[-1]), Cell(""), Cell(""), Cell("")))
    total = (
        Cell("total, as in the table"),
        _diff(other - base),
        Cell(words.percent(whole.percent)),
        Cell(words.number(whole.base.value)),
        Cell(words.number(whole.other.value)),
    )
    return Table(f"table-{id_}", f"Functions of {name}", COLUMNS, tuple(rows), (total,))


def _diff(hundredths: int) -> Cell:
    return Cell(words.hundredths(hundredths), float(hundredths))


def _row(one: FunctionEffect, diff: int) -> tuple[Cell, ...]:
    cost, part = one.cost, one.cost.percent
    what = {"added": "added", "removed": "removed"}.get(one.change.value, words.percent(part))
    return (
        Cell(function_name(one.name, one.origin, one.moved_from)),
        _diff(diff),
        Cell(what, float("inf") if part is None else float(part)),
        Cell(words.number(cost.base.value), float(cost.base.value)),
        Cell(words.number(cost.other.value), float(cost.other.value)),
    )


def kinds_folds(operations: Sequence[OperationEffect], mark: str) -> Iterator[Fold]:
    """What else than all instructions differs: a row for each operation and kind."""
    rows = [
        _kind_row(one.name, kind, found)
        for one in operations
        if one.costs is not None
        for kind, found in _kinds(one.costs)
        if found.effect.value
    ]
    if not rows:
        return
    columns = (
        Column("operation", "name"),
        Column("kind", "word"),
        Column("base", "number"),
        Column("other", "number"),
        Column("diff", "number"),
        Column("%", "number"),
        Column("spread", "number"),
    )
    caption = "Differences an iteration, by kind; what is the same is left out"
    table = Table(f"kinds{mark}", caption, columns, tuple(rows), filtered=True)
    yield Fold("Loads, stores, special instructions, and who executed them", (table,))


def _kinds(costs: Costs) -> Iterator[tuple[str, Quantity]]:
    for field, title in _KINDS:
        yield title, getattr(costs, field)
    yield from costs.specials.items()


def _kind_row(name: str, kind: str, found: Quantity) -> tuple[Cell, ...]:
    part, effect = found.percent, found.effect
    return (
        Cell(name),
        Cell(kind, tone="same"),
        Cell(words.number(found.base.value), float(found.base.value)),
        Cell(words.number(found.other.value), float(found.other.value)),
        Cell(words.signed(effect.value), float(effect.value)),
        Cell(words.percent(part), float("inf") if part is None else float(part)),
        Cell(words.spread(effect), float(effect.half_width)),
    )
