# SPDX-License-Identifier: GPL-2.0-or-later
"""Text from a guest, a kernel or a file as a terminal may get it: nothing in it acts on that."""

import re

# C0 but tab and newline; DEL and C1; and what makes a terminal show text in another order
# (Unicode's bidirectional formatting characters), or cannot be encoded.
_CONTROL = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)


def visible(text: str) -> str:
    """Return the text with its control characters escaped, but for tabs and ends of lines.

    What JSON may hold unescaped is escaped as JSON does it, so that JSON stays what it was.
    """
    return _CONTROL.sub(_escaped, text)


def visible_line(text: str) -> str:
    """Return the text as one line: a name that has ends of lines must not look like lines."""
    return visible(text).replace("\n", "\\n")


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"
