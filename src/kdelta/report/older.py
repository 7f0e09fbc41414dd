# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads what earlier versions kept of a study: in schema 1 some fields had other names; up to 2,
model cycles had fields of their own next to what other measures found.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import inspect

from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.report.measured import MODEL_CYCLES, Effect, MeasuredEffects, of_placement

NOW = {
    "arm": "name",
    "arms": "variants",
    "fate": "outcome",
    "guessed": "without_measured_cost",
    "shipped": "as_linked",
    "units": "option_groups",
    "unlike": "mismatches",
}

_EFFECTS = inspect.type_info(tuple[PlacementEffect, ...])


def converted(value: Any, kind: inspect.Type) -> Any:
    """Return a value as it was kept with the present names of the fields of its type."""
    match kind:
        case inspect.StructType(array_like=False) if isinstance(value, dict):
            types: dict[Any, inspect.Type] = {one.encode_name: one.type for one in kind.fields}
            named = {key if key in types else NOW.get(key, key): one for key, one in value.items()}
            return {
                key: converted(one, types.get(key, inspect.AnyType())) for key, one in named.items()
            }
        case inspect.DictType() if isinstance(value, dict):
            return {key: converted(one, kind.value_type) for key, one in value.items()}
        case inspect.VarTupleType() if isinstance(value, list):
            return [converted(one, kind.item_type) for one in value]
        case inspect.TupleType() if isinstance(value, list):
            return [converted(one, of) for one, of in zip(value, kind.item_types, strict=True)]
        case inspect.UnionType():
            for one in kind.types:
                value = converted(value, one)
    return value


def with_one_form(value: Any, cpu: str = "") -> Any:
    """Return a value as it was kept, with model cycles among what measures found. cpu: the one that
    was named, of the report that this is in.
    """
    if isinstance(value, list):
        return [with_one_form(one, cpu) for one in value]
    if not isinstance(value, dict):
        return value
    named = value.get("cpu")
    cpu = named["name"] if isinstance(named, dict) else cpu
    found = {name: with_one_form(one, cpu) for name, one in value.items()}
    match found:
        case {"side": _, "cycles": dict(cycles)}:
            found["mismatches"] = _named(cycles).get("mismatches", [])
            found["measured"] = _measured(found, cpu, cycles["effects"], cycles)
        case {"option_groups": _, "cycles": dict(cycles)} if cycles:
            found["measured"] = _measured(found, cpu, cycles.values())
        case {"outcome": _, "cycles": dict(cycles)}:
            found["measured"] = _measured(found, cpu, cycles["effects"].values())
            found["flipped"] = cycles["flipped"]
        case {"operation": str(name), "points": list(points)}:
            found["points"] = [_with_step(one, name) for one in points]
    return found


def _measured(
    found: dict[str, Any], cpu: str, effects: Iterable[Any], cycles: Mapping[str, Any] = {}
) -> list[Any]:
    """Return what measures found, with these effects on model cycles. cycles: what else a
    comparison had of them.
    """
    relinked = cycles.get("relinked", ())
    details = [
        msgspec.convert({**one, "relinked": one["region"] in relinked}, PlacementEffect)
        for one in converted(list(effects), _EFFECTS)
    ]
    of = [of_placement(one, cpu) for one in details]
    cut = [(one["name"], one["verdict"]) for one in cycles.get("cut", ()) if one.get("verdict")]
    of += [Effect(name, verdict["word"], reason=verdict["reason"]) for name, verdict in cut]
    notes = tuple(cycles.get("notes", ()))
    measured = MeasuredEffects(MODEL_CYCLES, MODEL_CYCLES, tuple(of), f" on {cpu}", notes)
    return [msgspec.to_builtins(measured), *found.get("measured", ())]


def _named(kept: dict[str, Any]) -> dict[str, Any]:
    """Return fields by their present names."""
    return {NOW.get(name, name): one for name, one in kept.items()}


def _with_step(point: dict[str, Any], operation: str) -> dict[str, Any]:
    """Return a point of a history, with the step in model cycles among those of measures."""
    if not point.get("cycles"):
        return point
    cycles = _named(point["cycles"])
    step = {
        "region": operation,
        "word": cycles["word"],
        "change": cycles["relative"],
        "as_linked": cycles["as_linked"],
        "reason": cycles["reason"],
    }
    return {**point, "measured": {MODEL_CYCLES: step, **point.get("measured", {})}}
