# SPDX-License-Identifier: GPL-2.0-or-later
"""Colours of verdicts, for a terminal alone."""

import os
import re
import sys

from kdelta.cli.output import emit
from kdelta.spec.visible import visible

_RED, _GREEN, _YELLOW, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"
_COLOURS = {
    "slower": _RED,
    "faster": _GREEN,
    "mixed": _YELLOW,
    "unresolved": _YELLOW,
    "not steady": _YELLOW,
    "depends on state": _YELLOW,
    "depends on CPU speed": _YELLOW,
}
# "not slower in what is counted" is no slower; a name with a dash or an underscore is no verdict.
_VERDICT = re.compile(rf"(?<!not )(?<![\w.-])(?:{'|'.join(_COLOURS)})(?![\w-])", re.IGNORECASE)
_BY_WORD = {word.lower(): colour for word, colour in _COLOURS.items()}


def emit_report(text: str) -> None:
    """Write a report's text; raises as `emit` does. On a terminal, verdicts have colours, unless
    NO_COLOR (no-color.org) is set.
    """
    emit(coloured(visible(text)), styled=True) if _takes_colours() else emit(text)


def coloured(text: str) -> str:
    """Return a text in which each word of a verdict is coloured."""
    return _VERDICT.sub(lambda found: f"{_BY_WORD[found[0].lower()]}{found[0]}{_PLAIN}", text)


def _takes_colours() -> bool:
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return is_terminal and not os.environ.get("NO_COLOR")
