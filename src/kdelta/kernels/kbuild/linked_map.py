# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a relinked kernel's functions and variables lie as was asked, and its sections where they
belong.
"""

import bisect
import collections
import hashlib
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from kdelta.kernels.config.configure import few_items
from kdelta.kernels.kbuild.relink import Relink
from kdelta.kernels.objects.digest import Digest, ObjectDigest
from kdelta.kernels.objects.elf import (
    ALLOC,
    EXECUTABLE,
    FUNCTION,
    NO_TYPE,
    OBJECT,
    RESERVED,
    UNDEFINED,
    Elf,
    read_elf,
)
from kdelta.kernels.objects.objects import CodePiece
from kdelta.spec.errors import LabError

KINDS = ("hot", "main", "unlikely")

_ALL_BITS = (1 << 64) - 1
_OWN = re.compile(r"\.text\.\w")
_OWN_DATA = re.compile(r"\.(data|bss)\.\w")
_KIND = re.compile(r"\.text\.(hot|unlikely|split|startup|exit)(?:\.|$)")
_COLD = ("unlikely", "split", "startup", "exit")
_ALSO_FUNCTIONS = (".text.startup", ".text.exit")  # see linker_script
_BOUNDED = re.compile(r"\.(\w+)\.text")
# Sections whose boundary symbols are not called as the section is: vmlinux.lds.h of 6.12.
_BOUNDS = {
    ".init.text": ("_sinittext", "_einittext"),
    ".spinlock.text": ("__lock_text_start", "__lock_text_end"),
}
_PADDING = "__pfx_"
_ENOUGH = 100
"""Functions, or variables: that many neighbours of one object show whether the order is another."""

_TOGETHER = 0.5


class Linked(msgspec.Struct, frozen=True):
    """How the functions of a relinked kernel lie. Functions whose name is one function's only
    are looked at.

    seed, align   as asked; `order_sha256`: of the ordering file's names, "" without one
    objects       what it was linked from: two kernels with the same differ in their link only
    functions     in sections of their own: what can be moved one by one
    together      the share of them that lie behind one of the same object: most, unless shuffled
    ordered       of the names in the ordering file, those that lie in that order and before others
    displaced     those that do not: a file of assembler moves as one, for example
    fixed         those of functions that a relink does not move (noinstr, init, entry code)
    unknown       those that the kernel has no function of
    aligned       by kind of text how many functions begin at multiples of `align`, of how many
    data_seed     as asked; of others the next two are zero
    variables     in sections of their own
    data_together the share of them that lie behind one of the same object
    """

    functions: int
    together: float
    objects: str = ""
    seed: int | None = None
    align: int | None = None
    order_sha256: str = ""
    ordered: int = 0
    displaced: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    aligned: dict[str, tuple[int, int]] = {}
    data_seed: int | None = None
    variables: int = 0
    data_together: float = 0.0

    @property
    def lines(self) -> list[str]:
        """Return what came of it, for people."""
        said = [f"relinked: {self.functions} functions are sections of their own"]
        if self.seed is not None:
            said.append(
                f"shuffled by seed {self.seed}: {self.together:.1%} of them lie behind one of the "
                "same object"
            )
        if self.data_seed is not None:
            said.append(
                f"{self.variables} variables shuffled by seed {self.data_seed}: "
                f"{self.data_together:.1%} of them lie behind one of the same object"
            )
        if self.order_sha256:
            said.append(f"{self.ordered} functions lie in the order asked for")
            others = {
                "do not lie in that order": self.displaced,
                "are of code that a relink does not move": self.fixed,
                "are no functions of this kernel": self.unknown,
            }
            known = ((why, names) for why, names in others.items() if names)
            said += [f"{len(names)} {why}: {few_items(names)}" for why, names in known]
        return said + [
            f"{aligned} of {of} functions of {kind} text are aligned to {self.align}"
            for kind, (aligned, of) in self.aligned.items()
        ]


class _Piece(msgspec.Struct, frozen=True):
    """A function of vmlinux, or a variable: where it is, the section it had, and the object (its
    path).
    """

    name: str
    address: int
    section: str
    object: str

    @property
    def is_own(self) -> bool:
        """Whether it has a section of its own."""
        return _OWN.match(self.section) is not None

    @property
    def kind(self) -> str:
        """One of KINDS, or "" for one that a relink does not move."""
        if self.section != ".text" and not self.is_own:
            return ""
        named = _KIND.match(self.section) if self.section not in _ALSO_FUNCTIONS else None
        word = named[1] if named else "main"
        return "unlikely" if word in _COLD else word


def linked_map(
    vmlinux: Path, digest: Digest, relink: Relink, *, middle: bool = False
) -> Linked | str:
    """Return how the functions of a vmlinux lie, or what is wrong with it: sections that are not
    where they belong, or functions that did not move. `digest` is that of its objects. `middle`:
    what is put into an order lies in the middle of the rest, not before it.

    LabError when it is no ELF file.
    """
    if (elf := read_elf(vmlinux)) is None:
        raise LabError(f"{vmlinux} is no ELF file of a kernel", "build it again")
    symbols = _symbols(elf)
    named = _pieces(symbols, digest, lambda held: held.functions)
    by_address = {one.address: one for one in named.values()}
    functions = [by_address[address] for address in sorted(by_address)]
    movable = [one for one in functions if one.kind]
    wrong = (
        _orphans(one.name for one in elf.sections if one.flags & ALLOC)
        or _outside(functions, movable, symbols)
        or _mixed(movable)
    )
    if wrong:
        return wrong
    found = _described(movable, named, symbols, relink, middle=middle)
    if relink.data_seed is not None:
        found = _with_data(found, elf, digest, relink.data_seed)
    return _unmoved(found) or found


def _with_data(found: Linked, elf: Elf, digest: Digest, seed: int) -> Linked:
    pieces = _pieces(_variables(elf), digest, lambda held: held.data).values()
    own = sorted(
        (one for one in pieces if _OWN_DATA.match(one.section)), key=lambda one: one.address
    )
    return msgspec.structs.replace(
        found, data_seed=seed, variables=len(own), data_together=_together(own)
    )


def _variables(elf: Elf) -> dict[str, list[int]]:
    """The addresses of each variable's name."""
    found: dict[str, list[int]] = {}
    columns = (elf.symbols.kind, elf.symbols.value)
    rows = zip(elf.symbols.names, *(column.tolist() for column in columns), strict=True)
    for name, kind, value in rows:
        if kind == OBJECT:
            found.setdefault(name, []).append(value & _ALL_BITS)
    return found


def _symbols(elf: Elf) -> dict[str, list[int]]:
    """The addresses of each name of code, or of the linker script."""
    columns = (elf.symbols.section, elf.symbols.value, elf.symbols.kind)
    found: dict[str, list[int]] = {}
    rows = zip(elf.symbols.names, *(column.tolist() for column in columns), strict=True)
    for name, section, value, kind in rows:
        if not name or section == UNDEFINED or kind not in (FUNCTION, NO_TYPE):
            continue
        # Linker scripts' own symbols, of no type, may be counted to the section before.
        is_own = kind == NO_TYPE or section >= RESERVED
        if is_own or elf.sections[section].flags & EXECUTABLE:
            found.setdefault(name, []).append(value & _ALL_BITS)
    return found


def _pieces(
    symbols: Mapping[str, Sequence[int]],
    digest: Digest,
    of: Callable[[ObjectDigest], Mapping[str, CodePiece]],
) -> dict[str, _Piece]:
    """Those of objects by name; one that has several names is there under each."""
    of_name: dict[str, list[tuple[str, str]]] = {}
    for path, held in digest.objects.items():
        if not held.module:
            for name, code in of(held).items():
                of_name.setdefault(name, []).append((code.section, path))
    found: dict[str, _Piece] = {}
    for name, places in of_name.items():
        addresses = symbols.get(name, ())
        if len(addresses) == 1 == len(places):
            found[name] = _Piece(name, addresses[0], *places[0])
    return found


def _orphans(sections: Iterable[str]) -> str:
    found = [one for one in sections if one.startswith(".text.") or _OWN_DATA.match(one)]
    return f"the linker script leaves {len(found)} sections: {few_items(found)}" if found else ""


def _outside(
    functions: Sequence[_Piece],
    movable: Sequence[_Piece],
    symbols: Mapping[str, Sequence[int]],
) -> str:
    """Which function is not between the boundary symbols of its section, or in another's."""
    spans = {
        section: span
        for section in {one.section for one in functions}
        if (span := _span(section, symbols)) is not None
    }
    text = symbols.get("_stext", [0])[0], symbols.get("_etext", [_ALL_BITS])[0]
    for one in functions:
        start, end = spans.get(one.section, text if one.kind else (0, _ALL_BITS))
        if not start <= one.address < end:
            return f"{one.name} of {one.section} lies at {one.address:#x}, outside of that section"
    for section, (start, end) in spans.items():
        at = bisect.bisect_left(movable, start, key=lambda one: one.address)
        if at < len(movable) and movable[at].address < end:
            return f"{movable[at].name} of {movable[at].section} lies in {section}"
    return ""


def _span(section: str, symbols: Mapping[str, Sequence[int]]) -> tuple[int, int] | None:
    if (named := _BOUNDED.fullmatch(section)) is None:
        return None
    usual = (f"__{named[1]}_text_start", f"__{named[1]}_text_end")
    start, end = (symbols.get(name, ()) for name in _BOUNDS.get(section, usual))
    return (start[0], end[0]) if len(start) == 1 == len(end) else None


def _mixed(movable: Sequence[_Piece]) -> str:
    """Which function lies among those of another kind."""
    firsts = [next(run) for _, run in itertools.groupby(movable, lambda one: one.kind)]
    for at, first in enumerate(firsts):
        if first.kind in {one.kind for one in firsts[:at]}:
            return f"hot, main and unlikely text are mixed: {first.name} of {first.section}"
    return ""


def _described(
    movable: Sequence[_Piece],
    named: Mapping[str, _Piece],
    symbols: Mapping[str, Sequence[int]],
    relink: Relink,
    *,
    middle: bool,
) -> Linked:
    own = [one for one in movable if one.is_own]
    asked: dict[int, _Piece] = {}
    for one in (named[name] for name in relink.order if name in named):
        asked.setdefault(one.address, one)
    kept, displaced = _in_order([one for one in asked.values() if one.kind], movable, middle=middle)
    text = "".join(f"{name}\n" for name in relink.order).encode()
    return Linked(
        functions=len(own),
        together=_together(own),
        seed=relink.seed,
        align=relink.align,
        order_sha256=hashlib.sha256(text).hexdigest() if relink.order else "",
        ordered=kept,
        displaced=tuple(one.name for one in displaced),
        fixed=tuple(one.name for one in asked.values() if not one.kind),
        unknown=tuple(name for name in relink.order if name not in symbols),
        aligned=_aligned(own, symbols, relink.align) if relink.align else {},
    )


def _together(own: Sequence[_Piece]) -> float:
    pairs = [(a, b) for a, b in itertools.pairwise(own) if a.kind == b.kind]
    behind = sum(a.object == b.object for a, b in pairs)
    return behind / len(pairs) if pairs else 0.0


def _in_order(
    asked: Sequence[_Piece], movable: Sequence[_Piece], *, middle: bool
) -> tuple[int, list[_Piece]]:
    """How many lie in the order asked for, and before those that were not asked for, or side by
    side in the middle of these; the others.

    What is in a section with others need only be in order: it brings them along.
    """
    displaced: list[_Piece] = []
    for kind in KINDS:
        wanted = [one for one in asked if one.kind == kind]
        own = [one.address for one in movable if one.kind == kind and one.is_own]
        together = _block(own, {one.address for one in wanted if one.is_own}, middle=middle)
        rising = _longest_rising([one.address for one in wanted])
        displaced += [
            one
            for index, one in enumerate(wanted)
            if index not in rising or (one.is_own and one.address not in together)
        ]
    return len(asked) - len(displaced), displaced


def _block(own: Sequence[int], wanted: Collection[int], *, middle: bool) -> Collection[int]:
    """The addresses side by side, as many as are wanted: the first ones, or those with most of what
    is wanted among them.
    """
    if not middle:
        return set(own[: sum(address in wanted for address in own)])
    held = np.cumsum([0, *(address in wanted for address in own)])
    size = sum(address in wanted for address in own)
    first = int(np.argmax(held[size:] - held[: len(held) - size]))
    return set(own[first : first + size])


def _longest_rising(values: Sequence[int]) -> Collection[int]:
    """The indexes of a longest rising subsequence (by patience sorting, n log n)."""
    tops: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for index, value in enumerate(values):
        pile = bisect.bisect_left(tops, value)
        before.append(at[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [value]
        at[pile : pile + 1] = [index]
    return set(_chain(at[-1], before)) if at else set()


def _chain(index: int, before: Sequence[int]) -> Iterator[int]:
    while index >= 0:
        yield index
        index = before[index]


def _aligned(
    own: Sequence[_Piece], symbols: Mapping[str, Sequence[int]], align: int
) -> dict[str, tuple[int, int]]:
    """By kind, how many begin at a multiple, with the padding before them, and of how many."""
    counts: collections.Counter[str] = collections.Counter()
    total = collections.Counter(one.kind for one in own)
    for one in own:
        padded = symbols.get(f"{_PADDING}{one.name}", ())
        starts = padded if len(padded) == 1 else [one.address]
        counts[one.kind] += starts[0] % align == 0
    return {kind: (counts[kind], total[kind]) for kind in KINDS if total[kind]}


def _unmoved(found: Linked) -> str:
    """Why it is not what was asked at all: the linker took no notice."""
    if found.seed is not None and found.functions >= _ENOUGH and found.together > _TOGETHER:
        return (
            f"the linker did not shuffle the functions: {found.together:.0%} of "
            f"{found.functions} lie behind one of the same object"
        )
    if found.variables >= _ENOUGH and found.data_together > _TOGETHER:
        return (
            f"the linker did not shuffle the variables: {found.data_together:.0%} of "
            f"{found.variables} lie behind one of the same object"
        )
    moved = found.ordered + len(found.displaced)
    if moved >= _ENOUGH and found.ordered < moved * _TOGETHER:
        return (
            f"the linker did not follow the order: {len(found.displaced)} of {moved} functions "
            "lie elsewhere"
        )
    return ""
