# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a tree's Makefiles, scripts and linker scripts mention an option, and what that reaches."""

from pathlib import Path

import msgspec


class Mention(msgspec.Struct, frozen=True):
    """One place ("kernel/Makefile:14") that looks at an option, and what it can change.

    `reaches` is an object ("kernel/fork.o"), a folder and all below it ("kernel/"), or "" for
    everything.
    """

    place: str
    reaches: str


class Mentions(msgspec.Struct, frozen=True):
    """Mentions by option ("CONFIG_X")."""

    by_option: dict[str, tuple[Mention, ...]]


def find_mentions(tree: Path, arch: str = "x86") -> Mentions:
    """Reads the tree's build files, 0.5 s for a whole kernel; LabError when they cannot be read.

    arch: the folder below arch/ that is built.
    """
    raise NotImplementedError
