# SPDX-License-Identifier: GPL-2.0-or-later
"""What two kernels log differently as they boot."""

import re
from collections.abc import Collection, Sequence

_STAMP = re.compile(r"^(?:<\d+>)?(?:\[ *\d+\.\d+\] ?)?(?:\[ *[TC]\d+\] ?)?")
"""The level, the time and the caller, which precede a message of the kernel."""

_FIGURE = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+")
"""Addresses, sizes and counts: what a word of the command line moves may change them."""

_ECHO = re.compile(r"[Cc]ommand line: |Unknown kernel command line parameters")
"""In a message that repeats the command line."""

_FEWEST_LETTERS = 3


def differing_messages(
    base: Sequence[str], other: Sequence[str], words: Collection[str]
) -> tuple[list[str], list[str]]:
    """Return the messages that each boot of the base logs and none of the other, and the reverse.

    base, other: the log of each run. Messages are the same if they differ in figures alone; those
    that repeat `words`, the boot parameters, are left out; the ones that name what these are about
    come first.
    """
    ours, theirs = ([_messages(log, words) for log in logs] for logs in (base, other))
    return _only(ours, theirs, words), _only(theirs, ours, words)


def _only(
    ours: Sequence[dict[str, str]], theirs: Sequence[dict[str, str]], words: Collection[str]
) -> list[str]:
    if not ours or not theirs:
        return []
    known = set[str]().union(*theirs)
    found = [text for key, text in ours[0].items() if key not in known and _is_in_all(key, ours)]
    return sorted(found, key=lambda text: -_names(text, words))


def _is_in_all(key: str, logs: Sequence[dict[str, str]]) -> bool:
    return all(key in log for log in logs)


def _messages(log: str, words: Collection[str]) -> dict[str, str]:
    """The messages of a log by what is the same in each boot."""
    texts = (_STAMP.sub("", line).strip() for line in log.splitlines())
    kept = (text for text in texts if text and text not in words and not _ECHO.search(text))
    return {_FIGURE.sub("#", text): text for text in kept}


def _names(text: str, words: Collection[str]) -> int:
    """How many parts of the parameters' names are in a message."""
    names = {part for word in words for part in re.split(r"[^a-z0-9]+", word.lower())}
    return sum(len(name) >= _FEWEST_LETTERS and name in text.lower() for name in names)
