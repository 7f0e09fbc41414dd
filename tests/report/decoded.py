# SPDX-License-Identifier: GPL-2.0-or-later
"""Documents as tests read them: by the types that their schemas are made from."""

from typing import Any

import msgspec
from reading import read_document


def decoded(text: str) -> Any:
    """Return a document; its type, which its schema is made from, must have all that is in it."""
    plain = msgspec.json.decode(text)
    assert msgspec.json.decode(msgspec.json.encode(read_document(text))) == plain
    return plain
