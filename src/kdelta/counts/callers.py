# SPDX-License-Identifier: GPL-2.0-or-later
"""How often functions of the kernel were called in a region, and by which function alone."""

from collections.abc import Iterator

import msgspec
import numpy as np

from kdelta.counts.arrays import I64
from kdelta.counts.model import is_kernel
from kdelta.counts.raw import CodeMap, RawCounts, RawRegion

_ADDRESSES = 1 << 64
_X86 = 5
_RISC = 4
_STUB_INSNS = 2
"""Of a function that only jumps to another one: with what marks it as a target of calls."""


class Called(msgspec.Struct, frozen=True):
    """How often a function was entered at its start, and the index of the one that it was called by
    each time; None where that is not known, or were several.
    """

    calls: int
    caller: int | None


class DirectCalls:
    """The direct calls of a file's blocks. Which function has which index is the caller's to say:
    of_block by a block's number, of_place by that of a place of the code map.
    """

    def __init__(self, raw: RawCounts, code: CodeMap, of_block: I64, of_place: I64) -> None:
        starts = {
            address: int(of_place[at])
            for at, (origin, _, address) in enumerate(code.places)
            if address and is_kernel(origin)
        }
        self._function = of_block
        self._begins = np.full(len(of_block), -1, np.int64)
        self._target = np.full(len(of_block), -1, np.int64)
        self._last_group = np.zeros(len(of_block), np.int64)
        self._stubs: set[int] = set()
        ends = [*raw.first_group.values(), len(raw.groups)][1:]
        for (block, first), end in zip(raw.first_group.items(), ends, strict=True):
            if block in raw.user:
                continue
            address, insns = raw.vaddr[block], raw.groups["insns"][first:end]
            targets = _targets(address, raw.code[block])
            self._begins[block] = starts.get(address, -1)
            self._last_group[block] = np.count_nonzero(insns) - 1
            known = ((starts[to], is_jump) for to, is_jump in targets if to in starts)
            self._target[block], is_jump = next(known, (-1, False))
            if is_jump and address in starts and insns.sum() <= _STUB_INSNS:
                self._stubs.add(starts[address])

    def called(self, region: RawRegion) -> dict[int, Called]:
        """Return what the measured tasks called, by function. Calls that are not direct ones are
        noticed, since they are missing from the number of entries.
        """
        own = region.rows[region.rows["place"] >> 16 == 0]
        block, group = own["block"].astype(np.int64), own["place"].astype(np.int64)
        entered = own["entered"].astype(np.int64)
        first = (group == 0) & (self._begins[block] >= 0)
        last = (group == self._last_group[block]) & (self._target[block] >= 0)
        entries = _sums(entered[first], self._begins[block][first])
        executed = (entered - own["lost"].astype(np.int64))[last]
        calls = _sums(executed, self._target[block][last], self._function[block][last])
        by: dict[int, list[tuple[int, int]]] = {}
        for (callee, caller), count in calls.items():
            by.setdefault(callee, []).append((caller, count))
        alone = {
            callee: callers[0][0]
            for callee, callers in by.items()
            if len(callers) == 1 and callers[0][1] == entries.get((callee,))
        }
        return {
            callee: Called(calls, self._not_by_stub(callee, alone))
            for (callee,), calls in entries.items()
        }

    def _not_by_stub(self, callee: int, alone: dict[int, int]) -> int | None:
        """The caller of what only jumps to a function is that of the function."""
        caller = alone.get(callee)
        for _ in self._stubs:
            if caller is None or caller not in self._stubs:
                break
            caller = alone.get(caller)
        return caller


def _sums(values: I64, *keys: I64) -> dict[tuple[int, ...], int]:
    """The sums of values by keys."""
    found, at = np.unique(np.stack(keys), axis=1, return_inverse=True)
    sums = np.zeros(found.shape[1], np.int64)
    np.add.at(sums, at.reshape(-1), values)
    return dict(zip(map(tuple, found.T.tolist()), sums.tolist(), strict=True))


def _targets(address: int, code: bytes) -> Iterator[tuple[int, bool]]:
    """Where a block's last instruction may go by a direct call, and whether it is a jump instead,
    of any architecture: what is no start of a function is none.
    """
    end = address + len(code)
    if len(code) >= _X86 and code[-_X86] in (0xE8, 0xE9):
        offset = int.from_bytes(code[-4:], "little", signed=True)
        yield (end + offset) % _ADDRESSES, code[-_X86] == 0xE9
    if code[-2:-1] == b"\xeb":  # x86: into which the kernel turns jumps that it patches
        yield (end + int.from_bytes(code[-1:], signed=True)) % _ADDRESSES, True
    if len(code) < _RISC:
        return
    word = int.from_bytes(code[-_RISC:], "little")
    if word >> 26 & 0x1F == 0b00101:  # arm64: B and BL
        yield (end - 4 + (_signed(word, 26) << 2)) % _ADDRESSES, not word >> 31
    if word >> 25 & 0b111 == 0b101:  # ARM: B and BL
        yield (end + 4 + (_signed(word, 24) << 2)) % _ADDRESSES, not word >> 24 & 1
    if word & 0x7F == 0b1101111:  # riscv64: JAL, whose register is x0 in a jump
        parts = ((word >> 31, 20), (word >> 12 & 0xFF, 12), (word >> 20 & 1, 11))
        offset = sum(part << at for part, at in parts) | (word >> 21 & 0x3FF) << 1
        yield (end - 4 + _signed(offset, 21)) % _ADDRESSES, not word >> 7 & 0x1F


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (value >> (bits - 1) << bits)
