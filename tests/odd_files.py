# SPDX-License-Identifier: GPL-2.0-or-later
"""What may lie where a file belongs: reading some of it waits, or never ends."""

import os
import socket
from collections.abc import Callable
from pathlib import Path


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "file").write_text("of the user")


def _socket(path: Path) -> None:
    # A socket's path has at most 107 bytes.
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(before)


ODD: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "folder": _folder,
    "loop": lambda path: path.symlink_to(path.name),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "socket": _socket,
}
