# SPDX-License-Identifier: GPL-2.0-or-later
"""How what CPUs contend for differs between two kernels, in words."""

from collections.abc import Iterable
from fractions import Fraction

from kdelta.infer.conflicts.changes import Contention, FieldChange, Often, RegionChange
from kdelta.report import cells
from kdelta.report.words import some

_NAMED = 3
_MOVED = 2


def because(change: RegionChange) -> str:
    """Return the fields that a word is about, or why there is none, and what is no longer next to
    which field, or is now; empty where all are alike.
    """
    near = [
        *(f"{_by_whom(one, one.base)} no longer next to {one.next_to}" for one in change.left),
        *(f"{_by_whom(one, one.other)} now next to {one.next_to}" for one in change.joined),
    ]
    return "; ".join(filter(None, (_because(change), some(near, _MOVED) if near else "")))


def _because(change: RegionChange) -> str:
    marked = _marked(change.added, change.gone)
    if marked:
        return some(marked, _NAMED)
    if change.contention is Contention.PLACEMENT:
        placed = _marked(change.placed, change.parted)
        return f"shares a line with other variables: {some(placed, _NAMED)}"
    if change.contention is Contention.UNRESOLVED:
        places = [one.place for one in change.open]
        if not places:
            return "more memory is accessed than is followed: lines may be missing"
        return f"not in all of a kernel's runs, or without a name: {some(places, _NAMED)}"
    moved = sorted(change.moved, key=lambda one: -abs(one.other.writes - one.base.writes))
    return some([_often(one) for one in moved], _MOVED) if moved else ""


def _marked(more: Iterable[FieldChange], less: Iterable[FieldChange]) -> list[str]:
    return [
        *(f"+{named(one, one.other)}" for one in more),
        *(f"-{named(one, one.base)}" for one in less),
    ]


def named(change: FieldChange, often: Often) -> str:
    """Return a field as a sentence names it, with who accesses it so often next to what."""
    return (
        _by_whom(change, often, f", next to {change.next_to}") if change.next_to else change.place
    )


def _by_whom(change: FieldChange, often: Often, more: str = "") -> str:
    is_written = often.writes >= Fraction(1, 2)
    how, count = ("written", often.writes) if is_written else ("read", often.accesses)
    times = cells.number(count).text
    place = change.place.removesuffix(f" by {change.function}")
    return f"{place} ({how} {times} times by {change.function}{more})"


def _often(change: FieldChange) -> str:
    base, other = (cells.number(one.writes).text for one in (change.base, change.other))
    return f"{change.place} {base} -> {other} writes"
