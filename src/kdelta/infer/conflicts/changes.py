# SPDX-License-Identifier: GPL-2.0-or-later
"""How what CPUs contend for in each iteration differs between the runs of two kernels."""

import enum
import itertools
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.conflicts import Conflicts, ContendedLine, ContestedField
from kdelta.counts.memory_names import PAGE_CONTENT, PAGE_TABLE, STACK
from kdelta.infer.conflicts.interrupts import all_sent

_OF_CPU = re.compile(r" of CPU \d+")
_FALSE = " (false)"

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

    function  the one that writes or reads it most often, where it is not contended for itself
    next_to   and what is, in its line
    """

    place: str
    base: Often
    other: Often
    function: str = ""
    next_to: str = ""


class RegionChange(msgspec.Struct, frozen=True):
    """What differs in a region: fields that only the other kernel contends for, or accesses in a
    line that it contends for, those that it does not any more, and those of both that it writes
    more or less often. Interrupts that are sent more or less often are added or gone. `open`:
    those of which the runs of a kernel differ, and memory without a name. left, joined: fields that
    are read in contended lines of both kernels, but of one alone next to that field of the struct.
    """

    region: str
    contention: Contention
    added: tuple[FieldChange, ...] = ()
    gone: tuple[FieldChange, ...] = ()
    moved: tuple[FieldChange, ...] = ()
    open: tuple[FieldChange, ...] = ()
    placed: tuple[FieldChange, ...] = ()
    parted: tuple[FieldChange, ...] = ()
    left: tuple[FieldChange, ...] = ()
    joined: tuple[FieldChange, ...] = ()


Sent = Mapping[str, Fraction]
"""Interrupts an iteration, by kind."""


class SharedField(msgspec.Struct, frozen=True):
    """A field of lines that are contended for, and how often it is accessed. function, next_to: see
    FieldChange; line: the key of that one. is_skewed: its variable or object begins in the middle
    of a line.
    """

    place: str
    often: Often
    function: str = ""
    next_to: str = ""
    line: str = ""
    is_skewed: bool = False

    def __add__(self, other: "SharedField") -> "SharedField":
        """Return the same field of both's lines."""
        is_skewed = self.is_skewed or other.is_skewed
        return msgspec.structs.replace(self, often=self.often + other.often, is_skewed=is_skewed)


Fields = Mapping[str, SharedField]
"""By what other kernels have them by, too: a field's name, whichever CPU's it is; and, of an object
that has no names, the function that writes it."""


class Contended(msgspec.Struct, frozen=True):
    """What the CPUs of one run contended for in a region, and the interrupts that they sent."""

    conflicts: Conflicts
    sent: Sent = {}

    @property
    def accesses(self) -> Fraction:
        """Return how often an iteration accesses what is contended for in each, wherever variables
        are, and interrupts.
        """
        fields = sum((one.often.accesses for one in self.fields.values()), Fraction(0))
        return fields + all_sent(self.sent)

    @property
    def fields(self) -> "Fields":
        """Return the fields that are contended for in each iteration wherever variables are, and
        those that are accessed in their lines.
        """
        return self._fields(is_placed=False)

    @property
    def placed(self) -> "Fields":
        """Return those that are so for their place in memory alone."""
        return self._fields(is_placed=True)

    @property
    def next_to(self) -> "Mapping[tuple[str, str], SharedField]":
        """Return what is read next to which field of the same struct, by the keys of both."""
        found = {}
        for line in self.conflicts.steady:
            named = [one for one in line.fields if one.is_named]
            for one, near in itertools.product(named, named):
                if near.is_neighbor > one.is_neighbor and _owner(near.place) == _owner(one.place):
                    _, shared = self._shared(line, near)
                    found[_key(line, one), _key(line, near)] = msgspec.structs.replace(
                        shared,
                        next_to=one.place,
                        is_skewed=bool(one.skew_bytes or near.skew_bytes or near.is_placed),
                    )
        return found

    def _fields(self, *, is_placed: bool) -> "Fields":
        fields: dict[str, SharedField] = {}
        for line in self.conflicts.steady:
            for one in line.fields:
                if (line.is_placed or one.is_placed) is is_placed:
                    key, found = self._shared(line, one)
                    fields[key] = fields[key] + found if key in fields else found
        return fields

    def _shared(self, line: ContendedLine, one: ContestedField) -> tuple[str, SharedField]:
        counts = (Fraction(n, self.conflicts.iterations) for n in (one.accesses, one.writes))
        found = SharedField(_everywhere(one.name), Often(*counts), is_skewed=bool(one.skew_bytes))
        if one.is_neighbor:
            found = msgspec.structs.replace(
                found,
                function=one.function,
                next_to=_everywhere(line.name),
                line=_key(line, line.fields[0]),
            )
        return _key(line, one), found


def _key(line: ContendedLine, one: ContestedField) -> str:
    key = _everywhere(one.place) if one.is_named else f"{one.function}()"
    return key if line.is_true and not one.is_neighbor else key + _FALSE


def _owner(place: str) -> str:
    return _everywhere(place).partition(".")[0]


def _everywhere(name: str) -> str:
    """A name as other kernels and CPUs have it, too."""
    return _OF_CPU.sub("", name).replace("?", "")


class _Found(enum.Enum):
    """What became of a field from one kernel to another."""

    ADDED = enum.auto()
    GONE = enum.auto()
    MOVED = enum.auto()
    SAME = enum.auto()
    OPEN = enum.auto()
    PLACED = enum.auto()
    PARTED = enum.auto()


class _Run(msgspec.Struct, frozen=True):
    """What one run contends for, by keys that all runs have: see Contended."""

    fields: Fields
    placed: Fields


_FieldsOf = Callable[[_Run], Fields]


def compare_contended(base: Sequence[Contended], other: Sequence[Contended]) -> RegionChange:
    """Return how a region of one kernel differs from the same of another, by one or more runs of
    each. A field came or went if all runs say so.
    """
    keys = _keys((*base, *other))
    sides = [
        [_Run(_renamed(one.fields, keys), _renamed(one.placed, keys)) for one in side]
        for side in (base, other)
    ]
    found = _found(sides, lambda one: one.fields)
    placed = _found(sides, lambda one: one.placed)
    for kind in dict.fromkeys(kind for one in (*base, *other) for kind in one.sent):
        sent = [[_sent(one, kind) for one in side] for side in (base, other)]
        often = [_mean(side) for side in sent]
        found[_of_interrupts(*sent)].append(FieldChange(f"{kind} interrupts", often[0], often[1]))
    region = base[0].conflicts.region
    lists = (found[of] for of in (_Found.ADDED, _Found.GONE, _Found.MOVED, _Found.OPEN))
    where = {
        "placed": (*found[_Found.PLACED], *placed[_Found.PLACED], *placed[_Found.ADDED]),
        "parted": (*found[_Found.PARTED], *placed[_Found.PARTED], *placed[_Found.GONE]),
    }
    where |= {"left": tuple(_left(base, other, keys))}
    where |= {"joined": tuple(_turned(one) for one in _left(other, base, keys))}
    every = RegionChange(region, Contention.SAME, *map(tuple, lists), **where)
    cut = any(one.conflicts.is_cut for one in (*base, *other))
    word = Contention.UNRESOLVED if cut else _contention(every)
    return msgspec.structs.replace(every, contention=word)


def _left(
    base: Sequence[Contended], other: Sequence[Contended], keys: Mapping[str, str]
) -> Iterator[FieldChange]:
    """Yield what all runs of the first read next to a field, and all of the other elsewhere."""
    ours, theirs = (
        [{(keys[to], keys[key]): at for (to, key), at in one.next_to.items()} for one in side]
        for side in (base, other)
    )
    there = [_renamed(one.fields, keys) for one in other]
    for pair, at in ours[0].items():
        firm = [one.get(pair) for one in ours] + [one.get(key) for one in there for key in pair]
        if all(one and not one.is_skewed for one in firm) and not any(
            pair in one for one in theirs
        ):
            means = (
                _mean([one[pair].often for one in ours]),
                _mean([one[pair[1]].often for one in there]),
            )
            yield FieldChange(at.place, *means, at.function, at.next_to)


def _turned(change: FieldChange) -> FieldChange:
    return msgspec.structs.replace(change, base=change.other, other=change.base)


def _keys(runs: Iterable[Contended]) -> dict[str, str]:
    """By key the one that is used for it: members of a union that share a name are one field."""
    used: dict[str, str] = {}
    found: dict[str, str] = {}
    for key in (key for run in runs for fields in (run.fields, run.placed) for key in fields):
        names = _names(key)
        found[key] = next((used[name] for name in names if name in used), key)
        for name in names:
            used.setdefault(name, found[key])
    return found


def _names(key: str) -> list[str]:
    """What a field of a union goes by: "a.b/c" by "a.b" and "a.c"."""
    owner, dot, names = key.removesuffix(_FALSE).partition(".")
    is_false = _FALSE if key.endswith(_FALSE) else ""
    owner = "page" if owner == PAGE_TABLE else owner
    return [f"{owner}{dot}{name}{is_false}" for name in names.split("/") if name != "..."]


def _renamed(fields: Fields, keys: Mapping[str, str]) -> Fields:
    found: dict[str, SharedField] = {}
    for key, one in fields.items():
        field = msgspec.structs.replace(one, line=keys.get(one.line, one.line))
        found[keys[key]] = found[keys[key]] + field if keys[key] in found else field
    return found


def _found(sides: Sequence[Sequence[_Run]], of: _FieldsOf) -> dict[_Found, list[FieldChange]]:
    found: dict[_Found, dict[str, FieldChange]] = {word: {} for word in _Found}
    lines: dict[str, str] = {}
    fields = [[of(one) for one in side] for side in sides]
    runs = [one for side in sides for one in side]
    for key in dict.fromkeys(key for side in fields for one in side for key in one):
        rows = [[one.get(key) for one in side] for side in fields]
        known = next(one for row in rows for one in row if one)
        often = [[one.often if one else None for one in row] for row in rows]
        word = _of_field(*often)
        if word is not _Found.SAME and not _is_firm(known.place):
            word = _Found.OPEN
        elif known.next_to and word in _BY_PLACE:
            lacking = sides[word is _Found.GONE]
            if any(key in one.fields or key in one.placed for one in lacking):
                word = _Found.SAME  # whether by its place or not
            elif _is_moved(key, known.line, runs):
                word = _BY_PLACE[word]
        lines[key] = known.line
        means = [_mean(side) for side in often]
        found[word][key] = FieldChange(
            known.place, means[0], means[1], known.function, known.next_to
        )
    return {
        word: sorted(
            (one for key, one in changes.items() if _is_apart(lines[key], changes)),
            key=lambda one: one.place == STACK,
        )
        for word, changes in found.items()
    }


_BY_PLACE = {_Found.ADDED: _Found.PLACED, _Found.GONE: _Found.PARTED}


def _is_moved(key: str, line: str, runs: Iterable[_Run]) -> bool:
    """Whether where a variable or object begins can be why a field of it is accessed in a contended
    line of one kernel alone: in the other one it is so by its place, or begins in a line's middle.
    """
    return any(
        key in one.placed or ((contended := one.fields.get(line)) and contended.is_skewed)
        for one in runs
    )


def _is_apart(line: str, changes: Container[str]) -> bool:
    """Whether what became of a field is not said by what became of its line. A line of which no
    byte is shared may be one by that field alone.
    """
    return line not in changes or line.endswith(_FALSE)


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
