# SPDX-License-Identifier: GPL-2.0-or-later
"""Documents as tests read them."""

from typing import Any

import msgspec
from reading import read_document


def decoded(text: str) -> Any:
    """Return a document; its type, which its schema is made from, must have all that is in it."""
    plain = msgspec.json.decode(text)
    again = msgspec.json.decode(msgspec.json.encode(read_document(text)))
    assert without_null(again) == without_null(plain)
    return plain


def without_null(value: Any) -> Any:
    """Return a document without its null entries: some of these are not written."""
    if isinstance(value, dict):
        return {key: without_null(one) for key, one in value.items() if one is not None}
    return [without_null(one) for one in value] if isinstance(value, list) else value
