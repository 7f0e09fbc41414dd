# SPDX-License-Identifier: GPL-2.0-or-later
"""What makers of hostile inputs share.

Each maker gets a trial's folder and a source of chance; what it makes is below work, in which the
command runs. A program of its own leaves a file in ran, if it is run.
"""

import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from tests.kernels.packages.test_damages import damaged
from tests.kernels.trees import fake_tree

ESCAPES = "\x1b]0;HOSTILE\a\x1b[2J\x1b[8m\b\x7f\x9b8m\u202e\u2028"
ESCAPE_BYTES = ESCAPES.encode() + b"\x9b8m\xff\xfe"
ANSWERS = (0, 1, 125, 255)
"""Exit codes of kdelta gate."""


class Command(msgspec.Struct, frozen=True):
    """Words of a command line, what its environment has besides, and how it may end."""

    words: tuple[str | bytes | Path, ...]
    environment: Mapping[str, str | bytes] = {}
    codes: tuple[int, ...] = (0, 1, 2, 3)


Maker = Callable[[Path, random.Random], Command]


def program(folder: Path, name: str) -> Path:
    """Make a program that leaves a file, wherever it is run from."""
    path = folder / "work" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n: >'{folder}/ran/{Path(name).name}'\ncat\n")
    path.chmod(0o755)
    return path


def odd_path(folder: Path, chance: random.Random, name: str) -> Path:
    """Make what is there and is no file that can be read to its end, or is none of its kind."""
    path = folder / "work" / name
    kinds = ("fifo", "null", "zero", "full", "folder", "loop", "dangling", "terminal", "sparse")
    match chance.choice((*kinds, "closed", "memory", "socket")):
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path.name)
        case "dangling":
            path.symlink_to(folder / "canary/missing")
        case "sparse":
            path.touch()
            os.truncate(path, 1 << 40)
        case "closed":
            path.write_text("")
            path.chmod(0)
        case "memory":
            path.symlink_to("/proc/self/mem")
        case "terminal":
            path.symlink_to("/dev/tty")
        case "socket":
            path.symlink_to("/dev/stdin")
        case device:
            path.symlink_to(f"/dev/{device}")
    return path


def file(folder: Path, chance: random.Random, name: str, contents: list[bytes]) -> Path:
    """Make a file with one of these contents, perhaps damaged, or what is no usual file."""
    if chance.random() < 0.2:
        return odd_path(folder, chance, name)
    text = chance.choice(contents)
    path = folder / "work" / name
    path.write_bytes(damaged(text, chance) if text and chance.random() < 0.4 else text)
    return path


def built(folder: Path, *changes: str | Path) -> Command:
    """Build the fake tree with these changes."""
    return Command(("build", fake_tree(folder / "work"), *(f"+{one}" for one in changes)))
