# SPDX-License-Identifier: GPL-2.0-or-later
"""How far a path that a guest's kernel did not take, for want of a feature, could move figures.

The CPU's file bounds what each of some instructions would gain on the CPU. Of two kernels that
execute alike all that the path changes, both gain the same. Else each may gain anything within its
bounds.
"""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kdelta.counts.model import Cost, RegionCounts, RunCounts, merged_regions, plain_kind
from kdelta.cpus.model import KernelPath
from kdelta.cpus.representative import Difference
from kdelta.infer.effects.effects import Effects, OperationEffect, Verdict, Word

Sides = tuple[Mapping[str, RegionCounts], Mapping[str, RegionCounts]]


class Reach(msgspec.Struct, frozen=True):
    """Instructions an iteration that may be more, from `low` to `high`; less where negative."""

    low: float = 0.0
    high: float = 0.0

    def __add__(self, other: "Reach") -> "Reach":
        """Return the reach of both."""
        return Reach(self.low + other.low, self.high + other.high)

    @property
    def most(self) -> float:
        """How far it reaches from zero."""
        return max(-self.low, self.high)


class PathGain(msgspec.Struct, frozen=True):
    """What the paths of a CPU could add to an operation, on which kernel, and to the difference."""

    region: str
    paths: tuple[str, ...]
    base: Reach
    other: Reach
    effect: Reach


def path_gains(
    effects: Effects,
    found: tuple[Sequence[Difference], Sequence[Difference]],
    counts: tuple[RunCounts, RunCounts],
) -> tuple[PathGain, ...]:
    """Return the operations that the CPU's paths could change, in their order.

    found: where the base and the other did otherwise than the CPU. counts: a run of each.
    """
    regions = merged_regions(counts[0]), merged_regions(counts[1])
    paths = {one.path.name: one.path for side in found for one in side if one.path.gains}
    names = tuple({one.path.name for one in side} for side in found)
    gains = (_of_operation(one, paths.values(), names, regions) for one in effects.operations)
    return tuple(one for one in gains if one is not None)


def with_gains(effects: Effects, gains: Iterable[PathGain], cpu: str) -> Effects:
    """Return the effects without firm verdicts that the CPU's paths could turn round."""
    known = {one.region: one for one in gains}
    operations = tuple(
        _judged(one, known[one.name], cpu) if one.name in known else one
        for one in effects.operations
    )
    return msgspec.structs.replace(effects, operations=operations)


def turns(word: Word, low: float, high: float, reach: Reach) -> bool:
    """Return whether an effect from `low` to `high` that has this word could have another sign."""
    if word is Word.SLOWER:
        return low + reach.low <= 0
    return word is Word.FASTER and high + reach.high >= 0


def gain_reason(gain: PathGain, cpu: str) -> str:
    """Return why a verdict is not firm that such paths could turn round."""
    paths = ", ".join(gain.paths)
    return (
        f"on a real {cpu} the difference could be {gain.effect.low:+,.0f} to "
        f"{gain.effect.high:+,.0f} instructions larger ({paths}), and so have the other sign"
    )


def _judged(operation: OperationEffect, gain: PathGain, cpu: str) -> OperationEffect:
    if operation.costs is None:
        return operation
    effect = operation.costs.insns.effect
    if not turns(operation.verdict.word, float(effect.low), float(effect.high), gain.effect):
        return operation
    verdict = Verdict(Word.UNRESOLVED, reason=gain_reason(gain, cpu))
    return msgspec.structs.replace(operation, verdict=verdict)


def _of_operation(
    operation: OperationEffect,
    paths: Iterable[KernelPath],
    names: tuple[set[str], ...],
    regions: Sides,
) -> PathGain | None:
    """What these paths could add to an operation; None where they add nothing to any kernel.

    names: the paths that the base and the other did not take.
    """
    if operation.costs is None or not all(operation.name in side for side in regions):
        return None
    whole, taken = PathGain(operation.name, (), Reach(), Reach(), Reach()), []
    for path in paths:
        base, other = (
            _gained(path, side[operation.name]) if path.name in lacking else Reach()
            for side, lacking in zip(regions, names, strict=True)
        )
        if base.most or other.most:
            taken.append(path.name)
            same = base == other and _is_alike(operation, path)
            effect = Reach() if same else Reach(other.low - base.high, other.high - base.low)
            whole = msgspec.structs.replace(
                whole,
                base=whole.base + base,
                other=whole.other + other,
                effect=whole.effect + effect,
            )
    return msgspec.structs.replace(whole, paths=tuple(taken)) if taken else None


def _gained(path: KernelPath, region: RegionCounts) -> Reach:
    """What a path could add to an iteration of the tasks' own work."""
    low = high = 0.0
    for gain in path.gains:
        times = sum(
            _specials(row.cost, gain.special) if gain.special else row.cost.insns
            for row in region.functions
            if row.context == "own" and (not gain.functions or _matches(row.name, gain.functions))
        )
        low += gain.insns[0] * times / region.iteration_count
        high += gain.insns[1] * times / region.iteration_count
    return Reach(low, high)


def _specials(cost: Cost, plain: str) -> int:
    return sum(count for kind, count in cost.specials.items() if plain_kind(kind) == plain)


def _is_alike(operation: OperationEffect, path: KernelPath) -> bool:
    """Whether both kernels execute all that the path changes alike."""
    patterns = (*path.functions, *(name for gain in path.gains for name in gain.functions))
    return not any(one.cost.moved for one in operation.functions if _matches(one.name, patterns))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
