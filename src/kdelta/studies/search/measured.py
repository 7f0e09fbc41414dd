# SPDX-License-Identifier: GPL-2.0-or-later
"""What measures without a form of their own say of changes that were found, in documents."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.estimate import Estimate, is_seen
from kdelta.report import cells
from kdelta.report import effects as measures
from kdelta.report.document import Block, Cell, Column, Prose, Section, Suite, Table
from kdelta.report.figures import in_per_cent
from kdelta.report.measured import Effect, MeasuredEffects


class MeasuredChange(msgspec.Struct, frozen=True):
    """A change that was found: its effects on the path, and what measures say of it."""

    name: str
    path: Mapping[str, Estimate]
    measured: tuple[MeasuredEffects, ...] = ()

    def by(self, measure: str) -> tuple[Effect, ...]:
        """Return the effects by one measure."""
        return tuple(
            effect for one in self.measured if one.measure == measure for effect in one.effects
        )


def sections(
    changes: Sequence[MeasuredChange],
    column: str,
    whole: Sequence[MeasuredEffects] = (),
    who: tuple[str, str] = ("before", "after"),
) -> Iterator[Section]:
    """Yield a section for each measure: both ends where these were measured, and the changes.

    column: what a change is. whole: from the one end to the other. who: what the ends are called.
    """
    ends = {one.measure: one for one in whole}
    every = ends | {one.measure: one for change in changes for one in change.measured}
    for name, one in every.items():
        more = tuple(_blocks(one, changes, column))
        if name in ends:
            title = f"By {name}, from {who[0]} to {who[1]}"
            yield measures.section(ends[name], title, who=who, more=more)
        else:
            yield Section(name.replace(" ", "-"), f"By {name}", more)


def _blocks(
    measure: MeasuredEffects, changes: Sequence[MeasuredChange], column: str
) -> Iterator[Block]:
    """Yield what changes do: where it is not the same, or the path is not."""
    known = [change for change in changes if change.by(measure.measure)]
    rows = tuple(
        (
            Cell(change.name),
            Cell(one.region),
            cells.ends(one.base),
            cells.ends(one.other),
            *measures.step_cells(one),
            Cell(one.reason),
        )
        for change in known
        for one in change.by(measure.measure)
        if one.word is not Word.SAME or _is_of_path(one.region, change)
    )
    columns = (
        Column(column, "name"),
        Column("operation", "name"),
        *(Column(who, "number", measure.unit) for who in ("before", "after")),
        *measures.step_columns(measure.measure),
        Column("why"),
    )
    caption = f"Where the path or the {measure.measure} of a {column} are not the same"
    if rows:
        yield Table(f"changes-{measure.measure}", caption, columns, rows, filtered=True)
    elif known:
        yield Prose(f"Of each {column} that was measured, path and {measure.measure} are the same.")
    if unknown := [change.name for change in changes if change not in known]:
        yield Prose(f"No {measure.measure} are known of {', '.join(unknown)}.")


def _is_of_path(region: str, change: MeasuredChange) -> bool:
    return region in change.path and is_seen(change.path[region])


def measured_suites(changes: Sequence[MeasuredChange]) -> tuple[Suite, ...]:
    """Return what a CI reads of changes, one for each and each measure."""
    return tuple(
        measures.suite(one, f"{change.name}, ")
        for change in changes
        for one in change.measured
        if one.effects
    )


def sentence(measured: Sequence[MeasuredEffects], region: str) -> str:
    """Return what measures say of a region, to be appended to a sentence on its path."""
    found = [
        f"{one.measure} {effect.word}"
        + (f" ({in_per_cent(effect.change)})" if effect.change else "")
        for one in measured
        for effect in one.effects
        if effect.region == region
    ]
    return f"; {', '.join(found)}" if found else ""
