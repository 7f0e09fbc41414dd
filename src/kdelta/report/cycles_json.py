# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles as JSON. An end of an interval that is infinite is null there."""

from collections.abc import Sequence

import msgspec

from kdelta.infer.ensembles import Interval
from kdelta.infer.placement_model import Bounds, Compared, CycleVerdict, Draws, PlacementEffect
from kdelta.report.cpus_json import JsonCalibration, json_calibration
from kdelta.report.cut import JsonCut, json_cut
from kdelta.report.model import CycleReport, ReportedCPU, Unlike


class JsonCPU(msgspec.Struct, frozen=True):
    """A CPU; `guessed` are the kinds of misses whose prices were never calibrated; the others were
    by `calibration`, if that is known.
    """

    name: str
    title: str
    guessed: list[str]
    calibration: JsonCalibration | None = None


class JsonInterval(msgspec.Struct, frozen=True):
    """From the lowest to the highest."""

    low: float | None
    high: float | None


class JsonBounds(msgspec.Struct, frozen=True):
    """A figure with its confidence interval."""

    value: float
    low: float | None
    high: float | None


class JsonDraws(msgspec.Struct, frozen=True):
    """An ensemble of layouts, and the shipped one: `percentile` of the layouts cost less."""

    mean: float
    least: float
    median: float
    most: float
    shipped: float
    percentile: float | None


class JsonEnsembles(msgspec.Struct, frozen=True):
    """A figure over both kernels' ensembles, an iteration; the effect is other less base."""

    base: JsonDraws
    other: JsonDraws
    effect: JsonBounds


class JsonCycleVerdict(msgspec.Struct, frozen=True):
    """A verdict on model cycles. `within` is a fraction, for "same"; `layouts` are how many would
    probably settle what is unresolved, or not slower in what is counted.
    """

    word: str
    within: float | None
    layouts: int | None
    reason: str


class JsonShipped(msgspec.Struct, frozen=True):
    """How the shipped layouts differ: in model cycles, as a fraction of the base's, and the part of
    the cycles that is only where the two lie in their ensembles.
    """

    cycles: JsonInterval
    relative: JsonInterval
    placement: JsonInterval


class JsonCycleEffect(msgspec.Struct, frozen=True, omit_defaults=True):
    """The effect on a region's model cycles, an iteration, over all prices: `cycles`, and as a
    fraction of the base's mean `relative`; the word rests on this interval. `hidden` and `exposed`
    are at either end of the prices of misses. `guessed`: the kinds of misses with prices that were
    never calibrated. `unlike`: indexes of what its path hangs on that was not as on the CPU. `lru`:
    of a CPU whose caches replace otherwise, the verdict if they evicted what was least recently
    used. `data`: with accesses to data recorded, what these miss, which is the same in all layouts;
    `data_cycles`: what of the effect is due to that. `unpriced`: special instructions without a
    price whose number changes; they are not in the cycles.
    """

    region: str
    verdict: JsonCycleVerdict
    layouts: tuple[int, int]
    paired: bool
    margin: float
    confidence: float
    guessed: list[str]
    unlike: list[int]
    cycles: JsonInterval
    relative: JsonInterval
    hidden: JsonEnsembles
    exposed: JsonEnsembles
    misses: dict[str, JsonEnsembles]
    shipped: JsonShipped
    lru: JsonCycleVerdict | None = None
    data: dict[str, JsonEnsembles] = {}
    data_cycles: JsonInterval | None = None
    unpriced: dict[str, JsonEnsembles] = {}


class JsonUnlike(msgspec.Struct, frozen=True):
    """What kernels did otherwise than on the CPU, and the regions whose own work hangs on it."""

    name: str
    text: str
    kernels: list[str]
    regions: list[str]


class JsonCycles(msgspec.Struct, frozen=True):
    """All that is known of model cycles. `relinked`: regions that execute the same code, only
    linked anew. `notes`: what is to be known about regions. `cut`: those whose trace was cut off;
    such as have no trace at all are not among the effects.
    """

    effects: list[JsonCycleEffect]
    relinked: list[str]
    unlike: list[JsonUnlike]
    notes: list[str]
    cut: list[JsonCut]


def json_cpu(cpu: ReportedCPU) -> JsonCPU:
    """A CPU."""
    calibration = json_calibration(cpu.calibration)
    return JsonCPU(cpu.name, cpu.title, list(cpu.guessed), calibration)


def json_cycles(found: CycleReport) -> JsonCycles:
    """The effects on model cycles."""
    return JsonCycles(
        effects=[json_cycle_effect(effect, found.unlike) for effect in found.effects],
        relinked=list(found.relinked),
        unlike=json_unlike(found.unlike),
        notes=list(found.notes),
        cut=json_cut(found.cut),
    )


def json_unlike(unlike: Sequence[Unlike]) -> list[JsonUnlike]:
    """What was not as on the CPU."""
    return [JsonUnlike(one.name, one.text, list(one.kernels), list(one.regions)) for one in unlike]


def json_cycle_effect(effect: PlacementEffect, unlike: Sequence[Unlike] = ()) -> JsonCycleEffect:
    """An effect; unlike: what it may hang on."""
    verdict, shipped = effect.verdict, effect.shipped
    return JsonCycleEffect(
        region=effect.region,
        verdict=_verdict(verdict),
        lru=None if effect.lru is None else _verdict(effect.lru),
        layouts=effect.layouts,
        paired=effect.paired,
        margin=effect.margin,
        confidence=effect.confidence,
        guessed=list(effect.guessed),
        unlike=[index for index, one in enumerate(unlike) if effect.region in one.regions],
        cycles=_interval(effect.cycles),
        relative=_interval(effect.relative),
        hidden=_ensembles(effect.hidden),
        exposed=_ensembles(effect.exposed),
        misses={kind: _ensembles(compared) for kind, compared in effect.misses.items()},
        data={kind: _ensembles(compared) for kind, compared in effect.data.items()},
        unpriced={name: _ensembles(compared) for name, compared in effect.unpriced.items()},
        data_cycles=None if effect.data_cycles is None else _interval(effect.data_cycles),
        shipped=JsonShipped(
            _interval(shipped.cycles), _interval(shipped.relative), _interval(shipped.placement)
        ),
    )


def _verdict(verdict: CycleVerdict) -> JsonCycleVerdict:
    return JsonCycleVerdict(verdict.word.value, verdict.within, verdict.layouts, verdict.reason)


def _ensembles(compared: Compared) -> JsonEnsembles:
    return JsonEnsembles(_draws(compared.base), _draws(compared.other), _bounds(compared.effect))


def _draws(draws: Draws) -> JsonDraws:
    return msgspec.convert(draws, JsonDraws, from_attributes=True)


def _bounds(bounds: Bounds) -> JsonBounds:
    return msgspec.convert(bounds, JsonBounds, from_attributes=True)


def _interval(interval: Interval) -> JsonInterval:
    return msgspec.convert(interval, JsonInterval, from_attributes=True)
