# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel's code as a run executed it, and as it would be on a CPU that has what TCG lacks."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from alternatives import ALWAYS, XENPV, Alternative, Code, apply, parse_kernel, unpacked
from code_paths import Listing, Walk

from kdelta.counts.disassembly import Block, disassembled
from kdelta.counts.model import CONTEXTS
from kdelta.counts.raw import RawCounts, RawRegion
from kdelta.counts.symbols import SymbolTable, code_table, parse_symbols
from kdelta.machines.outcome import GuestOutcome
from kdelta.spec.errors import LabError

LACKING = {
    4 * 32 + 17: "pcid",
    9 * 32 + 10: "invpcid",
    10 * 32 + 1: "xsavec",
    10 * 32 + 3: "xsaves",
}
"""By their numbers in arch/x86/include/asm/cpufeatures.h, the same in Linux 6.1 and 6.12."""
_INVPCID_SINGLE, _PTI = 7 * 32 + 7, 7 * 32 + 11  # the former until 6.10: INVPCID with PCID
TESTED = {**LACKING, _INVPCID_SINGLE: "invpcid"}
_OWN = CONTEXTS.index("own")

_SOON = 12
"""Within how many instructions what is read of the features is tested."""

# Registers that a call does not keep; functions that do not return; whose calls are patched out.
_CALLS_OVERWRITE = ("%rax", "%rcx", "%rdx", "%rsi", "%rdi", "%eax", "%ecx", "%edx", "%esi", "%edi")
_BARREN = ("__stack_chk_fail",)
_EMPTY = ("__fentry__",)


class Run(NamedTuple):
    """A run: its counts, the kernel's functions, and the address of each of its symbols."""

    raw: RawCounts
    symbols: SymbolTable
    names: Mapping[str, int]
    has_pti: bool


def read_run(outcome: GuestOutcome) -> Run:
    """A run that went well."""
    assert outcome.status == "ok", (outcome.status, outcome.detail)
    assert outcome.counts
    assert outcome.symbols
    known = parse_symbols(outcome.symbols.read_bytes())
    flags = outcome.messages["cpuinfo"].decode().partition("flags")[2].partition("\n")[0].split()
    names = {name: address for address, _, name, _ in known}
    return Run(RawCounts(outcome.counts), code_table(known), names, "pti" in flags)


class Executed:
    """The kernel's code that the tasks themselves executed in regions, by block."""

    def __init__(self, run: Run) -> None:
        self.raw = run.raw
        rows = np.concatenate([region.rows for region in run.raw.regions])
        own = np.unique(rows["block"][(rows["place"] >> 16 == _OWN) & (rows["entered"] > 0)])
        self.blocks = [block for block in own.tolist() if block not in run.raw.user]
        shown = [Block(run.raw.vaddr[block], run.raw.code[block]) for block in self.blocks]
        self.insns = dict(zip(self.blocks, disassembled(shown, (), "x86_64"), strict=True))
        self.places = frozenset(place for held in self.insns.values() for place in held)

    def group(self, block: int, place: int) -> int:
        """Of a block's instruction at that address, the number of its group."""
        index = sorted(self.insns[block]).index(place)
        (end,) = self.raw.group_ends([block], [len(self.insns[block])]).tolist()
        insns = self.raw.groups["insns"][self.raw.first_group[block] : end]
        return int(np.searchsorted(np.cumsum(insns[insns > 0]), index, side="right"))

    def times(self, region: RawRegion, place: int) -> int:
        """How often a region executed the instruction at that address."""
        found = 0
        for block in self.blocks:
            if place in self.insns[block]:
                wanted = _OWN << 16 | self.group(block, place)
                rows = region.rows[region.rows["block"] == block]
                found += int(rows["entered"][rows["place"] == wanted].sum())
        return found


class Kernel:
    """A kernel's code as it was executed, and as it would be on a CPU that has what TCG lacks."""

    def __init__(self, image: Path, run: Run) -> None:
        code, alternatives = parse_kernel(unpacked(image))
        self.run, self.executed, self.alternatives = run, Executed(run), alternatives
        known = {ALWAYS: True, XENPV: False, _PTI: run.has_pti}
        linked = code.copy()
        apply(code, alternatives, {**known, **dict.fromkeys(LACKING, False)})
        thunk = run.names["__x86_return_thunk"]
        self.replaced: dict[int, Alternative] = {}
        for one in alternatives:
            if one.feature in LACKING:
                self.replaced[one.address] = one  # of several, the last one is taken
        self.words = _offset_of_words(linked, self.replaced.values(), run.names["boot_cpu_data"])
        returns = (place for place in sorted(self.executed.places) if _jumps(code, place) == thunk)
        thunks = (thunk, next(returns, 0))
        for block in self.executed.blocks:
            code.write(run.raw.vaddr[block], run.raw.code[block])
        self.emulated = Listing(code, *thunks)
        real = code.copy()
        for one in self.replaced.values():
            real.write(one.address, one.code())
        self.real = Listing(real, *thunks)

    def is_code(self, address: int) -> bool:
        """Whether the kernel's image has code there, which is not so of modules."""
        return bool(self.real.code.read(address, 1))

    def place(self, address: int) -> str:
        """A function and an offset."""
        index = int(self.run.symbols.indexes(np.array([address], np.uint64))[0])
        start = int(self.run.symbols.starts[index])
        return f"{self.run.symbols.labels[index][1]}+{address - start:#x}"

    def walk(self, *, is_real: bool, barred: Sequence[int] = ()) -> Walk:
        """Of paths that can be taken, or of those that were."""
        names, executed = self.run.names, self.executed.places
        return Walk(
            self.real if is_real else self.emulated,
            taken=lambda to: is_real or to in executed,
            barred=barred,
            barren=[names[name] for name in _BARREN if name in names],
            empty=[names[name] for name in _EMPTY if name in names],
        )


def _jumps(code: Code, place: int) -> int:
    """Where a long jump at that address leads; 0 if there is none."""
    held = code.read(place, 5)
    return place + 5 + int.from_bytes(held[1:], "little", signed=True) if held[:1] == b"\xe9" else 0


def tests(known: Kernel) -> Iterator[tuple[int, int]]:
    """Executed tests of such a feature that are no alternatives: (address, number of the feature).

    LabError for code that reads its word and does not test a bit that is known.
    """
    names = known.run.names
    for place in sorted(known.executed.places):
        read = _memory(known.emulated.at(place).text) if known.is_code(place) else 0
        for start in (names["boot_cpu_data"], names["cpu_info"]):
            first = (read - start - known.words) * 8
            if any(first <= feature < first + 64 for feature in TESTED):
                bit = _tested_bit(known.emulated, place)
                if bit is not None and first + bit in TESTED:
                    yield place, first + bit


def _memory(text: str) -> int:
    """The address that objdump computed of an operand; 0 if there is none."""
    found = re.search(r"# (?:0x)?([0-9a-f]+)", text)
    return int(found[1], 16) if found else 0


def _tested_bit(listing: Listing, place: int) -> int | None:
    """Which bit of what is read there is tested; None if a call overwrites it untested."""
    insn = listing.at(place)
    register = insn.text.partition(" #")[0].rpartition(",")[2]
    for _ in range(_SOON):
        if found := re.match(r"testb \$0x([0-9a-f]+),.*#", insn.text):
            return int(found[1], 16).bit_length() - 1
        if found := re.match(rf"(?:bt|shr) \$0x([0-9a-f]+),{register}", insn.text):
            return int(found[1], 16)
        if insn.kind == "call" and register in _CALLS_OVERWRITE:
            return None
        insn = listing.at(insn.after)
    raise LabError(f"what is read of the features at {place:#x} is not known")


def _offset_of_words(linked: Code, found: Iterable[Alternative], start: int) -> int:
    """Where the words of features are in boot_cpu_data, from what tests them before boot."""
    listing = Listing(linked)
    for one in found:
        insn = listing.at(one.address)
        if insn.kind == "jmp" and listing.at(insn.target).text.startswith("testb"):
            return _memory(listing.at(insn.target).text) - start - one.feature // 8
    raise LabError("no alternative tests boot_cpu_data")
