# SPDX-License-Identifier: GPL-2.0-or-later
"""What is shown of an operation, column by column: in all of a comparison, and on its first screen.

A new column is a line here, and one in docs/glossary.md.
"""

import functools
from collections.abc import Callable, Iterable, Sequence

from kdelta.infer.effects.by_code import by_code
from kdelta.infer.effects.effects import OPEN, OperationEffect, Word
from kdelta.infer.effects.estimate import is_seen
from kdelta.report import cells
from kdelta.report.document import Cell, Column, Table
from kdelta.report.effects import EffectsView
from kdelta.report.measured import MeasuredEffects
from kdelta.studies.compare import functions
from kdelta.studies.compare.answer import Pair, certainty, change
from kdelta.studies.compare.causes import cause_of
from kdelta.studies.compare.model import in_order

Columns = tuple[tuple[Column, ...], Callable[[OperationEffect], Iterable[Cell]]]
"""Columns that are filled together, and what is in them."""

_LONGEST_NAME = 24


def operations_table(
    id_: str,
    caption: str,
    operations: Iterable[OperationEffect],
    columns: Sequence[Columns],
    *,
    filtered: bool = False,
) -> Table:
    """Return a table with a row for each of these operations."""
    titles = tuple(one for titles, _ in columns for one in titles)
    rows = tuple(tuple(cell for _, fill in columns for cell in fill(one)) for one in operations)
    return Table(id_, caption, titles, rows, filtered=filtered)


def all_columns(pair: Pair) -> list[Columns]:
    """Return what is shown where there is room for all: with verdicts by other measures, where
    these are next to the path's.
    """
    ids = functions.fold_ids(in_order(pair.operations), pair.mark)

    def name(one: OperationEffect) -> list[Cell]:
        return [Cell(one.name, link=ids.get(one.name, "") if one.costs else "")]

    figures = (
        Column("base", "number", "instructions an iteration"),
        Column("other", "number", "instructions an iteration"),
        Column("diff", "number"),
        Column("%", "number", "of the base"),
        Column("spread", "number", "how far the difference may be off, over perturbed runs"),
    )
    path = Column("path", "word", "the verdict on the instructions executed")
    return [
        ((Column("operation", "name"),), name),
        ((path,), lambda one: [cells.verdict(one.verdict.word)]),
        (figures, _figures),
        ((Column("median", "number", "the difference of the median iterations"),), _median),
        *((form.columns(), functools.partial(_joined, found, form)) for found, form in pair.joined),
    ]


def _figures(one: OperationEffect) -> Iterable[Cell]:
    if one.costs:
        return cells.effect(one.costs.insns)
    ends = (cells.number(end.value if end else None) for end in (one.base, one.other))
    return (*ends, *[cells.NOTHING] * 3)


def _median(one: OperationEffect) -> list[Cell]:
    return [cells.signed(one.costs.median_insns.effect.value if one.costs else None)]


def _joined(found: MeasuredEffects, form: EffectsView, one: OperationEffect) -> Iterable[Cell]:
    return form.cells(found, one.name)


def screen_columns(pair: Pair) -> list[Columns]:
    """Return what is shown of an operation on the first screen."""
    return [
        ((Column("operation", "name"),), lambda one: [Cell(_cut(one.name))]),
        (tuple(Column(name, "number") for name in pair.names.columns), _rounded),
        ((Column("change", "number"),), lambda one: [Cell(change(one))]),
        ((Column(""),), lambda one: [Cell(certainty(one.costs) if one.costs else "")]),
        ((Column("largest part", "names"),), lambda one: [Cell(_largest_part(one))]),
    ]


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 2]}.."


def _rounded(one: OperationEffect) -> list[Cell]:
    ends = (one.costs.insns.base, one.costs.insns.other) if one.costs else ()
    return [Cell(str(round(end.value))) for end in ends]


def _largest_part(one: OperationEffect) -> str:
    cause, word = cause_of(one), one.verdict.word
    if word not in OPEN:
        return cause
    why = cause if word is Word.MIXED or by_code(one) else why_open(one)
    return f"{word}: {why}" if why else str(word)


def why_open(one: OperationEffect) -> str:
    """Return why a row has no word although its interval excludes zero, in short."""
    effect = one.costs.insns.effect if one.costs else None
    is_known = effect is not None and effect.n > 1 and is_seen(effect)
    return one.verdict.reason.partition(", ")[0] if is_known else ""
