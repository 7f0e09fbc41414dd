# SPDX-License-Identifier: GPL-2.0-or-later
"""What may have become of functions that only one side executed, derived from who called them.

These are guesses: nothing is summed up by them.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.profile import Profile, ProfiledFunction
from kdelta.infer.effects.functions import strip_suffixes
from kdelta.infer.profiles.calls import TASK, Calls, merged_calls
from kdelta.infer.profiles.diff import DiffLine
from kdelta.infer.profiles.matching import Key, MatchKind
from kdelta.infer.profiles.profile import Selection

_PART = Fraction(1, 3)
"""How much of what a function did its callers must have gained, for it to be taken as inlined."""


class HintFate(enum.StrEnum):
    """What may have become of it."""

    INLINED = "inlined"
    OUTLINED = "no more inlined"
    RENAMED = "renamed"


class Hint(msgspec.Struct, frozen=True):
    """A function that one side alone executed, and what may have become of it, or where it may have
    come from: `others` are its callers, which gained or lost `added`; or what it is called on the
    other side.
    """

    fate: HintFate
    key: Key
    figure: Fraction
    others: tuple[Key, ...]
    added: Fraction


def source_name(function: ProfiledFunction) -> Key:
    """A function as its source names it."""
    return function.origin, strip_suffixes(function.name)


def callers_of(
    profiles: Sequence[Profile], selection: Selection, jumps_on: frozenset[Key] = frozenset()
) -> dict[Key, frozenset[Key]]:
    """Of each function that was called, who called it, itself or through one of `jumps_on`."""
    return _callers(merged_calls(profiles, selection, source_name, leaves=jumps_on))


def _callers(calls: Calls) -> dict[Key, frozenset[Key]]:
    found: dict[Key, set[Key]] = {}
    for node, parent in enumerate(calls.parent):
        if parent >= 0 and calls.key[parent][0] != TASK and calls.key[parent] != calls.key[node]:
            found.setdefault(calls.key[node], set()).add(calls.key[parent])
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
    by_key = {(line.match.origin, line.match.name): line for line in lines}
    gone = [line for line in by_key.values() if line.match.how is MatchKind.ONLY_A]
    come = [line for line in by_key.values() if line.match.how is MatchKind.ONLY_B]
    found = _renamed(gone, come, a_callers, b_callers)
    taken = {key for hint in found for key in (hint.key, *hint.others)}
    for group, callers, fate, sign in (
        (gone, a_callers, HintFate.INLINED, 1),
        (come, b_callers, HintFate.OUTLINED, -1),
    ):
        for line in group:
            key = (line.match.origin, line.match.name)
            hosts = sorted(callers.get(key, ()))
            if key in taken or not hosts or not all(host in by_key for host in hosts):
                continue
            both = all(by_key[host].a and by_key[host].b for host in hosts)
            added = sum((by_key[host].added for host in hosts), Fraction(0))
            figure = max(line.a, line.b)
            if both and sign * added >= figure * _PART:
                found.append(Hint(fate, key, figure, tuple(hosts), added))
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
                    HintFate.RENAMED,
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
    found: dict[frozenset[Key], list[DiffLine]] = {}
    for line in lines:
        who = callers.get((line.match.origin, line.match.name))
        if who:
            found.setdefault(who, []).append(line)
    return found
