# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line that is under way, as it is kept with what it made."""

import re
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

_HIDDEN = "HIDDEN"
_PASSWORD_OF_URL = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]+(?=@)")
_SECRET_VARIABLE = re.compile(
    r"(?<!\w)(\w*(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|_PIN|API_?KEY)\w*=)\S+", re.IGNORECASE
)


class Invoked(msgspec.Struct):
    """The command that is under way.

    arguments  its words
    line       the same as a line for a shell, with the options that the defaults file set
    started    since when, in seconds since 1970
    defaults   these options and the file, in words; empty if there are none
    """

    arguments: tuple[str, ...] = ()
    line: str = ""
    started: float = 0.0
    defaults: str = ""


invoked = Invoked()


def begin_command(arguments: Sequence[str]) -> None:
    """Notes which command begins now."""
    invoked.arguments = tuple(arguments)
    invoked.line = command_line(["kdelta", *arguments])
    invoked.started = time.time()
    invoked.defaults = ""


def use_defaults(words: Sequence[str], path: Path | None) -> str:
    """Note that a file of defaults set these options; returns that in words."""
    given = invoked.arguments
    at = next((at for at, word in enumerate(given, 1) if not word.startswith("-")), 0)
    invoked.line = command_line(["kdelta", *given[:at], *words, *given[at:]])
    invoked.defaults = f"{command_line(words)} ({path})"
    return f"defaults: {invoked.defaults}"


def command_line(words: Sequence[str]) -> str:
    """The words as a line for a shell, in printable characters; passwords are hidden."""
    return " ".join(_shell_word(_without_secret(word)) for word in words)


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    # What a terminal or a mail would not show as it is goes into a $'...' of bash, byte by byte.
    shown = "".join(
        rf"\x{byte:02x}" if not 32 <= byte < 127 else {39: r"\'", 92: r"\\"}.get(byte, chr(byte))
        for byte in word.encode("utf-8", "surrogateescape")
    )
    return f"$'{shown}'"


def _without_secret(word: str) -> str:
    word = _PASSWORD_OF_URL.sub(rf"\1:{_HIDDEN}", word)
    return _SECRET_VARIABLE.sub(rf"\1{_HIDDEN}", word)
