# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON and JSON Schema of a report: the structs that it is made of, as they are.

A struct is an object of its fields, a fraction a number, and a figure without end null.
"""

import inspect
import math
import types
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

LEFT_OUT = frozenset(
    {
        "Draws.draws",
        "Estimate.variance",
        "ProfileViews.places",
        "Run.attachments",
        "Run.console_blob",
        "Run.counts_blob",
        "Run.key",
        "RunCounts.perturbation",
        "Study.report_blob",
    }
)
"""Fields that are not written, as TYPE.FIELD: names of blobs, which are of no use outside of the
store, figures that are many and that others sum up, and what a report has of a run anyway.
"""


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, msgspec.Struct):
        held = ((key, getattr(value, name)) for name, key in _written(type(value)).items())
        return {name: plain(one) for name, one in held if one is not msgspec.UNSET}
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def document_type(name: str, kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return the type of a document: its name, kdelta's version, the id of a study that is kept,
    and a report's fields.
    """
    head: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        ("schema", Literal[name]),
        ("kdelta", str),
        ("study", str | msgspec.UnsetType, msgspec.UNSET),
    ]
    return msgspec.defstruct(
        "Document", [*head, *_fields(kind)], namespace=_doc(kind), kw_only=True
    )


@cache
def _written(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Return the fields, and what a document calls each of them."""
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    return {name: key for name, key in names if f"{kind.__name__}.{name}" not in LEFT_OUT}


def _type_of(kind: Any) -> Any:
    """Return the type of what `plain` makes of values of a type."""
    origin, args = get_origin(kind), get_args(kind)
    parts = tuple(map(_type_of, args))
    if origin in {Union, types.UnionType}:
        return Union[parts]  # noqa: UP007
    if origin in {Mapping, dict}:
        return types.GenericAlias(dict, parts)
    if origin in {tuple, Sequence}:
        is_fixed = origin is tuple and ... not in args
        return types.GenericAlias(*((tuple, parts) if is_fixed else (list, parts[:1])))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _object(kind)
    return {Fraction: int | float, float: float | None}.get(kind, kind)


@cache
def _object(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    # With the module, a schema distinguishes types that have one name.
    return msgspec.defstruct(
        kind.__name__, _fields(kind), namespace=_doc(kind), module=kind.__module__, kw_only=True
    )


def _fields(kind: type[msgspec.Struct]) -> list[tuple[str, Any] | tuple[str, Any, Any]]:
    """Return the fields; one that has a default may be missing in an older document."""
    hints = get_type_hints(kind)
    return [
        (one.encode_name, _type_of(hints[one.name]))
        if one.required
        else (one.encode_name, _type_of(hints[one.name]) | msgspec.UnsetType, msgspec.UNSET)
        for one in msgspec.structs.fields(kind)
        if one.name in _written(kind)
    ]


def _doc(kind: type) -> dict[str, str]:
    """Return the description of a type, then those of the types that it extends."""
    extended = (one for one in kind.__mro__ if issubclass(one, msgspec.Struct))
    texts = (inspect.getdoc(one) for one in extended if one is not msgspec.Struct)
    return {"__doc__": "\n\n".join(filter(None, texts))}
