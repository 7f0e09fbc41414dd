# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions whose trace was cut off at its limit: what all of them misses, as the kernel is linked.

Of such a region the trace has the first part. So the same run is made once more, and the CPU's L1I
is simulated while it runs, whatever its length. The run counts what the traced one did, which is
checked. Of other layouts nothing is known but what the trace shows.
"""

from collections.abc import Mapping, Sequence

import msgspec

from kdelta.counts.model import merged_regions
from kdelta.cpus.model import Cache
from kdelta.kernels.model import Kernel
from kdelta.report.cut import ALONE, CutMisses, CutRegion
from kdelta.store.store import Store
from kdelta.studies.lab.attachments import misses_of
from kdelta.studies.lab.lab import Lab, RunPlan, RunResult
from kdelta.studies.tracing.placement import OWN, CountedMisses, PlacedKernel

NOT_COUNTED = "L1I misses of whole regions were not counted: {why}"


async def counted_whole(
    lab: Lab,
    cache: Cache,
    kernels: Sequence[Kernel],
    works: Sequence[RunPlan],
) -> list[CountedMisses]:
    """For each kernel with its work, what its regions miss in that cache: one run each, which a run
    of the store may answer for. Nothing is made for no kernels.
    """
    if not kernels:
        return []
    plain = msgspec.structs.replace(
        lab.request, trace=False, data_lines=False, perturbations=1, rerun=False, simulate=cache
    )
    lab.progress.log("traces were cut off: a run of its own counts the L1I misses of whole regions")
    found = await lab.asked(plain).runs(kernels, works)
    return [_counted(runs[0], cache, lab.store) for runs in found]


def _counted(done: RunResult, cache: Cache, store: Store) -> CountedMisses:
    if done.counts is None:
        detail = done.run.detail.strip().partition("\n")[0]
        return CountedMisses(why_not=done.run.word + (f": {detail}" if detail else ""))
    regions = merged_regions(done.counts)
    return CountedMisses(
        {
            one.region: one.misses[OWN] / max(1, regions[one.region].iteration_count)
            for one in misses_of(store, done.run, cache)
            if one.region in regions
        }
    )


def cut_misses(one: PlacedKernel, first: Mapping[str, float]) -> dict[str, CutMisses]:
    """By region whose trace was cut off, its L1I misses an iteration as linked. first: what the
    replay of each trace has of these.
    """
    whole = one.counted.misses
    found = {
        trace.region: CutMisses(one.part(at), first.get(trace.region), whole.get(trace.region))
        for at, trace in enumerate(one.traces)
        if trace.truncated
    }
    return {**found, **{name: CutMisses(0.0, None, whole.get(name)) for name in one.untraced}}


def cut_regions(one: PlacedKernel, first: Mapping[str, float]) -> tuple[CutRegion, ...]:
    """The same, where it is the only kernel."""
    return tuple(CutRegion(name, {ALONE: row}) for name, row in cut_misses(one, first).items())


def not_counted(one: PlacedKernel, who: str = "") -> tuple[str, ...]:
    """A note where misses of whole regions were to be counted, and were not."""
    if not one.counted.why_not:
        return ()
    why = f"{who}: {one.counted.why_not}" if who else one.counted.why_not
    return (NOT_COUNTED.format(why=why),)
