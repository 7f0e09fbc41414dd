# SPDX-License-Identifier: GPL-2.0-or-later
"""What each function gained and lost from one run to another, adding up to the whole; and what may
have become of functions that only one side executed, derived from who called them: guesses, by
which nothing is summed up.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.counts.profile import Profile
from kdelta.infer.effects.functions import must_add_up
from kdelta.infer.profiles.calls import TASK, merged_calls, source_name
from kdelta.infer.profiles.matching import Inlined, Key, Match, MatchKind, match_inlined
from kdelta.infer.profiles.profile import FIGURES, RegionProfile, Selection, Sort

COMPARED = (Sort.INSNS, Sort.LOADS, Sort.STORES, Sort.STRING, Sort.SPECIAL)
"""What two runs can be compared by: whole numbers."""


class DiffLine(msgspec.Struct, frozen=True):
    """One function on both sides. The figures are whole numbers of the regions, or means of one
    pass of each region.
    """

    match: Match
    a: Fraction
    b: Fraction

    @property
    def added(self) -> Fraction:
        """B's less A's."""
        return self.b - self.a

    @property
    def percent(self) -> Fraction:
        """What was added, in per cent of the function's own in A; 0 for one that A has not."""
        return 100 * self.added / self.a if self.a else Fraction(0)


def figures_of(
    regions: Iterable[RegionProfile], selection: Selection, by: Sort, *, each: bool
) -> dict[Key, Fraction]:
    """What each function did in all regions; each: in one pass of each of them."""
    figure = FIGURES[by]
    found = by_key(
        ((line.origin, line.name), Fraction(count, region.iterations if each else 1))
        for region in regions
        for line in region.chosen(selection)
        if (count := int(figure(line)))
    )
    return {key: sum(counts, Fraction(0)) for key, counts in found.items()}


def diff_lines(
    a: Mapping[Key, Fraction],
    b: Mapping[Key, Fraction],
    inlined: tuple[Inlined, Inlined] = ({}, {}),
) -> tuple[DiffLine, ...]:
    """All functions, most added first; LabError unless they add up to what the sides have."""
    matches, ours, theirs = match_inlined(a, b, inlined)
    lines = [
        DiffLine(
            match,
            sum((ours[key] for key in match.a), Fraction(0)),
            sum((theirs[key] for key in match.b), Fraction(0)),
        )
        for match in matches
    ]
    lines.sort(key=lambda line: (-line.added, line.match.name, line.match.origin))
    must_add_up("the functions of A", (line.a for line in lines), sum(a.values(), Fraction(0)))
    must_add_up("the functions of B", (line.b for line in lines), sum(b.values(), Fraction(0)))
    return tuple(lines)


def total_line(lines: Iterable[DiffLine]) -> DiffLine:
    """All of them as one."""
    found = list(lines)
    return DiffLine(
        Match("", "total", (), (), MatchKind.SAME),
        sum((line.a for line in found), Fraction(0)),
        sum((line.b for line in found), Fraction(0)),
    )


def both_ends(added: Sequence[Fraction | int], limit: int) -> frozenset[int]:
    """Of figures in order, most added first, those that are named: half of `limit` from either end,
    more from one where the other has fewer; all if `limit` is zero, or leaves out one alone.
    """
    if not limit or len(added) <= limit + 1:
        return frozenset(range(len(added)))
    more = sum(one > 0 for one in added)
    less = sum(one < 0 for one in added)
    first = min(more, max((limit + 1) // 2, limit - less))
    return frozenset([*range(first), *range(len(added) - min(less, limit - first), len(added))])


def unlike_iterations(
    a: Iterable[RegionProfile], b: Iterable[RegionProfile]
) -> dict[str, tuple[int, int]]:
    """The regions that went through another number of passes on either side, and how many."""
    ours = {region.name: region.iterations for region in a}
    return {
        region.name: (ours[region.name], region.iterations)
        for region in b
        if region.name in ours and ours[region.name] != region.iterations
    }


_PART = Fraction(1, 3)
"""How much of what a function did its callers must have gained, for it to be taken as inlined."""


class HintOutcome(enum.StrEnum):
    """What may have become of it."""

    INLINED = "inlined"
    OUTLINED = "no more inlined"
    RENAMED = "renamed"


class Hint(msgspec.Struct, frozen=True):
    """A function that one side alone executed, and what may have become of it, or where it may have
    come from: `others` are its callers, which gained or lost `added`; or what it is called on the
    other side.
    """

    outcome: HintOutcome
    key: Key
    figure: Fraction
    others: tuple[Key, ...]
    added: Fraction


def callers_of(
    profiles: Sequence[Profile], selection: Selection, jumps_on: frozenset[Key] = frozenset()
) -> dict[Key, frozenset[Key]]:
    """Of each function that was called, who called it, itself or through one of `jumps_on`."""
    calls = merged_calls(profiles, selection, source_name, leaves=jumps_on)
    found = by_key(
        (calls.key[node], calls.key[parent])
        for node, parent in enumerate(calls.parent)
        if parent >= 0 and calls.key[parent][0] != TASK and calls.key[parent] != calls.key[node]
    )
    return {key: frozenset(row) for key, row in found.items()}


def hints(
    lines: Iterable[DiffLine],
    a_callers: Mapping[Key, frozenset[Key]],
    b_callers: Mapping[Key, frozenset[Key]],
) -> tuple[Hint, ...]:
    """Guesses about what one side alone executed, the largest first.

    renamed: one function of A alone and one of B alone have the very same callers, and no other
    such functions have these. inlined: all its callers are on both sides, and those of B do more by
    a third of what it did, or more. no more inlined: the same from the other side.
    """
    known = {(line.match.origin, line.match.name): line for line in lines}
    gone = [line for line in known.values() if line.match.how is MatchKind.ONLY_A]
    come = [line for line in known.values() if line.match.how is MatchKind.ONLY_B]
    found = _renamed(gone, come, a_callers, b_callers)
    taken = {key for hint in found for key in (hint.key, *hint.others)}
    for group, callers, outcome, sign in (
        (gone, a_callers, HintOutcome.INLINED, 1),
        (come, b_callers, HintOutcome.OUTLINED, -1),
    ):
        for line in group:
            key = (line.match.origin, line.match.name)
            hosts = sorted(callers.get(key, ()))
            if key in taken or not hosts or not all(host in known for host in hosts):
                continue
            both = all(known[host].a and known[host].b for host in hosts)
            added = sum((known[host].added for host in hosts), Fraction(0))
            figure = max(line.a, line.b)
            if both and sign * added >= figure * _PART:
                found.append(Hint(outcome, key, figure, tuple(hosts), added))
    return tuple(sorted(found, key=lambda hint: (-hint.figure, hint.key)))


def _renamed(
    gone: Sequence[DiffLine],
    come: Sequence[DiffLine],
    a_callers: Mapping[Key, frozenset[Key]],
    b_callers: Mapping[Key, frozenset[Key]],
) -> list[Hint]:
    sides = [
        _by_callers(group, callers) for group, callers in ((gone, a_callers), (come, b_callers))
    ]
    found = []
    for callers, lines in sides[0].items():
        others = sides[1].get(callers, [])
        if len(lines) == len(others) == 1:
            line, other = lines[0], others[0]
            found.append(
                Hint(
                    HintOutcome.RENAMED,
                    (line.match.origin, line.match.name),
                    line.a,
                    ((other.match.origin, other.match.name),),
                    other.b - line.a,
                )
            )
    return found


def _by_callers(
    lines: Iterable[DiffLine], callers: Mapping[Key, frozenset[Key]]
) -> dict[frozenset[Key], list[DiffLine]]:
    return by_key(
        (who, line) for line in lines if (who := callers.get((line.match.origin, line.match.name)))
    )
