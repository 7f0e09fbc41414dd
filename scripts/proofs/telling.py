# SPDX-License-Identifier: GPL-2.0-or-later
"""What proofs tell while they work, and how what they found is kept."""

import sys
import time

import msgspec

import kdelta
from kdelta.lab.progress import Silent
from kdelta.report.stored import Stored
from kdelta.studies.forms import text
from kdelta.studies.kinds import question_of


def printed(kind: str, report: msgspec.Struct) -> str:
    """Return a report as the command of that kind prints it."""
    command, made = " ".join(sys.argv), (time.time(), kdelta.__version__)
    return text(Stored(kind, question_of(kind, (report,)), command, *made, (report,)))


class Aloud(Silent):
    """Tells each step, and how it ended."""

    def log(self, line: str) -> None:
        """A line to stderr."""
        print(line, file=sys.stderr, flush=True)

    def begin(self, step: str, seconds: float | None = None) -> None:
        """A step begins."""
        del seconds
        self.log(f"{step} ...")

    def end(self, step: str, result: str) -> None:
        """A step ended."""
        self.log(f"{step}: {result}")


def a_row_a_line(record: msgspec.Struct) -> bytes:
    """The record as JSON, with each row of its tables in a line."""
    lines = []
    for key, value in msgspec.to_builtins(record).items():
        table = value if isinstance(value, list | tuple) else ()
        rows = [msgspec.json.encode(row) for row in table if isinstance(row, dict | list | tuple)]
        text = b"[\n  " + b",\n  ".join(rows) + b"\n]" if rows else msgspec.json.encode(value)
        lines.append(msgspec.json.encode(key) + b": " + text)
    return b"{\n" + b",\n".join(lines) + b"\n}\n"
