# SPDX-License-Identifier: GPL-2.0-or-later
"""What each function gained and lost from one run to another, adding up to the whole."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.effects.functions import must_add_up
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
    found: dict[Key, Fraction] = {}
    for region in regions:
        passes = region.iterations if each else 1
        for line in region.chosen(selection):
            if count := int(figure(line)):
                key = (line.origin, line.name)
                found[key] = found.get(key, Fraction(0)) + Fraction(count, passes)
    return found


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
    last = min(less, limit - first)
    return frozenset([*range(first), *range(len(added) - last, len(added))])


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
