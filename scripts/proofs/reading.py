# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the JSON documents that kdelta prints."""

from typing import Any

import msgspec

from kdelta.report.older import with_one_form
from kdelta.spec.errors import UserError
from kdelta.studies.documents import type_of

EARLIER = {
    f"kdelta.{name}": f"kdelta.{now}"
    for name, now in (
        ("ablate/2", "ablate/3"),
        ("compare/3", "compare/4"),
        ("gate/2", "gate/3"),
        ("log/2", "log/3"),
    )
}
"""Documents that are still read, and which ones they are read as."""


class _Head(msgspec.Struct, frozen=True):
    schema: str


def as_now(content: bytes | str) -> Any:
    """Return what a document holds, as its present number has it."""
    document = msgspec.json.decode(content)
    if (now := EARLIER.get(document["schema"])) is None:
        return document
    return {**with_one_form(document), "schema": now}


def read_document(content: bytes | str) -> Any:
    """Return a document with its fields as attributes.

    Raises UserError for what is none, and for one with a number that is not read any more.
    """
    try:
        name = msgspec.json.decode(content, type=_Head).schema
        if name in EARLIER:
            return msgspec.convert(as_now(content), type_of(EARLIER[name]))
        return msgspec.json.decode(content, type=type_of(name))
    except msgspec.DecodeError as error:
        raise UserError(f"cannot read the document: {error}") from error
