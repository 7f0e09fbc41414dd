# SPDX-License-Identifier: GPL-2.0-or-later
"""What the functions of a profile miss on a CPU, and the model cycles that they cost there."""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.model import CONTEXTS
from kdelta.counts.profile import Profile
from kdelta.counts.symbols import NO_SYMBOL, SymbolTable, without_padding
from kdelta.counts.trace import Trace
from kdelta.cpus.model import CPU, L2_OF_DATA, Cache, MissKind
from kdelta.host.interrupt import interruptible
from kdelta.infer.cycles.cycles import model_cycles
from kdelta.infer.profiles.profile import FunctionLine, Modelled, RegionProfile
from kdelta.replay.as_executed import (
    LabelOf,
    data_misses_by_function,
    known_kinds,
    misses_by_function,
)
from kdelta.replay.simulate import Kind
from kdelta.studies.lab.requests import Progress
from kdelta.studies.tracing.placement import REPLAYED, caches_of

_TEXT = frozenset("tTwW")


def with_model_cycles(
    regions: Sequence[RegionProfile],
    profiles: Sequence[Profile],
    traces: Sequence[Trace],
    *,
    symbols: Sequence[tuple[int, str, str, str]],
    cpu: CPU,
    progress: Progress,
    data: bool = False,
) -> tuple[tuple[RegionProfile, ...], tuple[str, ...]]:
    """The regions with what each function missed and cost, as far as a trace shows; and what is to
    be known about it. data: with what its accesses to data missed.
    """
    by_region = {trace.region: trace for trace in traces}
    of = {profile.region: profile for profile in profiles}
    caches: dict[str, tuple[Kind, Cache]] = {
        str(kind): (REPLAYED[kind], cache) for kind, cache in caches_of(cpu).items()
    }
    kernel = SymbolTable(
        (at, kind, without_padding(name), origin)
        for at, kind, name, origin in symbols
        if kind in _TEXT
    )
    step = f"replay on {cpu.name}"
    progress.begin(step)
    made, cut = [], []
    for region in regions:
        trace = by_region.get(region.name)
        if trace is None:
            cut.append(region.name)
            made.append(region)
            continue
        progress.doing(step, region.name)
        if trace.truncated:
            cut.append(region.name)
        with interruptible():
            labels = _labels(kernel, of.get(region.name))
            misses = misses_by_function(trace, labels, caches)
            for label, counts in (
                data_misses_by_function(trace, labels, cpu).items() if data else ()
            ):
                misses.setdefault(label, {}).update(counts)
        kinds = _kinds(cpu, trace, data=data)
        lines = tuple(_modelled(line, misses, cpu, kinds) for line in region.lines)
        made.append(msgspec.structs.replace(region, lines=lines))
    progress.end(step, f"{len(made)} regions")
    return tuple(made), _notes(cpu, cut, data=data)


def _kinds(cpu: CPU, trace: Trace, *, data: bool) -> tuple[MissKind, ...]:
    """What is counted of a trace."""
    return (*caches_of(cpu), *(known_kinds(cpu, trace) if data else ()))


def _modelled(
    line: FunctionLine,
    misses: dict[tuple[int, str, str], dict[str, int]],
    cpu: CPU,
    kinds: Sequence[MissKind],
) -> FunctionLine:
    found = misses.get((CONTEXTS.index(line.context), line.origin, line.name), {})
    counts = {kind: float(found.get(str(kind), 0)) for kind in kinds}
    priced = {kind: count for kind, count in counts.items() if kind in cpu.misses}
    # Without a price of its own, what data misses in the unified L2 costs what code misses there.
    of_l2 = [kind for kind in L2_OF_DATA if kind in counts and kind not in cpu.misses]
    if of_l2:
        priced["l2"] = sum(counts[kind] for kind in of_l2)
    cycles = model_cycles(line.cost, priced, cpu)
    shown = {str(kind): count for kind, count in counts.items()}
    return msgspec.structs.replace(line, modelled=Modelled(shown, cycles.low, cycles.high))


def _labels(kernel: SymbolTable, profile: Profile | None) -> LabelOf:
    """What functions are called that blocks are in: as the profile has them, else by symbols."""
    known: dict[int, tuple[str, str]] = {}
    if profile is not None:
        code = profile.code
        rows = zip(code.block_address.tolist(), code.block_function.tolist(), strict=True)
        known = {
            address: (profile.functions[index].origin, profile.functions[index].name)
            for address, index in rows
        }

    def labels(addresses: npt.NDArray[np.uint64]) -> list[tuple[str, str]]:
        indexes = kernel.indexes(addresses).tolist()
        return [
            known.get(address) or (kernel.labels[index] if index >= 0 else ("[unknown]", NO_SYMBOL))
            for address, index in zip(addresses.tolist(), indexes, strict=True)
        ]

    return labels


def _notes(cpu: CPU, cut: Sequence[str], *, data: bool) -> tuple[str, ...]:
    said = (
        f"Misses are those of {', '.join(caches_of(cpu))} on {cpu.name}, with the code where it "
        "lay; model cycles go from misses that other work hides to misses in full, and are no "
        "clock's reading: docs/cpus.md has what is not in them. "
    )
    notes = [said + (_data_note(cpu) if data else "Misses of the L2 are not in them.")]
    if cut:
        notes.append(f"Not all was traced, so misses are missing, in: {', '.join(cut)}.")
    return tuple(notes)


def _data_note(cpu: CPU) -> str:
    free = [k for k in known_kinds(cpu) if k not in cpu.misses and k not in L2_OF_DATA]
    said = (
        "Accesses to data miss in l1d, l2-data and TLBs, stores apart from loads; layouts of code "
        "do not change that, but for the L2's. TLBs go by the size that pages at such addresses "
        "usually have."
    )
    return said + (f" Without a price, and free: {', '.join(free)}." if free else "")
