# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands and options that kdelta once had: why they were removed, and what to use instead."""

from collections.abc import Mapping
from typing import NamedTuple


class Removed(NamedTuple):
    """A command or an option that was removed.

    reason   why
    instead  what to use, or where to read what was found
    command  the words of a command to use in place of a removed one
    """

    reason: str
    instead: str
    command: tuple[str, ...] = ()


_PAGE = "docs/what-a-miss-costs.md has the figures"

COMMANDS: Mapping[str, Removed] = {
    "calibrate": Removed(
        "the costs that it measured were intervals from zero on, by which no verdict was decided",
        f"--cycles host takes the file of this machine's core; {_PAGE}",
        ("cpus", "host"),
    ),
}
OPTIONS: Mapping[str, Removed] = {
    "--front-end": Removed("what it predicted did not hold for real programs", _PAGE),
    "--top": Removed(
        "other tools look through profiles",
        "--export callgrind, speedscope or pprof writes their files",
    ),
}
RENAMED: Mapping[str, str] = {
    "--again": "--rerun",
    "--one-state": "--skip-states",
    "--keep-all": "--search-all",
    "--keep": "--write-branch",
    "--only": "--code",
    "--by": "--figure",
}
"""Options by their names of before."""

_OUTPUT = {"place", "report", "pin"}
"""Commands in which -o was a file to write; in all others it is an operation."""


def renamed(command: str, name: str) -> str:
    """Return what an option of a command is called now; empty where it is no option of before."""
    return "--output" if name == "-o" and command in _OUTPUT else RENAMED.get(name, "")
