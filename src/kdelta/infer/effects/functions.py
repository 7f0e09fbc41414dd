# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions account for an effect: matched by name, and adding up to it exactly."""

import enum
import functools
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.counts.model import FunctionCost, is_kernel
from kdelta.infer.effects.estimate import ZERO, Quantity, is_seen
from kdelta.infer.effects.pairs import Scales
from kdelta.spec.errors import LabError

# What gcc and clang append to the name of a function that they cloned, split or made global.
_SUFFIXES = re.compile(
    r"(?<=.)(?:\.(?:isra|constprop|part|llvm|lto_priv|__uniq)\.\d+|\.cold(?:\.\d+)?)+\Z", re.DOTALL
)

_COLD = ".cold"
"""What only its own function jumps to."""

Key = tuple[str, str]
"""(origin, name without a compiler's suffixes)"""


class FunctionChange(enum.StrEnum):
    """What became of a function's part in an operation."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    SAME = "same"


class FunctionEffect(msgspec.Struct, frozen=True):
    """One function's cost on both sides: instructions of its own, without what it calls.

    `origin` is that of the other side, or the base's for a removed one; `moved_from` is set when
    code of a module became a part of the kernel's image or the other way round. `called_by`: the
    function that alone calls it, on either side, where it does so more often or less; else empty.
    `by_code`: its code differs, and it costs as much more in all runs; unset where that is not so,
    or all instructions of the operation show a difference.
    """

    origin: str
    name: str
    change: FunctionChange
    cost: Quantity
    moved_from: str | None = None
    called_by: str = ""
    by_code: bool | msgspec.UnsetType = msgspec.UNSET


@functools.cache
def strip_suffixes(name: str) -> str:
    """The name that the source gives a function: `foo` for `foo.isra.0.cold`."""
    return _SUFFIXES.sub("", name)


def by_function(runs: Sequence[Iterable[FunctionCost]]) -> dict[Key, list[int]]:
    """Instructions by function, one figure a run; clones of one function are summed."""
    found: dict[Key, list[int]] = {}
    for index, functions in enumerate(runs):
        for function in functions:
            name = strip_suffixes(function.name)
            counts = found.get((function.origin, name))
            if counts is None:
                counts = found[function.origin, name] = [0] * len(runs)
            counts[index] += function.cost.insns
    return found


def function_effects(
    base: dict[Key, list[int]], other: dict[Key, list[int]], scales: Scales
) -> tuple[FunctionEffect, ...]:
    """Return the effect of each function that was executed on either side, the largest first.

    `scales` are those of base and other; with them counts become instructions an iteration.
    """
    moved = moved_keys(base, other, lambda key: is_kernel(key[0]))
    taken = set(moved.values())
    nothing = [0] * scales.base.runs, [0] * scales.other.runs
    effects = []
    for key in [*other, *(key for key in base if key not in other and key not in taken)]:
        base_key = moved.get(key, key)
        cost = scales.quantity(base.get(base_key, nothing[0]), other.get(key, nothing[1]))
        effects.append(
            FunctionEffect(
                key[0], key[1], _change(cost), cost, base_key[0] if key in moved else None
            )
        )
    return tuple(sorted(effects, key=_order))


def with_callers(
    functions: Sequence[FunctionEffect],
    runs: tuple[Sequence[Iterable[FunctionCost]], Sequence[Iterable[FunctionCost]]],
    scales: Scales,
) -> tuple[FunctionEffect, ...]:
    """Return the effects with who called the functions; runs: the rows of each, of both sides."""
    base, other = (_calls(side) for side in runs)
    return tuple(
        msgspec.structs.replace(one, called_by=_caller(one, base, other, scales))
        if one.cost.effect.value
        else one
        for one in functions
    )


def _caller(
    one: FunctionEffect,
    base: dict[Key, "_Calls"],
    other: dict[Key, "_Calls"],
    scales: Scales,
) -> str:
    """See `FunctionEffect.called_by`."""
    ours = base.get((one.moved_from or one.origin, one.name), _Calls([0] * scales.base.runs))
    theirs = other.get((one.origin, one.name), _Calls([0] * scales.other.runs))
    callers = ours.callers | theirs.callers
    if len(callers) != 1:
        return ""
    calls = scales.quantity(ours.calls, theirs.calls)
    return callers.pop() if is_seen(calls.effect) else ""


class _Calls(msgspec.Struct):
    """How often a function was called in each run, and by whom: "" is not known."""

    calls: list[int]
    callers: set[str] = set()


def _calls(runs: Sequence[Iterable[FunctionCost]]) -> dict[Key, _Calls]:
    """The calls of each function; parts of it that the compiler split off are one with it. Runs of
    before calls were counted have none of what was executed.
    """
    found: dict[Key, _Calls] = {}
    for index, rows in enumerate(runs):
        for row in rows:
            name, caller = strip_suffixes(row.name), strip_suffixes(row.caller)
            if _COLD in row.name or caller == name:
                continue
            calls = found.setdefault((row.origin, name), _Calls([0] * len(runs)))
            calls.calls[index] += row.calls
            calls.callers.add(caller)
    return found


def _order(function: FunctionEffect) -> tuple[Fraction, Fraction, str, str]:
    size = abs(function.cost.other.value - function.cost.base.value)
    return -size, -function.cost.base.value, function.name, function.origin


def _change(cost: Quantity) -> FunctionChange:
    if cost.base.high == 0 and cost.other.high > 0:
        return FunctionChange.ADDED
    if cost.other.high == 0 and cost.base.high > 0:
        return FunctionChange.REMOVED
    return FunctionChange.SAME if cost.base.value == cost.other.value else FunctionChange.CHANGED


def moved_keys(
    a: Collection[Key], b: Collection[Key], is_movable: Callable[[Key], bool]
) -> dict[Key, Key]:
    """What has one name in another place: B's key -> A's.

    Only where the name is alone on either side among what has no partner, and never between the
    kernel and its users, so that no two distinct functions are taken for one.
    """
    gone, come = _lonely(a, b), _lonely(b, a)
    return {
        keys[0]: gone[name][0]
        for name, keys in come.items()
        if len(keys) == 1 and len(gone.get(name, ())) == 1 and is_movable(keys[0])
    }


def _lonely(these: Collection[Key], those: Collection[Key]) -> dict[tuple[bool, str], list[Key]]:
    return by_key(
        ((is_kernel(origin), name), (origin, name))
        for origin, name in these
        if (origin, name) not in those
    )


def check_sum(what: str, functions: Sequence[FunctionEffect], whole: Quantity) -> None:
    """Raises LabError unless the functions add up to the whole, on both sides, exactly."""
    for side in ("base", "other"):
        found = sum((getattr(one.cost, side).value for one in functions), ZERO)
        wanted = getattr(whole, side).value
        if found != wanted:
            raise LabError(
                f"{what}, {side}: the functions add up to {float(found)} instructions an "
                f"iteration, and the operation has {float(wanted)}",
                "this is an error of kdelta; please report it with the output of --json",
            )


def must_add_up(what: str, parts: Iterable[Fraction], whole: Fraction) -> None:
    """Raises LabError unless the parts add up to the whole, exactly."""
    found = sum(parts, ZERO)
    if found != whole:
        raise LabError(
            f"{what} add up to {float(found)}, and the whole is {float(whole)}",
            "this is an error of kdelta; please report it with the output of --json",
        )
