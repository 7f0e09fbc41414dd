# SPDX-License-Identifier: GPL-2.0-or-later
"""A region's trace split into phases by the kernel functions that are called (spec/phase.py).

    phased = PhasedTrace(trace, symbols, rules)
    phased.insns                                        # (n_phases, 3), by context
    phased.prepared(placed).replay(layouts, cache)      # misses, (n_layouts, n_phases, 3)

What is a call is derived from where execution went (native/replay/phases.c), since a trace has no
instructions. All that was executed is in one phase, so the phases add up to the region.
"""

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from kdelta.counts.arrays import I64, U8, U32, U64, run_offsets, sums_at
from kdelta.counts.model import CONTEXTS
from kdelta.counts.symbols import CODE_TYPES, Symbol, without_padding
from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.model import Cache
from kdelta.replay import native
from kdelta.replay.simulate import (
    Kind,
    PlacedBlocks,
    PreparedTrace,
    check_trace,
    native_columns,
    native_trace,
)
from kdelta.spec.errors import LabError
from kdelta.spec.phase import PhaseRule, check_rules, phase_names

_NO_RULE = 255
_NOWHERE = 2**32 - 1  # the function of a program's code
_INSIDE, _ENTRY, _NEAR_ENTRY = 0, 1, 2
_NEAR_BYTES = 4  # a landing pad's (endbr64, bti), which direct calls may jump over
_LONGEST_BYTES = 1 << 20  # no function is longer: what is farther behind the last symbol is none
_CHANGE = np.dtype([("executed", "<u8"), ("item", "<u4"), ("call", "<u4")])
_BITS = 63


class _Functions(msgspec.Struct, frozen=True, eq=False):
    """Where functions begin, by address, and the names that each has, without what compilers add to
    distinguish versions; no names for parts of functions (.cold).
    """

    starts: U64
    names: tuple[frozenset[str], ...]


class _Cuts(msgspec.Struct, frozen=True, eq=False):
    """What was executed, in stretches of one phase: items [first, last) of the trace's pieces, in
    the order of their execution, and of each its phase and context.
    """

    first: I64
    last: I64
    phase: I64
    context: I64


class PhasedTrace:
    """A trace, and which phase each part of it is in.

    names: of the phases, REST last. insns (n_phases, 3): instructions executed, by context as in
    counts.model.CONTEXTS; blocks count whole, as in Trace.executed_insns, and all phases together
    have what that says. calls (n_phases,): how many calls are in each phase, 0 for the REST.

    symbols: of the traced kernel and its modules. Raises UserError for rules that mean nothing,
    LabError for a damaged trace. A rule whose functions were not executed has no calls.
    """

    def __init__(self, trace: Trace, symbols: Iterable[Symbol], rules: Sequence[PhaseRule]) -> None:
        check_rules(rules)
        check_trace(trace)
        self.names = phase_names(rules)
        phase_of_rule = np.full(_NO_RULE + 1, len(self.names) - 1, dtype=np.int64)
        for index, rule in enumerate(rules):
            phase_of_rule[index] = self.names.index(rule.name)
        changes, rule_of_call = _split(trace, _functions(symbols, trace.addresses), rules)
        phase_of_call = phase_of_rule[rule_of_call]
        self.calls: I64 = np.bincount(phase_of_call[1:], minlength=len(self.names))
        self.calls[-1] = 0
        cuts = _cuts(trace, changes, phase_of_call)
        self.trace, self._block, self._label = _relabelled(trace, cuts)
        """The same trace, with a block for each phase and context in which one is executed."""
        self.insns = self._summed(self.trace.executions() * self.trace.insns)

    def _summed(self, by_block: U64) -> I64:
        """Sums over the blocks of each phase and context: (n_phases, 3)."""
        found = sums_at(self._label, by_block.astype(np.int64), len(self.names) * len(CONTEXTS))
        return found.reshape(len(self.names), len(CONTEXTS))

    def executions(self, n_blocks: int) -> I64:
        """How often each block of the given trace was executed: (n_blocks, n_phases, 3)."""
        found = np.zeros((n_blocks, len(self.names) * len(CONTEXTS)), dtype=np.int64)
        np.add.at(found, (self._block, self._label), self.trace.executions().astype(np.int64))
        return found.reshape(n_blocks, len(self.names), len(CONTEXTS))

    def prepared(self, placed: PlacedBlocks) -> "PreparedPhases":
        """Ready to be replayed; placed: where the blocks of the given trace lie."""
        return PreparedPhases(self, placed, self._block, self._label)


class PreparedPhases:
    """A phased trace, made once, replayed as often as wanted; see PhasedTrace.prepared."""

    def __init__(self, phased: PhasedTrace, placed: PlacedBlocks, block: I64, label: I64) -> None:
        self._shape = (len(phased.names), len(CONTEXTS))
        # The same function in another phase is a function of its own, that lies at the same place.
        keys = placed.function[block].astype(np.int64) * self._shape[0] * self._shape[1] + label
        distinct, function = np.unique(keys, return_inverse=True)
        self._column = distinct // (self._shape[0] * self._shape[1])
        self._label = distinct % (self._shape[0] * self._shape[1])
        self._prepared = PreparedTrace(
            phased.trace, PlacedBlocks(function.astype(np.uint32), placed.offset[block])
        )

    def replay(self, layouts: U64, cache: Cache, *, kind: Kind = "lines", **how: Any) -> I64:
        """The misses under each of `layouts` (n_layouts, n_functions): (n_layouts, n_phases, 3).

        They are those of PreparedTrace.replay, which has the rest: a phase finds the cache as the
        one before it left it. Raises what that raises.
        """
        if layouts.ndim == 2 and len(self._column) and layouts.shape[1] <= self._column.max():
            raise ValueError(f"layouts have {layouts.shape[1]} functions, which are too few")
        found = self._prepared.replay(layouts[:, self._column], cache, kind=kind, **how)
        total = np.zeros((len(layouts), self._shape[0] * self._shape[1]), dtype=np.int64)
        if found.by_function is not None:
            np.add.at(total.T, self._label, found.by_function.T.astype(np.int64))
        return total.reshape(len(layouts), *self._shape)


def _functions(symbols: Iterable[Symbol], addresses: U64) -> _Functions:
    """Those that code at these addresses is in: few of a kernel's."""
    code = [symbol for symbol in symbols if symbol[1] in CODE_TYPES]
    starts = np.unique(np.array([symbol[0] for symbol in code], dtype=np.uint64))
    at = np.searchsorted(starts, addresses, side="right")
    starts = starts[np.unique(at[at > 0]) - 1]
    names: dict[int, set[str]] = {start: set() for start in starts.tolist()}
    for address, _, name, _ in code:
        if address in names and without_padding(name) == name:
            base, _, version = name.partition(".")
            if not version.startswith("cold"):
                names[address].add(base)
    return _Functions(starts, tuple(frozenset(held) for held in names.values()))


def _split(
    trace: Trace, functions: _Functions, rules: Sequence[PhaseRule]
) -> tuple[np.ndarray[Any, Any], U8]:
    """Where which call begins or goes on, as _CHANGE; and of each call its rule, or _NO_RULE."""
    columns = native_columns(trace, data=False)
    columns["sizes"] = np.ascontiguousarray(trace.sizes, dtype=np.uint32)
    given = native_trace(columns)
    function, entries = _places(trace, functions)
    addresses = np.ascontiguousarray(trace.addresses, dtype=np.uint64)
    of_rule = _masks(functions, [rule.calls for rule in rules])
    of_through = _masks(functions, [rule.through for rule in rules])
    phases = native.NativePhases(
        trace=ctypes.pointer(given),
        addresses=native.pointer(addresses),
        functions=native.pointer(function),
        entries=native.pointer(entries),
        rules=native.pointer(of_rule),
        through=native.pointer(of_through),
        always=sum(1 << index for index, rule in enumerate(rules) if not rule.through),
    )
    found = native.NativeSplit()
    library = native.library()
    native.check_status(library.replay_split(ctypes.byref(phases), ctypes.byref(found)))
    try:
        return (
            native.copied(found.changes, found.n_changes, _CHANGE),
            native.copied(found.rules, found.n_calls + 1, np.uint8),
        )
    finally:
        library.replay_split_free(ctypes.byref(found))


def _places(trace: Trace, functions: _Functions) -> tuple[U32, U8]:
    """Of each block its function, and whether it is where that is called."""
    at = np.searchsorted(functions.starts, trace.addresses, side="right").astype(np.int64) - 1
    inside = trace.addresses - functions.starts[np.maximum(at, 0)] if len(functions.starts) else at
    is_code = (at >= 0) & (inside < _LONGEST_BYTES)
    function = np.where(is_code, at, _NOWHERE).astype(np.uint32)
    entries = np.full(len(at), _INSIDE, dtype=np.uint8)
    entries[is_code & (inside <= _NEAR_BYTES)] = _NEAR_ENTRY
    entries[is_code & (inside == 0)] = _ENTRY
    return function, entries


def _masks(functions: _Functions, wanted: Sequence[Sequence[str]]) -> U64:
    """Of each function, as bits, which lists of names have it."""
    masks = [
        sum(1 << index for index, names in enumerate(wanted) if not held.isdisjoint(names))
        for held in functions.names
    ]
    return np.array(masks, dtype=np.uint64)


def _cuts(trace: Trace, changes: np.ndarray[Any, Any], phase_of_call: I64) -> _Cuts:
    starts = trace.starts.astype(np.int64)
    piece = trace.sequence.astype(np.int64)
    lengths = np.diff(starts)[piece] if len(piece) else np.zeros(0, dtype=np.int64)
    begins = np.cumsum(lengths) - lengths  # of each executed piece, in all that was executed
    executed = changes["executed"].astype(np.int64)
    changed = begins[executed] + changes["item"].astype(np.int64)
    phases = np.concatenate([[phase_of_call[0]], phase_of_call[changes["call"]]])
    # A change within a phase is none: from one call of it to the next.
    real = np.flatnonzero(np.diff(phases))
    changed, executed, phases = (
        changed[real],
        executed[real],
        phases[np.concatenate([[0], real + 1])],
    )
    cut = np.concatenate([begins, changed])
    of = np.concatenate([np.arange(len(piece)), executed])
    order = np.lexsort((of, cut))
    cut, of = cut[order], of[order]
    end = np.append(cut[1:], lengths.sum())
    held = end > cut
    cut, of, end = cut[held], of[held], end[held]
    first = starts[piece[of]] + cut - begins[of]
    return _Cuts(
        first=first,
        last=first + end - cut,
        phase=phases[np.searchsorted(changed, cut, side="right")],
        context=trace.contexts[of].astype(np.int64),
    )


def _relabelled(trace: Trace, cuts: _Cuts) -> tuple[Trace, I64, I64]:
    """The trace with a block for each label (phase x contexts + context) in which it is executed;
    of each new block the old one, and its label.
    """
    label = cuts.phase * len(CONTEXTS) + cuts.context
    n_labels = int(label.max(initial=0)) + 1
    bits = len(trace.items).bit_length()
    if 2 * bits + n_labels.bit_length() > _BITS:
        raise LabError(
            f"the trace of region {trace.region} is too long to be split into phases",
            "take a shorter region",
        )
    keys = (label << bits | cuts.first) << bits | cuts.last
    distinct, sequence = np.unique(keys, return_inverse=True)
    first, last = distinct >> bits & (1 << bits) - 1, distinct & (1 << bits) - 1
    lengths = last - first
    items = trace.items[np.repeat(first, lengths) + run_offsets(lengths)]
    is_block = items < DATA
    of_item = np.repeat(distinct >> 2 * bits, lengths)
    blocks = items[is_block].astype(np.int64) * n_labels + of_item[is_block]
    held, block = np.unique(blocks, return_inverse=True)
    items[is_block] = block
    old = held // n_labels
    made = msgspec.structs.replace(
        trace,
        addresses=trace.addresses[old],
        sizes=trace.sizes[old],
        insns=trace.insns[old],
        physical=None if trace.physical is None else trace.physical[old],
        items=items,
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64),
        sequence=sequence.astype(np.uint32),
        contexts=cuts.context.astype(np.uint8),
    )
    return made, old, held % n_labels
