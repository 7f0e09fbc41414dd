# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run is to do: a workload as jobs for guests."""

from collections.abc import Mapping

import msgspec

from kdelta.guests.job import Job, job_identity
from kdelta.spec.identity import identity
from kdelta.spec.run import MachineOptions


class GuestPart(msgspec.Struct, frozen=True):
    """What one guest does. `jobs`: the usual one, then the same for longer and longer, for regions
    that are not steady in those before.
    """

    name: str
    jobs: tuple[Job, ...]


class Work(msgspec.Struct, frozen=True):
    """What a run is to do. `binaries`: the programs whose code may run, name -> content.

    `name` and `identity` are the workload's, as the store keeps them. `job` says what all parts
    have in common; each part has a guest of its own. `warnings` go with what its runs count: what
    could not be prepared for them. Its guests have `memory_mib` at least, and a guest may take
    `host_seconds`, where the user does not say how long. Where its jobs have words for later, their
    program asks for them when it is about to execute the instruction at `asks_at`.
    """

    name: str
    identity: str
    job: Job
    binaries: Mapping[str, bytes]
    warnings: tuple[str, ...] = ()
    memory_mib: int = 0
    host_seconds: float = 0.0
    parts: tuple[GuestPart, ...] = ()
    asks_at: int = 0

    def seconds_on(self, machine: MachineOptions) -> float:
        """The longest that a guest of it may take here."""
        asked = machine.timeout_seconds
        usual = asked == MachineOptions().timeout_seconds
        return max(asked, self.host_seconds) if usual else asked


def work_of(
    name: str,
    job: Job,
    binaries: Mapping[str, bytes],
    warnings: tuple[str, ...] = (),
    *,
    parts: tuple[GuestPart, ...] = (),
    memory_mib: int = 0,
    host_seconds: float = 0.0,
    asks_at: int = 0,
) -> Work:
    """A job as the store knows it: by the hash of all that it carries. No parts: it is one."""
    key = job_identity(job)
    if parts:
        shapes = [
            (part.name, [(*one.argv, *(one.later or ())) for one in part.jobs]) for part in parts
        ]
        key = identity({"job": key, "parts": shapes})
    whole = (GuestPart(name, (job,)),)
    return Work(
        name, key, job, binaries, warnings, memory_mib, host_seconds, parts or whole, asks_at
    )
