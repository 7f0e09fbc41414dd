# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions share an input section of the link, and so are never parted by it."""

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
import numpy as np

from kdelta.counts.arrays import Flags
from kdelta.counts.by_key import by_key
from kdelta.counts.model import KERNEL
from kdelta.counts.symbols import Symbol
from kdelta.kernels.objects.digest import Digest, ObjectDigest
from kdelta.kernels.objects.objects import LOCAL, CodePiece
from kdelta.replay.kernel_text import Details, TextPiece, after_what, is_nameless, linker_name

_TEXT = ".text"
_OWN = re.compile(r"\.text\.\w")


class InputSections(msgspec.Struct, frozen=True, eq=False):
    """What is known of the sections of pieces, (n_pieces,) each: whether one is of the section of
    the piece before, and whether it is of an assembler object.
    """

    goes_on: Flags
    is_assembler: Flags


def input_sections(
    pieces: Sequence[TextPiece], digest: Digest | None, *, merged: bool
) -> InputSections:
    """What a digest says of the sections: one assembler object has one in .text. If all objects
    were merged before they were linked, all that they have in sections of one name is one.
    """
    objects = _linked(digest)
    assembler = _owners(pieces, objects)
    sections = _merged_sections(pieces, objects) if merged else assembler
    goes_on = [
        bool(section) and section == before
        for before, section in itertools.pairwise(["", *sections])
    ]
    return InputSections(
        np.array(goes_on, dtype=bool), np.array([bool(owner) for owner in assembler], dtype=bool)
    )


def sections_and_sizes(
    digest: Digest | None, symbols: Iterable[Symbol]
) -> tuple[dict[str, str], dict[str, tuple[int, ...]]]:
    """Of the functions of vmlinux by name: the section of those whose name is one function's only,
    and the bytes of each function of a name, ascending.
    """
    objects = _linked(digest)
    found = by_key(named for thing in objects for named in thing.functions.items())
    aliases = by_key(
        (name, (code, first[code]))
        for thing in objects
        for first in [{code: name for name, code in reversed(thing.functions.items())}]
        for name, code in thing.functions.items()
    )
    _drop_weak(found, aliases, symbols)
    return (
        {name: codes[0].section for name, codes in found.items() if len(codes) == 1},
        {name: tuple(sorted(code.size for code in codes)) for name, codes in found.items()},
    )


def _drop_weak(
    found: dict[str, list[CodePiece]],
    aliases: Mapping[str, Sequence[tuple[CodePiece, str]]],
    symbols: Iterable[Symbol],
) -> None:
    """Forgets, of names that several objects have, code that has another name, too, and is linked
    elsewhere: a weak one's.
    """
    several = {name for name, codes in found.items() if len(codes) > 1}
    wanted = several | {other for name in several for _, other in aliases[name]}
    places = by_key(
        (name, address)
        for address, _, name, origin in symbols
        if name in wanted and origin == KERNEL
    )
    for name in several:
        here = set(places.get(name, ()))
        kept = [
            code
            for code, other in aliases[name]
            if other == name or len(found[other]) > 1 or not here.isdisjoint(places.get(other, ()))
        ]
        found[name] = kept or found[name]


def details_of(digest: Digest | None) -> Details:
    """What a digest says of sections; of names that several functions have, where all agree."""
    objects = _linked(digest)
    heads: dict[str, str] = {}
    fixups: dict[str, list[int]] = {}
    for thing in objects:
        fixup = thing.data.get(f"{LOCAL}{_TEXT}.fixup")
        for (name, code), (after, other) in itertools.pairwise(thing.functions.items()):
            if thing.is_assembler and code == other:
                heads[after] = heads.get(name, name)
        for name, code in thing.functions.items():
            tail = thing.data.get(f"{LOCAL}{_TEXT}#{name}") if code.section == _TEXT else None
            found = fixup if tail is None else tail
            fixups.setdefault(name, []).append(found.size if found else 0)
    ours = {name for thing in objects if thing.is_assembler for name in thing.functions}
    compiled = frozenset(name for thing in objects for name in thing.functions) - ours
    alignments = _alignments(objects)
    return Details(alignments, _leads(objects), heads, _alike(fixups), compiled, _behind(objects))


def _behind(objects: Sequence[ObjectDigest]) -> dict[str, tuple[int, ...]]:
    """By name, the sizes of what a compiled object has behind it whose names other objects have."""
    owners = Counter(name for thing in objects for name in thing.functions)
    found: dict[str, tuple[int, ...]] = {}
    for thing in objects:
        before = ""
        known: set[CodePiece] = set()
        for name, code in () if thing.is_assembler else thing.functions.items():
            if owners[name] == 1:
                before = name
            elif before and code not in known:
                found[before] = (*found.get(before, ()), code.size)
            known.add(code)
    return found


def _alike(found: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """What all functions of a name have."""
    return {name: held[0] for name, held in found.items() if held[0] and len(set(held)) == 1}


def _alignments(objects: Sequence[ObjectDigest]) -> dict[str, int]:
    return _alike(
        by_key(
            (name, thing.alignments.get(code.section, 0) if is_own else 0)
            for thing in objects
            for name, code in thing.functions.items()
            for is_own in [thing.is_assembler or _OWN.match(code.section)]
        )
    )


def _leads(objects: Sequence[ObjectDigest]) -> dict[str, int]:
    found: dict[str, int] = {}
    for thing in objects:
        lead = thing.data.get(f"{LOCAL}{_TEXT}")
        first = next((n for n, code in thing.functions.items() if code.section == _TEXT), None)
        if thing.is_assembler and lead is not None and first is not None:
            found[first] = lead.size
    return found


def _linked(digest: Digest | None) -> list[ObjectDigest]:
    return [thing for thing in digest.objects.values() if not thing.module] if digest else []


def _owners(pieces: Sequence[TextPiece], objects: Sequence[ObjectDigest]) -> list[str]:
    """The assembler object of each piece; "" of one that is of none, or stays."""
    paths = by_key((name, thing.path) for thing in objects for name in thing.functions)
    assembler = {thing.path for thing in objects if thing.is_assembler}
    tailed = {
        (thing.path, name)
        for thing in objects
        for name in thing.functions
        if f"{LOCAL}{_TEXT}#{name}" in thing.data
    }
    found: list[str] = []
    for piece in pieces:
        owners = paths.get(linker_name(piece.name))
        # A label that no object names is of that before it, and so is code of its section without
        # a name; other such code is of a section of its own (.text.fixup).
        before = found[-1] if found else ""
        if objects and (after := after_what(piece.name)) and (before, after) not in tailed:
            before = ""
        owner = before if owners is None else owners[0] if len(owners) == 1 else ""
        found.append(owner if owner in assembler and not piece.why_not else "")
    return found


def _merged_sections(pieces: Sequence[TextPiece], objects: Sequence[ObjectDigest]) -> list[str]:
    """The section of each piece after all objects were made one; "" of a piece that stays, or if
    functions have no sections of their own. Then no relink moves them.
    """
    known: dict[str, str] = {}
    several: set[str] = set()
    for thing in objects:
        several.update(known.keys() & thing.functions.keys())
        known.update((name, code.section) for name, code in thing.functions.items())
    if 2 * sum(section == f"{_TEXT}.{name}" for name, section in known.items()) <= len(known):
        return [""] * len(pieces)
    besides = _weak_ones(pieces, several)
    found: list[str] = []
    for index, piece in enumerate(pieces):
        name = linker_name(pieces[besides.get(index, index)].name)
        before = found[-1] if found else ""
        section = known.get(name, "" if is_nameless(name) else before)
        found.append("" if piece.why_not else section)
    return found


def _weak_ones(pieces: Sequence[TextPiece], several: Collection[str]) -> dict[int, int]:
    """Code without a name -> the function next to it whose name several objects have, of which it
    is a weak one. Each has one: so what has only one such neighbour left takes that first.
    """
    found: dict[int, int] = {}
    open_ones = {
        index: [
            other
            for other in (index + 1, index - 1)
            if 0 <= other < len(pieces) and linker_name(pieces[other].name) in several
        ]
        for index, piece in enumerate(pieces)
        if is_nameless(piece.name)
    }
    waiting = sorted(open_ones, key=lambda index: len(open_ones[index]), reverse=True)
    while waiting:
        index = waiting.pop()
        if index in found or not open_ones[index]:
            continue
        found[index] = taken = open_ones[index][0]
        for neighbour in (taken - 1, taken + 1):
            left = open_ones.get(neighbour, [])
            if neighbour not in found and taken in left:
                left.remove(taken)
                waiting.append(neighbour)
    return found
