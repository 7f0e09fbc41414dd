# SPDX-License-Identifier: GPL-2.0-or-later
"""What was asked for last, by any command: made, answered from the store, or refused."""

import contextlib
import os
from pathlib import Path

import msgspec

from kdelta.host.files import read_json, write_json
from kdelta.spec.errors import LabError, UserError
from kdelta.store.model import moment_text

_FILE = "last.json"


class Last(msgspec.Struct, frozen=True):
    """What was asked for last.

    id       of a study, or of a run if that was all; empty if it was refused
    run      the last run that belongs to it
    refused  why it was refused
    command  its command line
    started  when, in seconds since 1970
    """

    id: str = ""
    run: str = ""
    refused: str = ""
    command: str = ""
    started: float = 0.0

    def must_be_there(self) -> None:
        """Raise UserError, with what was asked, if it was refused."""
        if self.refused:
            raise UserError(
                f"what was asked for last was refused, {moment_text(self.started)} UTC: "
                f"{self.refused}",
                f"it was: {self.command or 'kdelta'}; kdelta report --list lists older studies",
            )


def read_last(folder: Path) -> Last | None:
    """Return what was asked for last of the store in that folder; None if that is not known.
    UserError if it could not be kept.
    """
    with contextlib.suppress(FileNotFoundError):
        if not (folder / _FILE).stat().st_size:
            raise UserError(
                "it is not known what was asked for last: the disk of the store was full",
                "kdelta runs and kdelta report --list list what is stored; name one by its id",
            )
    return read_json(folder / _FILE, Last)


def keep_last(folder: Path, last: Last) -> None:
    """Keep that; where there is no space for it, the file is empty, so that nothing older is taken
    for it. A store that cannot be written stays as it is.
    """
    try:
        write_json(folder / _FILE, last)
    except LabError:
        with contextlib.suppress(OSError):
            os.truncate(folder / _FILE, 0)
