# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run is asked to be and how it may end: machine options, perturbations, status."""

import enum
import hashlib
from typing import Literal, get_args

import msgspec

from kdelta.spec.errors import UserError

TICK_NS = 4_000_000
"""The period of the timer tick of a kernel with CONFIG_HZ=250, the usual one."""

Mode = Literal["user", "kernel", "kernel-direct", "kernel-skip"]
"""How a program runs, and how it calls the kernel. user: in user mode, as ever. kernel: in ring 0,
by the same instruction. kernel-direct: in ring 0, by a jump to the kernel's usual entry.
kernel-skip: by a jump to one that leaves out what only a change of privilege needs.
"""
MODES: tuple[Mode, ...] = get_args(Mode)
CALLS: dict[Mode, str] = {"kernel-direct": "direct", "kernel-skip": "skip"}
"""What the library that makes a program's calls direct is told by KDELTA_CALL, by mode."""

LEAST_PAGES = 128
MOST_PAGES = 1023


class RunStatus(enum.StrEnum):
    """How a run ended. All of them are data."""

    OK = "ok"
    CONFIG_REFUSED = "config-refused"
    BUILD_FAILED = "build-failed"
    BOOT_FAILED = "boot-failed"
    WORKLOAD_FAILED = "workload-failed"
    TIMED_OUT = "timed-out"


class MachineOptions(msgspec.Struct, frozen=True):
    """What may be chosen about the machine. `cpu` is the emulator's name of a CPU model; an empty
    one means the architecture's usual. `append` is added to the kernel's command line.
    `timeout_seconds` is time of the host.
    """

    memory_mib: int = 1024
    cpu: str = ""
    append: str = ""
    timeout_seconds: float = 600.0


class Perturbation(msgspec.Struct, frozen=True):
    """What one run is shaken by, so that an effect can carry a spread; index 0 is not shaken.

    `seed` (hexadecimal, may be empty) is mixed into the guest's random pool, `pages` stay allocated
    during the run, and the workload starts `phase_ns` after a tick.
    """

    index: int
    seed: str
    pages: int
    phase_ns: int


def perturbation(index: int) -> Perturbation:
    """The perturbation of that index: the same one always, and a different one for each index."""
    if index < 0:
        raise UserError(f"not the index of a perturbation: {index}", "they are 0, 1, 2, ...")
    if index == 0:
        return Perturbation(0, "", 0, 0)
    digest = hashlib.sha256(f"kdelta perturbation {index}".encode()).digest()
    # An odd number of pages moves what comes after it by more than whole huge or compound pages.
    pages = LEAST_PAGES + int.from_bytes(digest[16:20], "big") % (MOST_PAGES - LEAST_PAGES)
    # Never 0 and never a whole tick: each is the phase of the run that is not shaken.
    phase_ns = 1 + int.from_bytes(digest[20:28], "big") % (TICK_NS - 1)
    return Perturbation(index, digest[:16].hex(), pages | 1, phase_ns)
