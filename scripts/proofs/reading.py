# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the JSON documents that kdelta prints."""

from typing import Any

import msgspec

from kdelta.spec.errors import UserError
from kdelta.studies.documents import type_of


class _Head(msgspec.Struct, frozen=True):
    schema: str


def read_document(content: bytes | str) -> Any:
    """Return a document with its fields as attributes.

    Raises UserError for what is none, and for one with a number that is not read any more.
    """
    try:
        name = msgspec.json.decode(content, type=_Head).schema
        return msgspec.json.decode(content, type=type_of(name))
    except msgspec.DecodeError as error:
        raise UserError(f"cannot read the document: {error}") from error
