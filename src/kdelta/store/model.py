# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs and studies as the store knows them."""

import datetime

import msgspec

from kdelta.spec.run import RunStatus

_YEAR_10000_SECONDS = 253_402_300_800

Facts = dict[str, str | int | float]
"""What is known of a machine, by name."""


class NewRun(msgspec.Struct, frozen=True):
    """What is known of a run before it starts.

    `key` says what makes it the same run as another: kernel, machine, workload and perturbation.
    `machine` are facts to be shown, such as {"name": "tcg", "memory_mib": 1024}.
    """

    key: str
    kernel_identity: str
    kernel_spec: str
    kernel_release: str
    machine: Facts
    workload: str
    workload_identity: str
    perturbation: int


class Run(NewRun, frozen=True, kw_only=True):
    """A run, which may have failed, be under way, or have lost the process that made it.

    `status` is None until it ends; `alive` says whether the process that makes it is there.
    `started` is in seconds since 1970, `seconds` how long the host took. `command`: the command
    line that made it, which older versions did not keep. Blobs are named by their hash;
    `attachments` are blobs by name: what else came out of the guest.
    """

    id: str
    status: RunStatus | None
    alive: bool
    detail: str
    started: float
    command: str = ""
    seconds: float | None = None
    counts_blob: str | None = None
    console_blob: str | None = None
    attachments: dict[str, str] = {}

    @property
    def word(self) -> str:
        """The status, or "started" or "interrupted" for a run that has not ended."""
        if self.status is not None:
            return self.status.value
        return "started" if self.alive else "interrupted"

    @property
    def started_text(self) -> str:
        """When it started, in UTC, to the second."""
        return moment_text(self.started)


class NewStudy(msgspec.Struct, frozen=True):
    """What is entered of a study that is done. `kind` is the command that made it, `question` what
    was asked in words, `command` the command line; `report_blob`: the hash of its report's blob.
    `operations` and `answer`: the operations and the verdict in some words; empty where an older
    version kept it.
    """

    kind: str
    question: str
    command: str
    started: float
    version: str
    report_blob: str
    operations: str = ""
    answer: str = ""


class Study(NewStudy, frozen=True, kw_only=True):
    """A study that is kept."""

    id: str

    @property
    def started_text(self) -> str:
        return moment_text(self.started)


def moment_text(seconds: float) -> str:
    """Return a moment in seconds since 1970 as a date and time in UTC."""
    if not 0 <= seconds < _YEAR_10000_SECONDS:  # of a row that others made
        return "at no time"
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
