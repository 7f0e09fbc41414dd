# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON and JSON Schema of a report, both from the types that the report is made of.

An object has the fields of its struct. A fraction becomes a number, an enum its value, an infinite
figure null, and a sequence or an array a list. A `Shape` says how an object differs from that.
"""

import enum
import inspect
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, cached_property
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

Number = int | float
Source = str | Callable[..., Any]


class Shape(msgspec.Struct, frozen=True):
    """How the JSON object of a struct differs from the struct.

    adds       entries besides the fields, or in place of one: by key, the name of a property, or of
               a field that is written under this key, or a function of the struct. Further
               parameters of a function are the nearest structs above of the parameters' types
    omits      fields that are not written
    flat       fields whose own entries are written in place of them
    unbounded  figures that are null where they are infinite
    later      entries that older documents of the same number lack
    sparse     entries that are left out where they are empty or null
    """

    adds: Mapping[str, Source] = {}
    omits: tuple[str, ...] = ()
    flat: tuple[str, ...] = ()
    unbounded: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ()


class JsonEntry(NamedTuple):
    """One entry of an object: how it is read (of a struct, and of all structs above it), its type,
    its description, and whether it may be missing.
    """

    read: Callable[[Any, Sequence[Any]], Any]
    kind: Any
    about: str = ""
    may_lack: bool = False
    is_sparse: bool = False


class Writer:
    """Writes structs as JSON, by the shapes of their types or of the types these derive from."""

    def __init__(self, shapes: Mapping[type, Shape]) -> None:
        self._shapes = shapes
        self._entries = cache(self._read_entries)
        self._object = cache(self._make_object)

    def plain(self, value: Any, above: Sequence[Any] = ()) -> Any:
        """Return a value as JSON has it; `above` are the structs that it is a part of."""
        if isinstance(value, msgspec.Struct):
            found = {
                key: (entry, self.plain(entry.read(value, above), (*above, value)))
                for key, entry in self._entries(type(value)).items()
            }
            return {key: one for key, (entry, one) in found.items() if one or not entry.is_sparse}
        if isinstance(value, Mapping):
            return {self.plain(key): self.plain(one, above) for key, one in value.items()}
        if isinstance(value, np.ndarray):
            return value.tolist()
        if isinstance(value, Iterable) and not isinstance(value, str):
            return [self.plain(one, above) for one in value]
        return _scalar(value)

    def document(self, name: str, kind: type) -> type[msgspec.Struct]:
        """Return the type of a document: its name, kdelta's version, and a report's entries."""
        head = [("schema", Literal[name]), ("kdelta", str)]
        return msgspec.defstruct(
            "Document", [*head, *self._fields(kind)], namespace=_doc(kind), kw_only=True
        )

    def type_of(self, kind: Any) -> Any:
        """Return the type of what `plain` makes of values of a type."""
        origin, args = get_origin(kind), get_args(kind)
        parts = tuple(self.type_of(one) for one in args)
        if origin in {Union, types.UnionType}:
            return Union[parts]  # noqa: UP007
        if origin in {Mapping, dict}:
            return types.GenericAlias(dict, parts)
        if origin in {tuple, list, Sequence}:
            is_fixed = origin is tuple and ... not in args
            return types.GenericAlias(*((tuple, parts) if is_fixed else (list, parts[:1])))
        if origin is np.ndarray:
            return list[float]
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self._object(kind)
        return Number if kind is Fraction else kind

    def _make_object(self, kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
        # With the module, a schema distinguishes types that have one name.
        return msgspec.defstruct(
            kind.__name__,
            self._fields(kind),
            namespace=_doc(kind),
            module=kind.__module__,
            kw_only=True,
        )

    def _fields(self, kind: type) -> list[tuple[str, Any] | tuple[str, Any, Any]]:
        found: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        for key, entry in self._entries(kind).items():
            plain = self.type_of(entry.kind)
            if entry.about:
                plain = Annotated[plain, msgspec.Meta(description=entry.about)]
            found.append((key, plain | None, None) if entry.may_lack else (key, plain))
        return found

    def _read_entries(self, kind: type[msgspec.Struct]) -> dict[str, JsonEntry]:
        shape = next((self._shapes[one] for one in kind.__mro__ if one in self._shapes), Shape())
        hints = get_type_hints(kind)
        keys = {source: key for key, source in shape.adds.items()}
        found: dict[str, JsonEntry] = {}
        for name in kind.__struct_fields__:
            if name in shape.flat:
                found |= {
                    key: entry._replace(read=_within(name, entry))
                    for key, entry in self._entries(hints[name]).items()
                }
            elif name not in shape.omits:
                found[keys.get(name, name)] = JsonEntry(_attribute(name), hints[name])
        found |= {key: _entry(kind, one) for key, one in shape.adds.items() if one not in hints}
        for key in shape.unbounded:
            found[key] = found[key]._replace(kind=float | None)
        for key in (*shape.later, *shape.sparse):
            found[key] = found[key]._replace(may_lack=True, is_sparse=key in shape.sparse)
        # Lists come last, so that a reader sees first what holds for all of their rows.
        return dict(sorted(found.items(), key=lambda item: _is_rows(item[1].kind)))


def _scalar(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_rows(kind: Any) -> bool:
    return get_origin(kind) in {tuple, list, Sequence, dict, Mapping}


def _attribute(name: str) -> Callable[[Any, Sequence[Any]], Any]:
    return lambda value, _above: getattr(value, name)


def _within(name: str, entry: JsonEntry) -> Callable[[Any, Sequence[Any]], Any]:
    return lambda value, above: entry.read(getattr(value, name), (*above, value))


def _entry(kind: type, source: Source) -> JsonEntry:
    """Return the entry of a property or a function."""
    if isinstance(source, str):
        found: property | cached_property[Any] = inspect.getattr_static(kind, source)
        getter = found.fget if isinstance(found, property) else found.func
        hint = get_type_hints(getter)["return"]
        return JsonEntry(_attribute(source), hint, inspect.getdoc(found) or "")
    hints = get_type_hints(source)
    wanted = [hints[name] for name in list(inspect.signature(source).parameters)[1:]]

    def read(value: Any, above: Sequence[Any]) -> Any:
        nearest = (next(one for one in reversed(above) if isinstance(one, of)) for of in wanted)
        return source(value, *nearest)

    return JsonEntry(read, hints["return"], inspect.getdoc(source) or "")


def _doc(kind: type) -> dict[str, str]:
    return {"__doc__": inspect.getdoc(kind) or ""}
