# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads what versions with schema 1 kept of a study: some fields had other names."""

from typing import Any

from msgspec import inspect

NOW = {
    "arm": "name",
    "arms": "variants",
    "fate": "outcome",
    "guessed": "without_measured_cost",
    "shipped": "as_linked",
    "units": "option_groups",
    "unlike": "mismatches",
}


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
