# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's file and the guest's symbols become counts by function, region and context."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kdelta.counts.arrays import U64
from kdelta.counts.callers import DirectCalls
from kdelta.counts.model import (
    CONTEXTS,
    CpuCounts,
    FunctionCost,
    Iterations,
    RegionCounts,
    RunCounts,
)
from kdelta.counts.profile import TALLY, row_costs
from kdelta.counts.raw import CodeMap, RawCounts, RawRegion, Sources, contexts_of
from kdelta.machines.chunks import require_complete
from kdelta.spec.errors import LabError

__all__ = ["Sources", "read_counts"]


_OWN = CONTEXTS.index("own")


class _Labels:
    """(origin, name) of every block: functions of one name are one."""

    def __init__(self, raw: RawCounts, code: CodeMap) -> None:
        self.labels = list(dict.fromkeys((origin, name) for origin, name, _ in code.places))
        index = {label: i for i, label in enumerate(self.labels)}
        of_place = np.array([index[origin, name] for origin, name, _ in code.places], np.int64)
        self.of_block = of_place[code.of_block]
        self.calls = DirectCalls(raw, code, self.of_block, of_place)

    def called(self, region: RawRegion) -> dict[tuple[int, int], tuple[int, str]]:
        """How often, and by whom alone, by context and label: of what the measured tasks called."""
        return {
            (_OWN, at): (one.calls, "" if one.caller is None else self.labels[one.caller][1])
            for at, one in self.calls.called(region).items()
        }


def _function_costs(
    raw: RawCounts, functions: _Labels, region: RawRegion
) -> tuple[FunctionCost, ...]:
    rows, n = region.rows, len(functions.labels)
    group = raw.groups[raw.group_of(rows["block"], rows["place"])]
    tally = {name: rows[name].astype(np.int64) for name in TALLY}
    key = contexts_of(rows) * n + functions.of_block[rows["block"]]
    keys, position = np.unique(key, return_inverse=True)
    sums = row_costs(group, tally, raw.specials).summed(position, len(keys))
    called = functions.called(region)
    found = [
        FunctionCost(
            CONTEXTS[context],
            *functions.labels[label],
            sums.cost(index),
            *called.get((context, label), ()),
        )
        for index, (context, label) in enumerate(divmod(int(key), n) for key in keys)
    ]
    return tuple(
        sorted(found, key=lambda f: (CONTEXTS.index(f.context), -f.cost.insns, f.origin, f.name))
    )


def _check(region: RegionCounts, whole: U64) -> None:
    """The blocks' sums against the running totals that the plugin kept next to them."""
    totals = (int(whole[0] + whole[1]), int(whole[2]), int(whole[3]))
    of_cpus = tuple(sum(getattr(cpu, name) for cpu in region.cpus) for name in CONTEXTS)
    if region.cpus and of_cpus != totals:
        raise LabError(
            f"region {region.name}: the CPUs' instructions add up to {of_cpus}, not {totals}",
            "this is a fault of kdelta's; please report it with the kernel and the workload",
        )
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
    """Return the counts of a finished run, from the plugin's file.

    clock_ticks: region name -> ticks of 1 ns that the guest's clock went on in it, where known.
    It goes to names that were begun once: of others it says nothing about each time.
    Raises LabError for a file that is cut short, and when the counts do not add up.
    """
    require_complete(counts)
    raw = RawCounts(counts)
    functions = _Labels(raw, CodeMap(raw, sources))
    begun = Counter(region.name for region in raw.regions)
    regions = []
    for region in raw.regions:
        rows = Iterations(*(tuple(int(n) for n in column) for column in region.iterations.T))
        counted = RegionCounts(
            name=region.name,
            iterations=rows,
            functions=_function_costs(raw, functions, region),
            clock_ticks=(clock_ticks or {}).get(region.name) if begun[region.name] == 1 else None,
            iterations_lost=region.iterations_lost,
            cpus=tuple(CpuCounts(*map(int, row)) for row in region.cpus),
        )
        _check(counted, region.whole)
        regions.append(counted)
    return RunCounts(tuple(regions), tuple(raw.warnings))
