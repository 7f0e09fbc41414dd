# SPDX-License-Identifier: GPL-2.0-or-later
"""A run that read a file of which its guest had the size alone: no figure comes of it."""

import os
from collections.abc import Sequence
from pathlib import Path

from kdelta.guests.host_file import HostFile
from kdelta.machines.outcome import GuestOutcome
from kdelta.spec.errors import UserError

UNTOUCHED = "untouched"
"""The agent's message where a program touched such files: those that it left alone, each with a NUL
after it (native/agent/holes.c)."""

_NAMED = 3


class UnseenContentError(UserError):
    """What a program read without its content; `holes`: all files that it had without content;
    `record`: where the names of its files are kept.
    """

    def __init__(self, paths: Sequence[str], holes: Sequence[str], record: Path | None) -> None:
        """Name the first of the paths."""
        more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
        super().__init__(
            f"the program read {', '.join(paths[:_NAMED])}{more}, and had only asked about it when"
            " its files were looked for: the guest had no content of it",
            f"--file {paths[0]} adds it",
        )
        self.paths, self.holes, self.record = tuple(paths), tuple(holes), record


def must_have_seen(
    outcome: GuestOutcome, found: Sequence[HostFile], record: Path | None = None
) -> None:
    """Raise UnseenContentError if the guest's program touched a file without content."""
    if (untouched := outcome.messages.get(UNTOUCHED)) is None:
        return
    left_alone = set(untouched.split(b"\0"))
    holes = [one.path for one in found if one.is_hole]
    if read := [path for path in holes if os.fsencode(path) not in left_alone]:
        raise UnseenContentError(read, holes, record)
