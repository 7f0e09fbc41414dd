# SPDX-License-Identifier: GPL-2.0-or-later
"""What each function gained and lost from one run to another, adding up to the whole."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import Cost
from kdelta.infer.profiles.matching import Inlined, Key, Match, MatchKind, match_inlined
from kdelta.infer.profiles.profile import RegionProfile, Selection, Sort
from kdelta.spec.errors import LabError

Figure = Callable[[Cost], int]

FIGURES: dict[Sort, Figure] = {
    Sort.INSNS: lambda cost: cost.insns,
    Sort.LOADS: lambda cost: cost.loads,
    Sort.STORES: lambda cost: cost.stores,
    Sort.STRING: lambda cost: cost.string_bytes,
    Sort.SPECIAL: lambda cost: sum(cost.specials.values()),
}
"""What of a cost two runs can be compared by."""


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
            if count := figure(line.cost):
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
    for who, side, found in (
        ("A", a, [line.a for line in lines]),
        ("B", b, [line.b for line in lines]),
    ):
        must_add_up(f"the functions of {who}", found, sum(side.values(), Fraction(0)))
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


def must_add_up(what: str, parts: Sequence[Fraction], whole: Fraction) -> None:
    """Raises LabError unless the parts add up to the whole, exactly."""
    found = sum(parts, Fraction(0))
    if found != whole:
        raise LabError(
            f"{what} add up to {float(found)}, and the whole is {float(whole)}",
            "this is an error of kdelta; please report it with the output of --json",
        )


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
