# SPDX-License-Identifier: GPL-2.0-or-later
"""The identity of a thing: the hash of its canonical JSON."""

import hashlib
from typing import Any

import msgspec


def canonical_json(thing: Any) -> bytes:
    """The one JSON text of `thing`: keys and fields sorted, no spaces.

    Takes what msgspec can encode; raises TypeError for anything else.
    """
    return msgspec.json.encode(thing, order="sorted")


def identity(thing: Any) -> str:
    """SHA-256 of the canonical JSON of `thing`, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(thing)).hexdigest()


def short_id(full_identity: str) -> str:
    """As much of an identity as a person needs to see."""
    return full_identity[:12]
