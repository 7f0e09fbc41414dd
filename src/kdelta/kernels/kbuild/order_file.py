# SPDX-License-Identifier: GPL-2.0-or-later
"""Symbol ordering files, as lld's --symbol-ordering-file takes them: one symbol a line."""

import re
from collections.abc import Iterable
from pathlib import Path

from kdelta.host.files import read_given, write_atomic
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.limits import ORDER_FILE_BYTES

_SYMBOL = re.compile(r"[^\s#\x00-\x1f\x7f]+")
_NUMBERED = re.compile(r"#\d+$")
_HINT = "an order file has one name of a function a line; what follows a # is a comment"


def read_order(path: Path) -> tuple[str, ...]:
    """Return the names of an ordering file in their order, each once; UserError for one that cannot
    be read, is no text or is empty.
    """
    content = read_given(path, ORDER_FILE_BYTES, _HINT)
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no order file: it is not text", _HINT) from error
    names: dict[str, None] = {}
    for number, line in enumerate(lines, 1):
        name = line.partition("#")[0].strip()
        if not name:
            continue
        if not _SYMBOL.fullmatch(name):
            raise UserError(f"{path}:{number}: {name[:60]!r} is no name of a function", _HINT)
        names[name] = None
    if not names:
        raise UserError(f"the order file {path} is empty", _HINT)
    return tuple(names)


def write_order(path: Path, names: Iterable[str], comments: Iterable[str] = ()) -> None:
    """Writes names in order, after comments of a line each; UserError when it cannot be written.

    The linker knows symbols by name only: name#2, the second function of a name, is written as
    that name, and each name once.
    """
    lines = [f"# {comment}".rstrip() for text in comments for comment in text.splitlines()]
    lines += dict.fromkeys(_NUMBERED.sub("", name) for name in names)
    try:
        write_atomic(path, "".join(f"{line}\n" for line in lines).encode())
    except LabError as error:
        raise UserError(error.message, "name a file that can be written") from error
