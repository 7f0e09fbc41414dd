# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions of two kernels are one and the same, as far as their names show.

A compiler clones, splits and renames functions, and says so in suffixes; a config moves code
between modules and the image. Each function of either side is in exactly one match, so whatever is
summed up by matches keeps its sum. Sides may be swapped: the same matches come out, mirrored.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.infer.effects.functions import moved_keys, strip_suffixes

Key = tuple[str, str]
"""(origin, name as the symbol has it)"""


class MatchKind(enum.StrEnum):
    """What the functions of a match have to do with each other."""

    SAME = "same"  # one function of one name
    VARIANT = "variant"  # of one name in the source, with other suffixes: a clone, or a part
    MOVED = "moved"  # of one name, from a module to the image or between modules or programs
    INLINED = "inlined"  # on one side into others, as debug info says
    ONLY_A = "only in A"
    ONLY_B = "only in B"


class Match(msgspec.Struct, frozen=True):
    """Functions that are one in the source: those of A, those of B. `origin` is B's, or A's for
    what B has not; `name` has no suffixes. `hosts`: into which functions it was inlined.
    """

    origin: str
    name: str
    a: tuple[Key, ...]
    b: tuple[Key, ...]
    how: MatchKind
    hosts: tuple[Key, ...] = ()

    @property
    def moved_from(self) -> str | None:
        """Where it was in A, if it is elsewhere in B."""
        return self.a[0][0] if self.how is MatchKind.MOVED else None


def match_functions(a: Iterable[Key], b: Iterable[Key]) -> tuple[Match, ...]:
    """The matches of all functions of both sides, in the order of their origins and names."""
    sides = _by_source_name(a), _by_source_name(b)
    # What has no symbol has no name either: "[no symbol]" of one program is no other's.
    moved = moved_keys(*sides, lambda key: not key[1].startswith("["))
    came_from = set(moved.values())
    found = []
    for key in {**sides[1], **sides[0]}:
        if key in came_from:
            continue
        ours = tuple(sides[0].get(moved.get(key, key), ()))
        theirs = tuple(sides[1].get(key, ()))
        how = MatchKind.MOVED if key in moved else _how(ours, theirs)
        found.append(Match(key[0], key[1], ours, theirs, how))
    return tuple(sorted(found, key=lambda match: (match.origin, match.name)))


Inlined = Mapping[Key, Mapping[tuple[str, ...], Fraction]]
"""Of a function as it was compiled, a figure of what was inlined into it: by the names of the
functions whose code that is, outermost first.
"""


def match_inlined(
    a: Mapping[Key, Fraction],
    b: Mapping[Key, Fraction],
    inlined: tuple[Inlined, Inlined] = ({}, {}),
) -> tuple[tuple[Match, ...], dict[Key, Fraction], dict[Key, Fraction]]:
    """The matches of all functions, and the figures of either side by function, in which what one
    side inlined of functions that the other has alone is theirs, and no more their hosts'.
    """
    first = match_functions(a, b)
    wanted = [
        frozenset((one.origin, one.name) for one in first if one.how is how)
        for how in (MatchKind.ONLY_B, MatchKind.ONLY_A)
    ]
    ours, a_hosts = split_inlined(a, inlined[0], wanted[0])
    theirs, b_hosts = split_inlined(b, inlined[1], wanted[1])
    hosts = {**a_hosts, **b_hosts}
    matches = tuple(
        msgspec.structs.replace(match, how=MatchKind.INLINED, hosts=hosts[match.origin, match.name])
        if (match.origin, match.name) in hosts and match.a and match.b
        else match
        for match in match_functions(ours, theirs)
    )
    return matches, ours, theirs


def split_inlined(
    figures: Mapping[Key, Fraction], inlined: Inlined, wanted: frozenset[Key]
) -> tuple[dict[Key, Fraction], dict[Key, tuple[Key, ...]]]:
    """The figures, with what is of the wanted functions as theirs, and where each was inlined."""
    found = dict(figures)
    hosts: dict[Key, dict[Key, None]] = {}
    for host, chains in inlined.items():
        for chain, figure in chains.items():
            key = next(((host[0], name) for name in chain if (host[0], name) in wanted), None)
            if key is None or host not in found:
                continue
            found[host] -= figure
            found[key] = found.get(key, Fraction(0)) + figure
            hosts.setdefault(key, {})[host] = None
    return found, {key: tuple(sorted(row)) for key, row in hosts.items()}


def _by_source_name(keys: Iterable[Key]) -> dict[Key, list[Key]]:
    return by_key(
        ((origin, strip_suffixes(name)), (origin, name)) for origin, name in sorted(set(keys))
    )


def _how(a: Sequence[Key], b: Sequence[Key]) -> MatchKind:
    if not a or not b:
        return MatchKind.ONLY_A if a else MatchKind.ONLY_B
    return MatchKind.SAME if list(a) == list(b) else MatchKind.VARIANT
