# SPDX-License-Identifier: GPL-2.0-or-later
"""One table of several kernels that are compared with one base: a column each."""

from collections.abc import Iterator, Sequence

from kdelta.infer.effects.effects import FIRM, OperationEffect, Word
from kdelta.report import words
from kdelta.report.document import Block, Cell, Column, Facts, Items, Section, Table
from kdelta.report.words import TONES
from kdelta.studies.compare.answer import Pair, certainty, change
from kdelta.studies.compare.causes import besides_insns, is_by_insns

_NAMED = 6


def variants_section(pairs: Sequence[Pair], mark: str = "") -> Section:
    """Return the operations that any of these kernels changes, and by how much each; pairs: of one
    base. mark: ends the section's id.
    """
    report = pairs[0].report
    title = f"All of them on {report.cpu.name}" if report.cpu else "All of them"
    effects = [{one.name: one for one in pair.of(*Word)} for pair in pairs]
    names = list(dict.fromkeys(name for found in effects for name in found))
    rows = {name: [found.get(name) for found in effects] for name in names}
    shown = {name: row for name, row in rows.items() if _is_listed(row, pairs)}
    known = report.names
    titles, columns = known.names, known.columns
    others = zip(titles[1:], pairs, strict=True)
    facts = [(name, f"differs in {pair.differ_in}") for name, pair in others]
    blocks: list[Block] = [Facts((("base", titles[0]), *facts))]
    if shown:
        blocks.append(_table(columns, shown, mark))
        if besides := tuple(_besides(columns[1:], shown)):
            blocks.append(Items(besides))
    if same := [name for name in names if name not in shown]:
        blocks.append(Items((f"the same, or less than it matters, in all: {', '.join(same)}",)))
    return Section(f"variants{mark}", title, tuple(blocks))


def _is_listed(row: Sequence[OperationEffect | None], pairs: Sequence[Pair]) -> bool:
    """Whether any of the kernels changes the operation, or may."""
    return any(
        one is not None
        and one.costs is not None
        and one.verdict.word is not Word.SAME
        and (one.verdict.word not in FIRM or pair.matters(one))
        for one, pair in zip(row, pairs, strict=True)
    )


def _table(names: Sequence[str], rows: dict[str, list[OperationEffect | None]], mark: str) -> Table:
    columns = (Column("operation", "name"), *(Column(name, "number") for name in names))
    cells = tuple((Cell(name), _base(row), *map(_cell, row)) for name, row in rows.items())
    caption = "Instructions an iteration of the base, and by how much others change them"
    return Table(f"variants-table{mark}", caption, columns, cells)


def _besides(names: Sequence[str], rows: dict[str, list[OperationEffect | None]]) -> Iterator[str]:
    """Yield for each kernel what decides besides instructions, or against them."""
    for at, name in enumerate(names):
        found = [(row[at], besides_insns(row[at])) for row in rows.values()]
        texts = [f"{one.name} {', '.join(terms)}" for one, terms in found if one and terms]
        if texts:
            yield f"besides instructions, {name}: {words.some(texts, _NAMED)}"


def _base(row: Sequence[OperationEffect | None]) -> Cell:
    figure = next((one.base for one in row if one and one.base), None)
    return Cell(str(round(figure.value)) if figure else "")


def _cell(one: OperationEffect | None) -> Cell:
    """The change with how far it may be off, after the word of a row that it does not decide."""
    if one is None:
        return Cell("")
    word = one.verdict.word
    if word is Word.SAME:
        return Cell("same", tone=TONES[word])
    figure = f"{change(one)} {certainty(one.costs)}" if one.costs else ""
    is_plain = word in (Word.FASTER, Word.SLOWER) and is_by_insns(one)
    return Cell(figure if is_plain else f"{word} {figure}".rstrip(), tone=TONES[word])
