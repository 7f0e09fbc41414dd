# SPDX-License-Identifier: GPL-2.0-or-later
"""How what CPUs contend for in each iteration differs between the runs of two kernels."""

import enum
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.conflicts import Conflicts, ContendedLine
from kdelta.counts.memory_names import PAGE_CONTENT
from kdelta.infer.conflicts.interrupts import all_sent

_OF_CPU = re.compile(r" of CPU \d+")


_LEAST = Fraction(1, 2)
"""Of what happens in each iteration: a difference of as much is one."""


class Contention(enum.StrEnum):
    """How CPUs contend in a region, compared with another kernel: for more fields or fewer, for
    others, for the same and write them more or less often, or the same; or only which variables
    share a line; or runs of one kernel differ, so that they do not tell.
    """

    MORE = "more"
    FEWER = "fewer"
    OTHERS = "others"
    MORE_OFTEN = "more often"
    LESS_OFTEN = "less often"
    PLACEMENT = "data placement only"
    SAME = "same"
    UNRESOLVED = "unresolved"


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
    of interrupt that CPUs send each other. How often: the mean over a kernel's runs.
    """

    place: str
    base: Often
    other: Often


class RegionChange(msgspec.Struct, frozen=True):
    """What differs in a region: fields that only the other kernel contends for, those that it does
    not any more, and those of both that it writes more or less often. Interrupts that are sent more
    or less often are added or gone. `open`: those of which the runs of a kernel differ, and
    memory without a name.
    """

    region: str
    contention: Contention
    added: tuple[FieldChange, ...] = ()
    gone: tuple[FieldChange, ...] = ()
    moved: tuple[FieldChange, ...] = ()
    open: tuple[FieldChange, ...] = ()
    placed: tuple[FieldChange, ...] = ()
    parted: tuple[FieldChange, ...] = ()


Sent = Mapping[str, Fraction]
"""Interrupts an iteration, by kind."""


Fields = Mapping[str, tuple[str, Often]]
"""Fields, and how often they are accessed, by what other kernels have them by, too: a field's name,
whichever CPU's it is; and, of an object that has no names, the function that writes it."""


class Contended(msgspec.Struct, frozen=True):
    """What the CPUs of one run contended for in a region, and the interrupts that they sent."""

    conflicts: Conflicts
    sent: Sent = {}

    @property
    def accesses(self) -> Fraction:
        """Return how often an iteration accesses what is contended for in each, wherever variables
        are, and interrupts.
        """
        fields = sum((often.accesses for _, often in self.fields.values()), Fraction(0))
        return fields + all_sent(self.sent)

    @property
    def fields(self) -> "Fields":
        """Return the fields that are contended for in each iteration wherever variables are."""
        return self._fields(line for line in self.conflicts.steady if not line.is_placed)

    @property
    def placed(self) -> "Fields":
        """Return variables that are so for their place in memory alone."""
        return self._fields(line for line in self.conflicts.steady if line.is_placed)

    def _fields(self, lines: Iterable[ContendedLine]) -> "Fields":
        fields: dict[str, tuple[str, Often]] = {}
        iterations = self.conflicts.iterations
        for line in lines:
            for one in line.fields:
                place = _OF_CPU.sub("", one.name).replace("?", "")
                key = place if one.is_named else f"{one.function}()"
                key += "" if line.is_true else " (false)"
                known, often = fields.get(key, (place, NEVER))
                counts = (Fraction(n, iterations) for n in (one.accesses, one.writes))
                fields[key] = known, often + Often(*counts)
        return fields


class _Found(enum.Enum):
    """What became of a field from one kernel to another."""

    ADDED = enum.auto()
    GONE = enum.auto()
    MOVED = enum.auto()
    SAME = enum.auto()
    OPEN = enum.auto()


_FieldsOf = Callable[[Contended], Fields]


def compare_contended(base: Sequence[Contended], other: Sequence[Contended]) -> RegionChange:
    """Return how a region of one kernel differs from the same of another, by one or more runs of
    each. A field came or went if all runs say so.
    """
    found = _found(base, other, lambda one: one.fields)
    placed = _found(base, other, lambda one: one.placed)
    for kind in dict.fromkeys(kind for one in (*base, *other) for kind in one.sent):
        sent = [[_sent(one, kind) for one in side] for side in (base, other)]
        found[_of_interrupts(*sent)].append(FieldChange(f"{kind} interrupts", *map(_mean, sent)))
    region = base[0].conflicts.region
    lists = (tuple(found[of]) for of in (_Found.ADDED, _Found.GONE, _Found.MOVED, _Found.OPEN))
    where = {"placed": tuple(placed[_Found.ADDED]), "parted": tuple(placed[_Found.GONE])}
    every = RegionChange(region, Contention.SAME, *lists, **where)
    cut = any(one.conflicts.is_cut for one in (*base, *other))
    word = Contention.UNRESOLVED if cut else _contention(every)
    return msgspec.structs.replace(every, contention=word)


def _found(
    base: Sequence[Contended], other: Sequence[Contended], of: _FieldsOf
) -> dict[_Found, list[FieldChange]]:
    found: dict[_Found, list[FieldChange]] = {word: [] for word in _Found}
    fields = [[of(one) for one in side] for side in (base, other)]
    for key in dict.fromkeys(key for side in fields for one in side for key in one):
        rows = [[one.get(key) for one in side] for side in fields]
        place = next(one[0] for row in rows for one in row if one)
        often = [[one[1] if one else None for one in row] for row in rows]
        word = _of_field(*often)
        if word is not _Found.SAME and not _is_firm(place):
            word = _Found.OPEN
        found[word].append(FieldChange(place, *map(_mean, often)))
    return found


def _is_firm(place: str) -> bool:
    """Whether a place is the same memory in another kernel. Which pages a heap that is not known
    has, and which of its objects lie in a line, depends on all that was allocated before.
    """
    return not place.startswith(PAGE_CONTENT)


def _of_field(base: Sequence[Often | None], other: Sequence[Often | None]) -> _Found:
    if any(base) and any(other):
        writes = [[one.writes if one else Fraction(0) for one in side] for side in (base, other)]
        return _Found.MOVED if _moves(*writes) else _Found.SAME
    if all(base):
        return _Found.GONE
    return _Found.ADDED if all(other) else _Found.OPEN


def _of_interrupts(base: Sequence[Often], other: Sequence[Often]) -> _Found:
    sides = [[one.writes for one in side] for side in (base, other)]
    if not _moves(*sides):
        return _Found.SAME
    return _Found.ADDED if max(sides[1]) > max(sides[0]) else _Found.GONE


def _moves(base: Sequence[Fraction], other: Sequence[Fraction]) -> bool:
    """Whether each run of one is so far from each run of the other."""
    return min(other) - max(base) >= _LEAST or min(base) - max(other) >= _LEAST


def _sent(one: Contended, kind: str) -> Often:
    count = one.sent.get(kind, Fraction(0))
    return Often(count, count)


def _mean(runs: Sequence[Often | None]) -> Often:
    every = sum((one for one in runs if one), NEVER)
    return Often(every.accesses / len(runs), every.writes / len(runs))


def _contention(change: RegionChange) -> Contention:
    if change.added and change.gone:
        return Contention.OTHERS
    if change.added:
        return Contention.MORE
    if change.open:
        return Contention.UNRESOLVED
    if change.gone:
        return Contention.FEWER
    moved = sum((one.other.writes - one.base.writes for one in change.moved), Fraction(0))
    if abs(moved) < _LEAST:
        return Contention.PLACEMENT if change.placed or change.parted else Contention.SAME
    return Contention.MORE_OFTEN if moved > 0 else Contention.LESS_OFTEN


def compare_all(
    base: Iterable[Sequence[Contended]], other: Iterable[Sequence[Contended]]
) -> tuple[RegionChange, ...]:
    """Return that of each region that both kernels have, in the order of the first: the runs of a
    region together.
    """
    theirs = {runs[0].conflicts.region: runs for runs in other}
    return tuple(
        compare_contended(runs, theirs[runs[0].conflicts.region])
        for runs in base
        if runs[0].conflicts.region in theirs
    )
