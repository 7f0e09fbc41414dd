# SPDX-License-Identifier: GPL-2.0-or-later
"""A study's report as it is kept, so that it can be shown in any form at any time later.

MessagePack and not JSON: an interval may have no end, and JSON has no word for infinity.
"""

import types
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeVar

import msgspec

from kdelta.report.older import converted, with_one_form
from kdelta.spec.errors import LabError
from kdelta.store.model import moment_text

SCHEMA = 3
"""Goes up when a model changes so that what was kept before has to be converted (older.py). A field
with a default may be added without: tests/report/kept has what must stay readable.
"""

_RENAMED = 2
"""Since which some fields have other names."""

_Report = TypeVar("_Report", bound=msgspec.Struct)


class Stored(msgspec.Struct, frozen=True):
    """A study as it is kept.

    kind      that of the study: the command's name
    question  what was asked, as a sentence
    command   the command line, ready to be pasted; runs and kernels in it are named as they were
    started   when, in seconds since 1970
    version   that of the kdelta that made it
    reports   its reports, of the type that its kind has: one, or of a comparison one for each CPU
    shown     how much of it was printed: --explain, --functions and the like, by name
    defaults  the options that the user's file of defaults set, and the file
    id        by which the store knows it; empty before it is kept
    """

    kind: str
    question: str
    command: str
    started: float
    version: str
    reports: tuple[msgspec.Struct, ...]
    shown: dict[str, int] = {}
    defaults: str = ""
    id: str = ""

    @property
    def study(self) -> str:
        """Return its id, where it is a study that is kept, and not a run in its place."""
        return "" if self.kind == "run" else self.id

    @property
    def started_text(self) -> str:
        """When it started, in UTC, to the second."""
        return moment_text(self.started)

    def of(self, kind: type[_Report]) -> tuple[_Report, ...]:
        """The reports, which are of that type; LabError if they are not."""
        found = tuple(one for one in self.reports if isinstance(one, kind))
        if not found or len(found) < len(self.reports):
            raise LabError(f"a {self.kind} has no report of the type {kind.__name__}")
        return found

    def one(self, kind: type[_Report]) -> _Report:
        """Its only report, of that type; LabError if it is of another."""
        return self.of(kind)[0]


class _StoredHead(msgspec.Struct, frozen=True):
    schema: int
    version: str = "?"


class _KeptStudy(msgspec.Struct, frozen=True):
    """`Stored` with its schema, and reports that are not yet of any type."""

    schema: int
    kind: str
    question: str
    command: str
    started: float
    version: str
    reports: msgspec.Raw
    shown: dict[str, int] = {}
    defaults: str = ""


def encode(stored: Stored) -> bytes:
    """Return the bytes that are kept of a study."""
    fields = {name: getattr(stored, name) for name in stored.__struct_fields__ if name != "id"}
    reports = msgspec.Raw(_ENCODER.encode(stored.reports))
    return _ENCODER.encode(_KeptStudy(**{**fields, "schema": SCHEMA, "reports": reports}))


def decode(
    content: bytes,
    kinds: Mapping[str, type[msgspec.Struct]],
    renamed: Mapping[str, str] | None = None,
) -> Stored:
    """Read those bytes: `kinds` has the types of reports, `renamed` the present names of kinds.

    Raises LabError for a newer schema, and for damage.
    """
    try:
        head = msgspec.msgpack.decode(content, type=_StoredHead)
    except msgspec.DecodeError as error:
        raise _damaged(str(error)) from error
    if head.schema > SCHEMA:
        raise LabError(
            f"a stored study was written by kdelta {head.version} (its schema is {head.schema}, "
            f"and this one knows {SCHEMA})",
            "use that kdelta, or a newer one",
        )
    return _decoded(content, kinds, renamed or {})


def _decoded(
    content: bytes, kinds: Mapping[str, type[msgspec.Struct]], renamed: Mapping[str, str]
) -> Stored:
    try:
        kept = msgspec.msgpack.decode(content, type=_KeptStudy)
        kind = renamed.get(kept.kind, kept.kind)
        if kind not in kinds:
            raise _damaged(f"no study is of the kind {kept.kind!r}")
        wanted = types.GenericAlias(tuple, (kinds[kind], ...))
        if kept.schema < SCHEMA:
            older = msgspec.msgpack.decode(kept.reports)
            if kept.schema < _RENAMED:
                older = converted(older, msgspec.inspect.type_info(wanted))
            reports = msgspec.convert(with_one_form(older), wanted, dec_hook=_from_kept)
        else:
            reports = msgspec.msgpack.decode(kept.reports, type=wanted, dec_hook=_from_kept)
    except (msgspec.DecodeError, ValueError, ZeroDivisionError) as error:
        raise _damaged(str(error)) from error
    if not reports:
        raise _damaged("it has no report")
    fields = {name: getattr(kept, name) for name in kept.__struct_fields__ if name != "schema"}
    return Stored(**{**fields, "kind": kind, "reports": reports})


def _to_kept(thing: Any) -> str:
    """A fraction in words; TypeError for what no model has."""
    if isinstance(thing, Fraction):
        return str(thing)
    raise TypeError(f"cannot keep a {type(thing).__name__}")


def _from_kept(kind: type, thing: Any) -> Any:
    if kind is Fraction and isinstance(thing, str):
        return Fraction(thing)
    raise ValueError(f"{thing!r} is no {kind.__name__}")


# The order of keys is kept: it is that of what is printed.
_ENCODER = msgspec.msgpack.Encoder(enc_hook=_to_kept)


def _damaged(why: str) -> LabError:
    return LabError(
        f"a stored study cannot be read: {why}",
        "ask again what it asked: its runs are in the store",
    )
