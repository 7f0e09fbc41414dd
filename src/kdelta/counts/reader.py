# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's file and the guest's symbols become counts by function, region and context."""

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.binaries import Binary, attribute, load_binary
from kdelta.counts.model import (
    CONTEXTS,
    VDSO,
    Cost,
    FunctionCost,
    Iterations,
    RegionCounts,
    RunCounts,
)
from kdelta.counts.symbols import NO_SYMBOL, SymbolTable, kallsyms_file, parse_kallsyms
from kdelta.machines.chunks import read_chunks, require_complete
from kdelta.spec.errors import LabError

FORMAT = 1
_REPEATED = 2  # of a string operation: with a repeat prefix
_COMPARED = 2  # operands of cmps
_ADDRESS_BYTES = 8  # of the vDSO in the agent, before its bytes in the message
_BLOCK = struct.Struct("<IIQII")
_REGION = struct.Struct("<QQ")
_ROW = np.dtype(
    [("block", "<u4"), ("place", "<u4")]
    + [(name, "<u8") for name in ("entered", "lost", "elements", "mmio")]
)
_GROUP = np.dtype(
    [("insns", "<u2"), ("inner_loads", "<u2"), ("inner_stores", "<u2"), ("special", "u1"),
     ("string", "u1"), ("element_bytes", "u1"), ("loads", "u1"), ("stores", "u1"), ("unused", "u1")]
)  # fmt: skip
_SUMS = ("insns", "string_iterations", "loads", "stores", "string_bytes")

Counted = npt.NDArray[np.int64]


class _Region(msgspec.Struct):
    name: str
    iterations_lost: int
    iterations: npt.NDArray[np.uint64]  # (n, 4): own user, own kernel, interrupts, other
    whole: npt.NDArray[np.uint64]  # (4,)
    rows: npt.NDArray[np.void]


class _Raw:
    """The file's chunks, taken apart."""

    def __init__(self, path: Path) -> None:
        self.specials: list[str] = []
        self.warnings: list[str] = []
        self.regions: list[_Region] = []
        self.vaddr: dict[int, int] = {}
        self.code: dict[int, bytes] = {}
        self.user: set[int] = set()
        self.first_group: dict[int, int] = {}
        self._groups: list[bytes] = []
        self._n_groups = 0
        for tag, payload in read_chunks(path):
            if tag == b"HEAD":
                self._head(bytes(payload))
            elif tag == b"WARN":
                self.warnings.append(bytes(payload).decode("utf-8", "replace"))
            elif tag == b"BLKS":
                self._blocks(payload)
            elif tag == b"REGN":
                self.regions.append(_region(payload))
        self.groups = np.frombuffer(b"".join(self._groups), dtype=_GROUP)

    def _head(self, payload: bytes) -> None:
        version = int.from_bytes(payload[:4], "little")
        if version != FORMAT:
            raise LabError(
                f"the counts have format {version}, and this kdelta knows {FORMAT}", "run again"
            )
        self.specials = payload[4:].decode().split("\0")[:-1]

    def _blocks(self, payload: memoryview) -> None:
        at = 0
        while at < len(payload):
            block, n_bytes, vaddr, user, n_groups = _BLOCK.unpack_from(payload, at)
            at += _BLOCK.size
            size = n_groups * _GROUP.itemsize
            self.vaddr[block] = vaddr
            self.first_group[block] = self._n_groups
            self._groups.append(bytes(payload[at : at + size]))
            self._n_groups += n_groups
            at += size
            if user:
                self.user.add(block)
                self.code[block] = bytes(payload[at : at + n_bytes])
            at += n_bytes


def _region(payload: memoryview) -> _Region:
    length = int.from_bytes(payload[:4], "little")
    name = bytes(payload[4 : 4 + length]).decode("utf-8", "replace")
    at = 4 + length
    lost, count = _REGION.unpack_from(payload, at)
    at += _REGION.size
    iterations = np.frombuffer(payload, "<u8", count * 4, at).reshape(count, 4)
    at += iterations.nbytes
    whole = np.frombuffer(payload, "<u8", 4, at)
    return _Region(name, lost, iterations, whole, np.frombuffer(payload, _ROW, offset=at + 32))


class _Functions:
    """(origin, name) of every block; index 0 is the code that nothing is known of."""

    def __init__(
        self,
        raw: _Raw,
        kernel: SymbolTable,
        binaries: Sequence[Binary],
    ):
        self.labels: list[tuple[str, str]] = [("[unknown]", "[unknown]")]
        self._index: dict[tuple[str, str], int] = {self.labels[0]: 0}
        self.of_block: npt.NDArray[np.int64] = np.zeros(
            max(raw.vaddr, default=0) + 1, dtype=np.int64
        )
        in_kernel = [block for block in raw.vaddr if block not in raw.user]
        self._label(in_kernel, [raw.vaddr[block] for block in in_kernel], kernel)
        user = {block: (raw.vaddr[block], raw.code[block]) for block in raw.user}
        owners = attribute(binaries, user)
        for binary in binaries:
            held = {block: base for block, (owner, base) in owners.items() if owner is binary}
            table = SymbolTable((a, kind, name, binary.name) for a, kind, name in binary.symbols)
            self._label(
                list(held), [raw.vaddr[b] - base for b, base in held.items()], table, binary.name
            )

    def _add(self, label: tuple[str, str]) -> int:
        if label not in self._index:
            self._index[label] = len(self.labels)
            self.labels.append(label)
        return self._index[label]

    def _label(
        self,
        blocks: Sequence[int],
        addresses: Sequence[int],
        table: SymbolTable,
        origin: str = "kernel",
    ) -> None:
        found = table.indexes(np.array(addresses, dtype=np.uint64))
        for block, index in zip(blocks, found, strict=True):
            label = table.labels[index] if index >= 0 else (origin, NO_SYMBOL)
            self.of_block[block] = self._add(label)


def _costs_by_row(
    raw: _Raw, first_group: npt.NDArray[np.int64], rows: npt.NDArray[np.void]
) -> dict[str, Counted]:
    """For each row its sums; docs/formats.md has the arithmetic."""
    group = raw.groups[first_group[rows["block"]] + (rows["place"] & 0xFFFF)]
    column = {name: rows[name].astype(np.int64) for name in ("entered", "lost", "elements", "mmio")}
    executed = column["entered"] - column["lost"]
    loads, stores = group["loads"].astype(np.int64), group["stores"].astype(np.int64)
    # cmps reads two operands, and both were counted.
    elements = column["elements"] // np.where(loads == _COMPARED, _COMPARED, 1)
    again = np.where(group["string"] == _REPEATED, elements, 0)
    times = np.where(group["string"] != 0, elements, executed)
    ticks = group["insns"].astype(np.int64) * column["entered"] - column["lost"]
    return {
        "insns": ticks - again,
        "string_iterations": again,
        "loads": loads * times + group["inner_loads"] * column["entered"],
        "stores": stores * times + group["inner_stores"] * column["entered"],
        "string_bytes": elements * group["element_bytes"].astype(np.int64),
        "special": group["special"].astype(np.int64),
        "special_count": executed - again,
        "mmio": column["mmio"],
    }


def _function_costs(
    raw: _Raw, functions: _Functions, first_group: npt.NDArray[np.int64], region: _Region
) -> tuple[FunctionCost, ...]:
    rows = region.rows
    row_cost = _costs_by_row(raw, first_group, rows)
    key = (rows["place"] >> 16).astype(np.int64) * len(functions.labels) + functions.of_block[
        rows["block"]
    ]
    keys, position = np.unique(key, return_inverse=True)
    sums = {name: np.zeros(len(keys), dtype=np.int64) for name in _SUMS}
    for name in _SUMS:
        np.add.at(sums[name], position, row_cost[name])
    specials: list[dict[str, int]] = [{} for _ in keys]
    for row in np.flatnonzero((row_cost["special"] > 0) | (row_cost["mmio"] > 0)):
        kinds = specials[position[row]]
        for kind, count in (
            (raw.specials[row_cost["special"][row]], row_cost["special_count"][row]),
            ("mmio", row_cost["mmio"][row]),
        ):
            if kind and count:
                kinds[kind] = kinds.get(kind, 0) + int(count)
    found = []
    for i, k in enumerate(keys):
        origin, name = functions.labels[int(k) % len(functions.labels)]
        context = CONTEXTS[int(k) // len(functions.labels)]
        insns, string_iterations, loads, stores, string_bytes = (int(sums[n][i]) for n in _SUMS)
        cost = Cost(insns, string_iterations, loads, stores, string_bytes, specials[i])
        found.append(FunctionCost(context, origin, name, cost))
    return tuple(
        sorted(found, key=lambda f: (CONTEXTS.index(f.context), -f.cost.insns, f.origin, f.name))
    )


def _check(region: RegionCounts, whole: npt.NDArray[np.uint64]) -> None:
    """The blocks' sums against the running totals that the plugin kept beside them."""
    totals = (int(whole[0] + whole[1]), int(whole[2]), int(whole[3]))
    for context, total in zip(CONTEXTS, totals, strict=True):
        counted = region.cost(context).insns
        if counted != total:
            raise LabError(
                f"region {region.name}: the functions' {context} instructions add up to {counted}, "
                f"not {total}",
                "this is a fault of kdelta's; please report it with the kernel and the workload",
            )


class Sources(msgspec.Struct, frozen=True):
    """What a run's addresses are explained by.

    symbols: the guest's /proc/kallsyms; modules: the lines that modules added to it since.
    binaries: name -> content of the user programs that could have run. vdso: the agent's message.
    """

    symbols: Path
    modules: bytes = b""
    binaries: Mapping[str, bytes] = {}
    vdso: bytes = b""


def read_counts(
    counts: Path, sources: Sources, clock_ticks: Mapping[str, int] | None = None
) -> RunCounts:
    """The counts of a finished run, from the plugin's file.

    clock_ticks: region name -> ticks of 1 ns that the guest's clock went on in it, where known.
    It goes to names that were begun once: of others it says nothing about each time.
    Raises LabError for a file that is cut short, and when the counts do not add up.
    """
    require_complete(counts)
    raw = _Raw(counts)
    kernel = SymbolTable((*kallsyms_file(sources.symbols), *parse_kallsyms(sources.modules)))
    files = {**sources.binaries, VDSO: sources.vdso[_ADDRESS_BYTES:]}
    loaded = [load_binary(name, content) for name, content in files.items()]
    functions = _Functions(raw, kernel, [binary for binary in loaded if binary])
    first_group = np.zeros(len(functions.of_block), dtype=np.int64)
    for block, first in raw.first_group.items():
        first_group[block] = first
    begun = Counter(region.name for region in raw.regions)
    regions = []
    for region in raw.regions:
        rows = Iterations(*(tuple(int(n) for n in column) for column in region.iterations.T))
        counted = RegionCounts(
            name=region.name,
            iterations=rows,
            functions=_function_costs(raw, functions, first_group, region),
            clock_ticks=(clock_ticks or {}).get(region.name) if begun[region.name] == 1 else None,
            iterations_lost=region.iterations_lost,
        )
        _check(counted, region.whole)
        regions.append(counted)
    return RunCounts(tuple(regions), tuple(raw.warnings))
