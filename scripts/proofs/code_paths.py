# SPDX-License-Identifier: GPL-2.0-or-later
"""How many x86-64 instructions there are on the shortest and the longest path through code."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from alternatives import Code

from kdelta.counts.disassembly import Block, disassembled
from kdelta.spec.errors import LabError

PASSES = 6
"""How often a loop is passed at most: kernels have 6 address spaces (TLB_NR_DYN_ASIDS)."""

_READ_BYTES = 1024
_INSN_BYTES = 15
_TARGET = re.compile(r"^(?:\w+ )*?(jmp|call|j\w+)q? (?:0x)?([0-9a-f]+)")
_RETURNS = re.compile(r"^(repz )?(ret|sysret|iret)[ql]?\b")
_DROPS_RETURN = "lea 0x8(%rsp),%rsp"
"""How a return thunk begins that is called and returns to its caller's caller."""


class Interval(NamedTuple):
    """From the least to the most instructions."""

    least: int = 0
    most: int = 0

    def __add__(self, other: object) -> "Interval":
        assert isinstance(other, Interval)
        return Interval(self.least + other.least, self.most + other.most)

    def __sub__(self, other: "Interval") -> "Interval":
        return Interval(self.least - other.most, self.most - other.least)


def either(found: Collection[Interval | None]) -> Interval | None:
    """What holds whichever path is taken; None if none can be."""
    known = [one for one in found if one is not None]
    if not known:
        return None
    return Interval(min(one.least for one in known), max(one.most for one in known))


class EscapeError(LabError):
    """A path leaves the function before it reaches where paths should meet."""


class Insn(NamedTuple):
    """An instruction, where the next one is, and where it jumps or calls, if that is known."""

    text: str
    after: int
    kind: str = ""
    target: int = 0


class Listing:
    """The instructions of code, as they are looked up."""

    def __init__(self, code: Code, thunk: int = 0, thunk_code: int = 0) -> None:
        """thunk: __x86_return_thunk, to which a return jumps that was never executed; thunk_code:
        a return that was, and is as the kernel made all of them.
        """
        self.code, self._thunks = code, (thunk, thunk_code)
        self._insns: dict[int, Insn] = {}

    def at(self, address: int) -> Insn:
        """The instruction there; LabError if there is none."""
        if address not in self._insns:
            self._decode(address)
        return self._insns[address]

    def _decode(self, start: int) -> None:
        held = self.code.read(start, _READ_BYTES)
        if not held:
            raise LabError(f"there is no code at {start:#x}")
        (texts,) = disassembled([Block(start, held)], (), "x86_64")
        places = sorted(texts)
        for place, after in zip(places, [*places[1:], start + len(held)], strict=True):
            if after > start + len(held) - _INSN_BYTES and len(held) == _READ_BYTES:
                break
            found = _TARGET.match(texts[place])
            kind, target = (found[1], int(found[2], 16)) if found else ("", 0)
            if kind == "jmp" and target == self._thunks[0] and self._thunks[1]:
                kind, target = "return", self._thunks[1]
            self._insns.setdefault(place, Insn(texts[place], after, kind, target))


class Walk:
    """Walks all paths from an address to `join`, or to the return of its function.

    taken      whether a jump can lead to that address
    barred     addresses that no path leads through
    barren     functions that do not come back: no path leads through them
    empty      functions whose calls the kernel replaces by an instruction that does nothing
    `passed` has the addresses on all of these paths. With is_flat no called function is looked at.
    """

    def __init__(
        self,
        listing: Listing,
        *,
        taken: Callable[[int], bool] = lambda _: True,
        barred: Collection[int] = (),
        barren: Collection[int] = (),
        empty: Collection[int] = (),
    ) -> None:
        self._listing, self._taken, self._barred = listing, taken, frozenset(barred)
        self._barren, self._empty = frozenset(barren), frozenset(empty)
        self._found: dict[tuple[object, ...], Interval | None] = {}
        self._is_flat = False
        self.passed: set[int] = set()

    def span(self, start: int, join: int = 0, *, is_flat: bool = False) -> Interval | None:
        """Instructions on a path, that at `join` left out; None if no path gets there. EscapeError
        if a path returns before.
        """
        self._is_flat = is_flat
        self._found.clear()
        self.passed.clear()
        return self._from(start, join, {})

    def _from(self, at: int, join: int, loops: Mapping[int, int]) -> Interval | None:
        key = (at, join, *sorted(loops.items()))
        if key not in self._found:
            self._found[key] = self._walked(at, join, dict(loops))
        return self._found[key]

    def _walked(self, at: int, join: int, loops: dict[int, int]) -> Interval | None:
        total = Interval()
        while at != join:
            insn = self._listing.at(at)
            self.passed.add(at)
            one = Interval(1, 1)
            if insn.text.startswith("ud2") or at in self._barred:
                return None
            if _RETURNS.match(insn.text):
                if join:
                    raise EscapeError(f"a path returns at {at:#x}, before {join:#x}")
                return total + one
            if insn.kind == "call" and self._drops(insn.target):
                total, at = total + one, insn.target
                continue
            if insn.kind in ("", "call"):
                called = self._called(insn)
                if called is None:
                    return None
                total, at = total + one + called, insn.after
                continue
            if insn.kind in ("jmp", "return"):
                total += one if insn.kind == "jmp" else Interval()
                if not _again(at, insn.target, loops):
                    return None
                at = insn.target
                continue
            ways = self._ways(at, insn, loops)
            rest = either([self._from(to, join, again) for to, again in ways])
            return None if rest is None else total + one + rest
        return total

    def _drops(self, target: int) -> bool:
        """Whether a function that is called returns to its caller's caller."""
        known = target in self._barren or target in self._empty
        return not known and self._listing.at(target).text.startswith(_DROPS_RETURN)

    def _ways(
        self, at: int, insn: Insn, loops: dict[int, int]
    ) -> Iterator[tuple[int, dict[int, int]]]:
        """Where a conditional jump leads."""
        for to in (insn.after, insn.target):
            again = dict(loops)
            if self._taken(to) and _again(at, to, again):
                yield to, again

    def _called(self, insn: Insn) -> Interval | None:
        """What a call executes besides itself; of another instruction, nothing."""
        if insn.kind != "call":
            if insn.text.startswith(("call", "jmp", "notrack jmp")):
                raise LabError(f"where {insn.text!r} leads to is not known")
            return Interval()
        if insn.target in self._barren:
            return None
        if self._is_flat or insn.target in self._empty:
            return Interval()
        return self._from(insn.target, 0, {})


def _again(at: int, to: int, loops: dict[int, int]) -> bool:
    """Whether a jump may be taken: those backwards are counted."""
    if to <= at:
        loops[to] = loops.get(to, 0) + 1
    return loops.get(to, 0) < PASSES
