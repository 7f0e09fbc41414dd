# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's file and the guest's symbols become counts by function, region and context."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kdelta.counts.model import (
    CONTEXTS,
    Cost,
    FunctionCost,
    Iterations,
    RegionCounts,
    RunCounts,
)
from kdelta.counts.raw import CodeMap, RawCounts, RawRegion, Sources
from kdelta.machines.chunks import require_complete
from kdelta.spec.errors import LabError

__all__ = ["Sources", "read_counts"]

_REPEATED = 2  # of a string operation: with a repeat prefix
_COMPARED = 2  # operands of cmps
_SUMS = ("insns", "string_iterations", "loads", "stores", "string_bytes")

Counted = npt.NDArray[np.int64]


class _Labels:
    """(origin, name) of every block: functions of one name are one."""

    def __init__(self, code: CodeMap) -> None:
        labels = dict.fromkeys((origin, name) for origin, name, _ in code.places)
        self.labels = list(labels)
        index = {label: i for i, label in enumerate(self.labels)}
        of_place = np.array([index[origin, name] for origin, name, _ in code.places], np.int64)
        self.of_block = of_place[code.of_block]


def _costs_by_row(
    raw: RawCounts, first_group: npt.NDArray[np.int64], rows: npt.NDArray[np.void]
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
    raw: RawCounts, functions: _Labels, first_group: npt.NDArray[np.int64], region: RawRegion
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
    """The blocks' sums against the running totals that the plugin kept next to them."""
    totals = (int(whole[0] + whole[1]), int(whole[2]), int(whole[3]))
    for context, total in zip(CONTEXTS, totals, strict=True):
        counted = region.cost(context).insns
        if counted != total:
            raise LabError(
                f"region {region.name}: the functions' {context} instructions add up to {counted}, "
                f"not {total}",
                "this is a fault of kdelta's; please report it with the kernel and the workload",
            )


def read_counts(
    counts: Path, sources: Sources, clock_ticks: Mapping[str, int] | None = None
) -> RunCounts:
    """The counts of a finished run, from the plugin's file.

    clock_ticks: region name -> ticks of 1 ns that the guest's clock went on in it, where known.
    It goes to names that were begun once: of others it says nothing about each time.
    Raises LabError for a file that is cut short, and when the counts do not add up.
    """
    require_complete(counts)
    raw = RawCounts(counts)
    functions = _Labels(CodeMap(raw, sources))
    first_group = raw.first_groups()
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
