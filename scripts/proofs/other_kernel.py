# SPDX-License-Identifier: GPL-2.0-or-later
"""The layout that another kernel gives the functions of this one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from kdelta.counts.arrays import U64
from kdelta.counts.model import KERNEL
from kdelta.kernels.objects.digest import Digest
from kdelta.replay.functions import PlacedFunction, Placement
from kdelta.replay.kernel_text import linker_name

_LEAST_PADDING = 16
_LINE_BYTES = 64

Bodies = Mapping[str, Sequence[tuple[int, int]]]
"""Name -> (bytes, hash) of each function of that name."""


class MatchedPlacement(msgspec.Struct, frozen=True):
    """Where another kernel has the functions of a placement.

    layout: U64 (n_functions,), or None when a function that was executed has no counterpart.
    unmatched: names of the kernel's functions in .text without one; missing: those of them that
    were executed. by: what says that two functions are the same: their "bodies" after relocation,
    or only their "names and sizes"; by_size: how many were executed that are known by these only.
    """

    layout: U64 | None
    unmatched: tuple[str, ...]
    missing: tuple[str, ...]
    by: Literal["bodies", "names and sizes"]
    by_size: int


def as_in(
    placement: Placement,
    other: Placement,
    digests: tuple[Digest, Digest] | None = None,
    *,
    approximate: bool = False,
) -> MatchedPlacement:
    """The functions of `placement` at the addresses that they have in `other`.

    digests: of both kernels, in this order; functions then match if their bodies are equal after
    relocation, else if name and size are. A function that no trace executed and that has no
    counterpart keeps its address: it touches nothing. With `approximate`, so that there is a layout
    in any case, an executed one lies where the other kernel has a function of that name, or after
    the other kernel's text. Modules, init code and user code stay where they are.
    """
    bodies = None if digests is None else (_bodies(digests[0]), _bodies(digests[1]))
    layout = placement.addresses()
    matches = _matches(placement, other, bodies)
    unmatched = [index for index, (match, _) in matches.items() if match is None]
    for index, (match, _) in matches.items():
        layout[index] = match.address if match else layout[index]
    unmatched += _parted(placement, layout, set(unmatched))
    missing = [index for index in unmatched if placement.executed[index]]
    for index in set(unmatched) - set(missing):
        layout[index] = placement.functions[index].address
    if approximate:
        _approximate(layout, placement, missing, other)
    return MatchedPlacement(
        layout=layout if approximate or not missing else None,
        unmatched=_names(placement, unmatched),
        missing=_names(placement, missing),
        by="names and sizes" if bodies is None else "bodies",
        by_size=sum(
            by == "size" and bool(placement.executed[index]) for index, (_, by) in matches.items()
        ),
    )


def _matches(
    placement: Placement, other: Placement, bodies: tuple[Bodies, Bodies] | None
) -> dict[int, tuple[PlacedFunction | None, str]]:
    """For each function in .text its counterpart, and what says so.

    Of functions of one name those of the same number are tried first, then all that are left.
    """
    families: dict[str, list[PlacedFunction]] = {}
    for function in other.functions:
        if _is_text(function, other):
            families.setdefault(linker_name(function.name), []).append(function)
    found: dict[int, tuple[PlacedFunction | None, str]] = {
        index: (None, "") for index, f in enumerate(placement.functions) if _is_text(f, placement)
    }
    ends = {part.end for part in (*placement.ranges, *other.ranges)}
    for same_number in (True, False):
        for index in found:
            function = placement.functions[index]
            family = families.get(linker_name(function.name), [])
            if found[index][0] is not None or not family:
                continue
            for candidate in family:
                if same_number and candidate.name != function.name:
                    continue
                padding = max(function.alignment, candidate.alignment, _LEAST_PADDING)
                if _end(function) in ends or _end(candidate) in ends:
                    padding = max(padding, _LINE_BYTES)
                if by := _same(function, candidate, padding, bodies):
                    found[index] = candidate, by
                    family.remove(candidate)
                    break
    return found


def _end(function: PlacedFunction) -> int:
    return function.address + function.bytes


def _is_text(function: PlacedFunction, placement: Placement) -> bool:
    start, end = placement.text
    return function.origin == KERNEL and start <= function.address < end


def _names(placement: Placement, indexes: Iterable[int]) -> tuple[str, ...]:
    return tuple(placement.functions[index].name for index in sorted(indexes))


def _bodies(digest: Digest) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for thing in digest.objects.values():
        for name, code in () if thing.module else thing.functions.items():
            found.setdefault(name, []).append((code.size, code.hash))
    return found


def _same(
    one: PlacedFunction, other: PlacedFunction, padding: int, bodies: tuple[Bodies, Bodies] | None
) -> Literal["", "size", "body"]:
    """By what two functions of one name are the same; "" if they are not.

    padding: as many bytes, or more, may not be padding after them.
    """
    if one.entry != other.entry:
        return ""
    hashes = [
        _hashes(bodies[side], function, padding) if bodies else set()
        for side, function in enumerate((one, other))
    ]
    if hashes[0] and hashes[1]:
        return "body" if hashes[0] == hashes[1] else ""
    return "size" if abs(one.bytes - other.bytes) < padding else ""


def _hashes(bodies: Bodies, function: PlacedFunction, padding: int) -> set[int]:
    """Of the bodies of that name, those that can be this function, by their size."""
    size = function.bytes - function.entry
    known = bodies.get(linker_name(function.name), ())
    if len(known) == 1:
        return {known[0][1]}
    return {hashed for held, hashed in known if held <= size < held + padding}


def _parted(placement: Placement, layout: U64, unmatched: set[int]) -> set[int]:
    """Those that would not be at their distance from the rest of their group, as far as this has a
    counterpart.
    """
    groups: dict[int, list[int]] = {}
    for part in placement.ranges:
        for index in part.members.tolist():
            if index not in unmatched:
                groups.setdefault(placement.functions[index].group, []).append(index)
    found: set[int] = set()
    for members in groups.values():
        if len(members) > 1:
            moved = {int(layout[i]) - placement.functions[i].address for i in members}
            if len(moved) > 1:
                found.update(members)
    return found - unmatched


def _approximate(
    layout: U64, placement: Placement, missing: Iterable[int], other: Placement
) -> None:
    end = other.text[1]
    for index in missing:
        function = placement.functions[index]
        theirs = other.indexes.get(function.name, ())
        if theirs and _is_text(other.functions[theirs[0]], other):
            layout[index] = other.functions[theirs[0]].address
        else:
            end = -(-end // _LINE_BYTES) * _LINE_BYTES
            layout[index] = end
            end += function.bytes
