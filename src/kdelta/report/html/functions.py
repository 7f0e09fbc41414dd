# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions account for an operation's difference, and what else than those changed."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from kdelta.infer.effects import BackgroundEffect, OperationEffect, Word
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

_WORDS = {Word.FASTER, Word.SLOWER, Word.PLACEMENT_ONLY, Word.UNRESOLVED}

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
    """What else than all instructions differs: by kind, each with its difference."""
    costs = [(one.name, one.costs) for one in operations if one.costs is not None]
    kinds = [
        (title, {name: getattr(cost, field) for name, cost in costs}) for field, title in _KINDS
    ]
    specials = dict.fromkeys(kind for _, cost in costs for kind in cost.specials)
    kinds += [
        (kind, {name: cost.specials[kind] for name, cost in costs if kind in cost.specials})
        for kind in specials
    ]
    shown = [
        (title, found) for title, found in kinds if any(q.effect.value for q in found.values())
    ]
    if not shown:
        return
    columns = (Column("operation", "name"), *(Column(title, "number") for title, _ in shown))
    rows = tuple(
        (Cell(name), *(_kind_cell(found.get(name)) for _, found in shown)) for name, _ in costs
    )
    caption = "Differences an iteration, by kind; nought is left out"
    table = Table(f"kinds{mark}", caption, columns, rows)
    yield Fold("Loads, stores, special instructions, and who executed them", (table,))


def _kind_cell(found: Quantity | None) -> Cell:
    if found is None or not found.effect.value:
        return Cell("", 0.0)
    return Cell(words.signed(found.effect.value), float(found.effect.value))
