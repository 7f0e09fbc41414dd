# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions account for an operation's difference, and what changed besides; the configs."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.infer.effects.costs import Costs
from kdelta.infer.effects.effects import BackgroundEffect, OperationEffect, Word
from kdelta.infer.effects.estimate import Quantity
from kdelta.infer.effects.functions import FunctionEffect
from kdelta.report import cells, figures, words
from kdelta.report.document import Cell, Column, Fold, Prose, Section, Table
from kdelta.report.model import ReportedOption
from kdelta.studies.compare.causes import Cause, causes
from kdelta.studies.compare.model import Compared

MOST = 25
"""Functions that are named of one operation; what is left is in one row."""

_WORDS = set(Word) - {Word.SAME}

COLUMNS = (
    Column("function", "name"),
    Column("diff", "number", sums=True),
    *(Column(title, "number") for title in ("%", "base", "other")),
)

_KINDS = (
    ("kernel_insns", "kernel"),
    ("user_insns", "user"),
    ("loads", "loads"),
    ("stores", "stores"),
    ("string_bytes", "string bytes"),
    ("interrupts", "interrupts"),
    ("background", "other tasks"),
    ("left", "left to others"),
)

_OFF = "n"
LEAST_SHOWN = Fraction(5, 1000)
"""Instructions from which on a function has a row of its own: fewer print as 0."""


def changed(operation: OperationEffect) -> bool:
    """Whether an operation is broken down."""
    return bool(
        operation.verdict.word in _WORDS and operation.costs and operation.costs.insns.effect.value
    )


def sharing(operations: Sequence[OperationEffect]) -> list[list[OperationEffect]]:
    """Return the operations that changed, those together whose functions changed all alike."""
    groups = by_key((_account(one), one) for one in operations if changed(one))
    return list(groups.values())


def _account(one: OperationEffect) -> tuple[object, ...]:
    """What its table of functions has, but for the total."""
    return tuple(
        (found.origin, found.name, found.cost.base.value, found.cost.other.value)
        for found in one.functions
        if found.cost.effect.value
    )


def fold_ids(operations: Sequence[OperationEffect], mark: str) -> dict[str, str]:
    """Return the id of the fold with the functions of each operation that changed, by its name."""
    return {
        one.name: f"functions-of-{group[0].name}{mark}"
        for group in sharing(operations)
        for one in group
    }


def folds(operations: Sequence[OperationEffect], mark: str, most: int = MOST) -> list[Fold]:
    """For each operation that changed, the `most` functions that did it; LabError if the rows do
    not add up as they are shown.
    """
    return [_shared_fold(group, mark, most) for group in sharing(operations)]


def _shared_fold(group: Sequence[OperationEffect], mark: str, most: int) -> Fold:
    """The functions of operations that change alike: their totals differ in what is the same."""
    first = group[0]
    assert first.costs
    found = _fold(first.name, (first.costs.insns, first.functions), mark, most)
    if len(group) == 1:
        return found
    diff = cells.sides(first.costs.insns)[2].text
    names = ", ".join(one.name for one in group)
    summary = f"{diff} instructions, shared by {len(group)} operations: {names}"
    (table,) = found.blocks
    assert isinstance(table, Table)
    table = msgspec.structs.replace(table, total=(*table.total[:2], *[cells.NOTHING] * 3))
    return msgspec.structs.replace(found, summary=summary, blocks=(table,))


def background_folds(
    background: Sequence[BackgroundEffect], mark: str, most: int = MOST
) -> list[Fold]:
    """The same of interrupts and other tasks."""
    return [
        msgspec.structs.replace(
            _fold(_background_name(one), (one.rate, one.functions), mark, most), always=True
        )
        for one in background
        if one.verdict.word in _WORDS and one.rate.effect.value
    ]


def _background_name(one: BackgroundEffect) -> str:
    return f"{words.OTHERS[one.context]}, a virtual second"


def _fold(
    name: str, account: tuple[Quantity, Sequence[FunctionEffect]], mark: str, most: int
) -> Fold:
    whole, functions = account
    part = figures.percent(whole.percent)
    summary = f"{name}: {cells.sides(whole)[2].text} instructions ({part})"
    table = functions_table(f"of-{name}{mark}", name, whole, functions, most)
    return Fold(summary, (table,), id=f"functions-of-{name}{mark}")


def functions_table(
    id_: str, name: str, whole: Quantity, functions: Sequence[FunctionEffect], most: int = MOST
) -> Table:
    """The functions that changed, the largest first, in rows that add up to the whole as shown;
    what belongs together is one row.
    """
    moved = sorted(causes(functions), key=lambda one: -abs(one.value))
    large = sum(abs(one.value) >= LEAST_SHOWN for one in moved)
    named, rest = moved[: min(most, large)], moved[min(most, large) :]
    base, other = figures.pair(whole)
    unit = figures.unit_of(whole.base.value, whole.other.value)
    values = [one.value for one in named]
    values.append(sum((one.cost.effect.value for one in functions), -sum(values, Fraction(0))))
    shown = figures.shared(name, values, whole.effect.value, other - base, unit)
    rows = [_row(one, diff, unit) for one, diff in zip(named, shown, strict=False)]
    if rest:
        count = sum(len(one.functions) for one in rest)
        text = words.counted(count, "other function")
        rows.append((Cell(text), cells.difference(shown[-1], values[-1]), *[cells.NOTHING] * 3))
    shown_base, shown_other, diff = cells.sides(whole)
    total = (Cell("total"), diff, cells.percent(whole.percent), shown_base, shown_other)
    return Table(f"table-{id_}", f"Functions of {name}", COLUMNS, tuple(rows), total)


def _row(one: Cause, diff: int, unit: int) -> tuple[Cell, ...]:
    # The other side is rounded, and the base follows: so the row adds up as printed.
    exact = one.base
    other = figures.scaled(one.other, unit)
    base, part = other - diff, cells.percent(100 * one.value / exact if exact else None)
    if not exact:
        base, other, part = 0, diff, Cell("from 0", float("inf"))
    elif not one.other:
        base, other, part = -diff, 0, Cell("to 0", -100.0)
    return (
        Cell(one.title),
        cells.difference(diff, one.value),
        part,
        cells.rounded(base),
        cells.rounded(other),
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
        *(Column(title, "number") for title in ("base", "other", "diff", "%", "spread")),
    )
    caption = "Differences an iteration, by kind; what is the same is left out"
    table = Table(f"kinds{mark}", caption, columns, tuple(rows), filtered=True)
    yield Fold("Loads, stores, special instructions, and who executed them", (table,))


def _kinds(costs: Costs) -> Iterator[tuple[str, Quantity]]:
    for field, title in _KINDS:
        if found := getattr(costs, field):
            yield title, found
    yield from costs.specials.items()


def _kind_row(name: str, kind: str, found: Quantity) -> tuple[Cell, ...]:
    return (Cell(name), Cell(kind, tone="same"), *cells.effect(found))


def config_sections(compared: Compared, title: str, mark: str) -> Iterator[Section]:
    """Yield the section, where both configs are known."""
    changes = compared.config
    if changes is None:
        return
    if not changes:
        same = Prose("They do not: both are the same.")
        yield Section(f"config{mark}", title, (same,), detail=True)
        return
    columns = (
        Column("option", "name"),
        Column("base"),
        Column("other"),
        Column("what", "word"),
    )
    rows = tuple(
        (Cell(one.option), Cell(one.base), Cell(one.other), Cell(_change(one), tone="same"))
        for one in changes
    )
    count = words.counted(len(changes), "option has", "options have")
    lead = Prose(
        f"{count} another value. kdelta ablate finds which of them account for the difference, "
        "where both kernels are built from one tree."
    )
    table = Table(f"config-table{mark}", "Options", columns, rows, filtered=True)
    blocks = (lead, Fold("All of them", (table,)))
    yield Section(f"config{mark}", title, blocks, detail=True)


def _change(one: ReportedOption) -> str:
    if one.base == _OFF:
        return "switched on"
    return "switched off" if one.other == _OFF else "changed"
