# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of a CPU's file that has only what differs from another CPU (`like`)."""

from collections.abc import Callable, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import msgspec

SUFFIX = ".toml"

_OF_ONE_CPU = ("name", "title", "core", "transfer")
"""What no CPU takes from another."""

Table = dict[str, Any]


class LikeError(ValueError):
    """What is wrong with a file that is like another, beginning with the field."""


class _SpecialKinds(msgspec.Struct):
    kinds: tuple[str, ...]


class _Path(msgspec.Struct):
    name: str


class _Shape(msgspec.Struct):
    """What must have its type before tables can be merged."""

    like: str
    lacks: tuple[str, ...] = ()
    special: tuple[_SpecialKinds, ...] = ()
    path: tuple[_Path, ...] = ()


def shipped() -> Mapping[str, Traversable]:
    """The CPU files that come with kdelta, by name, in the order of their names."""
    files = sorted(resources.files("kdelta.cpus").iterdir(), key=lambda file: file.name)
    return {file.name.removesuffix(SUFFIX): file for file in files if file.name.endswith(SUFFIX)}


def whole(own: Table) -> Table:
    """Returns the tables of a file, completed by those of the CPU that it is like.

    Raises LikeError, which names the field, or msgspec.ValidationError.
    """
    if "like" not in own:
        return own
    shape = msgspec.convert(own, _Shape)
    like = shape.like
    files = shipped()
    if like not in files:
        raise LikeError(f"`like` is {like!r}, which is none of {', '.join(files)}")
    if "frontend" in own and "frontend_source" not in own:
        raise LikeError("`frontend` is given, and `frontend_source` is not")
    found = whole(msgspec.toml.decode(files[like].read_bytes()))
    for key in _OF_ONE_CPU:
        found.pop(key, None)
    for key in shape.lacks:
        if key in own or not isinstance(found.pop(key, None), dict):
            reason = "the file has it" if key in own else f"{like} has no such table"
            raise LikeError(f"`lacks` has {key!r}: {reason}")
    for key, value in own.items():
        if key not in ("like", "lacks"):
            found[key] = _MERGED.get(key, _table)(key, found.get(key), value)
    return found


def _table(field: str, other: Any, own: Any) -> Any:
    """The other's table, in which the file's own fields replace the other's; own values that are no
    tables replace the other's values.
    """
    if not isinstance(other, dict) or not isinstance(own, dict):
        return own
    if "source" in other and "source" not in own:
        for key, value in own.items():
            if value != other.get(key):
                raise LikeError(f"`{field}` has another `{key}`, and no `source` of its own")
    return {**other, **own}


def _tables(field: str, other: Any, own: Any) -> Any:
    if not isinstance(other, dict) or not isinstance(own, dict):
        return own
    merged = {key: _table(f"{field}.{key}", other.get(key), value) for key, value in own.items()}
    return {**other, **merged}


def _specials(_field: str, other: list[Table] | None, own: list[Table]) -> list[Table]:
    """Prices of special instructions: the file's own replace the other's of these kinds, in the
    same place if all kinds are the same.
    """
    kinds = {kind for one in own for kind in one["kinds"]}
    found, later = [], list(own)
    for one in other or ():
        same = [new for new in later if new["kinds"] == one["kinds"]]
        left = [kind for kind in one["kinds"] if kind not in kinds]
        found += same or ([{**one, "kinds": left}] if left else [])
        later = [new for new in later if new not in same]
    return found + later


def _paths(field: str, other: list[Table] | None, own: list[Table]) -> list[Table]:
    """The file's own paths and no others; the fields that one leaves out are those of the other's
    path of that name.
    """
    named = {one["name"]: one for one in other or ()}
    for one in own:
        if one.keys() == {"name"} and one["name"] not in named:
            raise LikeError(f"`path` {one['name']!r} has only a name, which the other CPU lacks")
    return [_table(f"{field}.{one['name']}", named.get(one["name"]), one) for one in own]


_MERGED: Mapping[str, Callable[[str, Any, Any], Any]] = {
    "special": _specials,
    "path": _paths,
    "misses": _tables,
}
