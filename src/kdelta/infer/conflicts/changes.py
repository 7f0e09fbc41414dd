# SPDX-License-Identifier: GPL-2.0-or-later
"""How what CPUs contend for in each iteration differs between two kernels."""

import enum
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.conflicts import Conflicts

_OF_CPU = re.compile(r" of CPU \d+")


_LEAST = Fraction(1, 2)
"""Of what happens in each iteration: a difference of as much is one."""


class Contention(enum.StrEnum):
    """How CPUs contend in a region, compared with another kernel: for more fields or fewer, for
    others, for the same and write them more or less often, or the same.
    """

    MORE = "more"
    FEWER = "fewer"
    OTHERS = "others"
    MORE_OFTEN = "more often"
    LESS_OFTEN = "less often"
    SAME = "same"


class Often(msgspec.Struct, frozen=True):
    """How often all CPUs access and write a field an iteration."""

    accesses: Fraction = Fraction(0)
    writes: Fraction = Fraction(0)

    def __add__(self, other: "Often") -> "Often":
        """Return both."""
        return Often(self.accesses + other.accesses, self.writes + other.writes)


NEVER = Often()


class FieldChange(msgspec.Struct, frozen=True):
    """A field that is contended for in one of the kernels, or in both but not as often; or a kind
    of interrupt that CPUs send each other.
    """

    place: str
    base: Often
    other: Often


class RegionChange(msgspec.Struct, frozen=True):
    """What differs in a region: fields that only the other kernel contends for, those that it does
    not any more, and those of both that it writes more or less often. Interrupts that are sent more
    or less often are added or gone.
    """

    region: str
    contention: Contention
    added: tuple[FieldChange, ...] = ()
    gone: tuple[FieldChange, ...] = ()
    moved: tuple[FieldChange, ...] = ()


Sent = Mapping[str, Fraction]
"""Interrupts an iteration, by kind."""


def compare_conflicts(
    base: Conflicts, other: Conflicts, sent: tuple[Sent, Sent] = ({}, {})
) -> RegionChange:
    """Return how a region of one kernel differs from the same of another. sent: by each of them."""
    ours, theirs = _fields(base), _fields(other)
    interrupts = _interrupts(*sent)
    added = [FieldChange(name, NEVER, n) for key, (name, n) in theirs.items() if key not in ours]
    added += [one for one in interrupts if one.other.writes > one.base.writes]
    gone = [FieldChange(name, n, NEVER) for key, (name, n) in ours.items() if key not in theirs]
    gone += [one for one in interrupts if one.other.writes < one.base.writes]
    moved = [
        FieldChange(name, ours[key][1], often)
        for key, (name, often) in theirs.items()
        if key in ours and abs(often.writes - ours[key][1].writes) >= _LEAST
    ]
    contention = _contention(added, gone, moved)
    return RegionChange(base.region, contention, tuple(added), tuple(gone), tuple(moved))


def _contention(
    added: Sequence[FieldChange], gone: Sequence[FieldChange], moved: Sequence[FieldChange]
) -> Contention:
    if added or gone:
        if added and gone:
            return Contention.OTHERS
        return Contention.MORE if added else Contention.FEWER
    change = sum((one.other.writes - one.base.writes for one in moved), Fraction(0))
    if not moved or abs(change) < _LEAST:
        return Contention.SAME
    return Contention.MORE_OFTEN if change > 0 else Contention.LESS_OFTEN


def _interrupts(base: Sent, other: Sent) -> list[FieldChange]:
    """Those that one kernel sends more often by one in two iterations at least."""
    found = []
    for kind in dict.fromkeys((*base, *other)):
        ours, theirs = (Often(one.get(kind, Fraction(0)), one.get(kind, Fraction(0)))
                        for one in (base, other))  # fmt: skip
        if abs(theirs.writes - ours.writes) >= _LEAST:
            found.append(FieldChange(f"{kind} interrupts", ours, theirs))
    return found


def compare_all(
    base: Iterable[Conflicts],
    other: Iterable[Conflicts],
    sent: tuple[Mapping[str, Sent], Mapping[str, Sent]] = ({}, {}),
) -> tuple[RegionChange, ...]:
    """Return that of each region that both kernels have, in the order of the first. sent: by each
    of them, by region.
    """
    theirs = {one.region: one for one in other}
    return tuple(
        compare_conflicts(
            one,
            theirs[one.region],
            (sent[0].get(one.region, {}), sent[1].get(one.region, {})),
        )
        for one in base
        if one.region in theirs
    )


def _fields(found: Conflicts) -> dict[str, tuple[str, Often]]:
    """The fields that are contended for in each iteration, and how often, by what other kernels
    have them by, too: a field's name, whichever CPU's it is; and, of an object that has no names,
    the function that writes it.
    """
    fields: dict[str, tuple[str, Often]] = {}
    for line in found.steady:
        for one in line.fields:
            place = _OF_CPU.sub("", one.name).replace("?", "")
            key = place if one.is_named else f"{one.function}()"
            key += "" if line.is_true else " (false)"
            known, often = fields.get(key, (place, NEVER))
            counts = (Fraction(n, found.iterations) for n in (one.accesses, one.writes))
            fields[key] = known, often + Often(*counts)
    return fields
