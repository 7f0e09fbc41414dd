# SPDX-License-Identifier: GPL-2.0-or-later
"""How what CPUs contend for in each iteration differs between two kernels."""

import enum
import re
from collections.abc import Iterable
from fractions import Fraction

import msgspec

from kdelta.counts.conflicts import Conflicts

_OF_CPU = re.compile(r" of CPU \d+")


class Contention(enum.StrEnum):
    """How much two CPUs contend in a region, compared with another kernel.

    Lines have the last word: who contends for a line more often is not worse off by a known factor.
    """

    MORE = "more"
    FEWER = "fewer"
    OTHERS = "others"
    SAME = "same"


class FieldChange(msgspec.Struct, frozen=True):
    """A field that is contended for in one of the kernels, or in both but not as often; accesses of
    all CPUs an iteration, 0 for none.
    """

    place: str
    base: Fraction
    other: Fraction


class RegionChange(msgspec.Struct, frozen=True):
    """What differs in a region: fields that only the other kernel contends for, those that it does
    not any more, and those of both that it accesses more or less often.
    """

    region: str
    contention: Contention
    added: tuple[FieldChange, ...] = ()
    gone: tuple[FieldChange, ...] = ()
    moved: tuple[FieldChange, ...] = ()


def compare_conflicts(base: Conflicts, other: Conflicts) -> RegionChange:
    """Return how a region of one kernel differs from the same of another."""
    ours, theirs = _fields(base), _fields(other)
    never = Fraction(0)
    added = [FieldChange(name, never, n) for key, (name, n) in theirs.items() if key not in ours]
    gone = [FieldChange(name, n, never) for key, (name, n) in ours.items() if key not in theirs]
    moved = [
        FieldChange(name, ours[key][1], often)
        for key, (name, often) in theirs.items()
        if key in ours and often != ours[key][1]
    ]
    contention = Contention.SAME
    if added or gone:
        contention = Contention.OTHERS
    if not gone and added:
        contention = Contention.MORE
    if not added and gone:
        contention = Contention.FEWER
    return RegionChange(base.region, contention, tuple(added), tuple(gone), tuple(moved))


def compare_all(base: Iterable[Conflicts], other: Iterable[Conflicts]) -> tuple[RegionChange, ...]:
    """Return that of each region that both kernels have, in the order of the first."""
    theirs = {one.region: one for one in other}
    return tuple(compare_conflicts(one, theirs[one.region]) for one in base if one.region in theirs)


def _fields(found: Conflicts) -> dict[str, tuple[str, Fraction]]:
    """The fields that are contended for in each iteration, with their accesses an iteration, by
    what other kernels have them by, too: a field's name, whichever CPU's it is; and, of an object
    that has no names, the function that accesses it.
    """
    fields: dict[str, tuple[str, Fraction]] = {}
    for line in found.steady:
        for one in line.fields:
            place = _OF_CPU.sub("", one.name).replace("?", "")
            key = place if one.is_named else f"{one.function}()"
            key += "" if line.is_true else " (false)"
            known, often = fields.get(key, (place, Fraction(0)))
            fields[key] = known, often + Fraction(one.accesses, found.iterations)
    return fields
