# SPDX-License-Identifier: GPL-2.0-or-later
"""How a record of a single document is kept."""

import msgspec
from campaign import Aloud

__all__ = ["Aloud", "a_row_a_line"]


def a_row_a_line(record: msgspec.Struct) -> bytes:
    """The record as JSON, with each row of its tables in a line."""
    lines = []
    for key, value in msgspec.to_builtins(record).items():
        table = value if isinstance(value, list | tuple) else ()
        rows = [msgspec.json.encode(row) for row in table if isinstance(row, dict | list | tuple)]
        text = b"[\n  " + b",\n  ".join(rows) + b"\n]" if rows else msgspec.json.encode(value)
        lines.append(msgspec.json.encode(key) + b": " + text)
    return b"{\n" + b",\n".join(lines) + b"\n}\n"
