# SPDX-License-Identifier: GPL-2.0-or-later
"""Damages to files as disks and people do them: a bit, a cut, an exchange, an empty file."""

import os
import random
from pathlib import Path

KINDS = ("bit", "cut", "exchange", "empty")


def damage(path: Path, kind: str, other: Path | None, chance: random.Random) -> bool:
    """Damages a file, or exchanges it with another; returns whether its content differs then.

    Half of the files keep their time; of these, those that are cut or empty keep their size, too:
    zeros are in place of what is lost.
    """
    content = path.read_bytes()
    keeps = chance.random() < 0.5
    if kind == "exchange":
        if other is None or other.read_bytes() == content:
            return False
        _write(path, other.read_bytes(), keeps=keeps)
        _write(other, content, keeps=keeps)
        return True
    if not content:
        return False
    made = bytearray(content)
    if kind == "bit":
        made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
    else:
        left = chance.randrange(len(made)) if kind == "cut" else 0
        made[left:] = bytes(len(made) - left) if keeps else b""
    _write(path, bytes(made), keeps=keeps)
    return bytes(made) != content


def _write(path: Path, content: bytes, *, keeps: bool) -> None:
    """Writes a file in place of one that may have other names, with its mode."""
    before = path.stat()
    path.unlink()
    path.write_bytes(content)
    path.chmod(before.st_mode)
    if keeps:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
