# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run is asked to be and how it may end: machine options, perturbations, status."""

import enum
import hashlib
from typing import Annotated, Literal, get_args

import msgspec

from kdelta.spec.errors import UserError
from kdelta.spec.option import HelpSection, option

PHASE_NS = 24_000_000
"""Start phases are drawn from this: six ticks of a kernel with CONFIG_HZ=250, the usual one, and
several of the periods in which its schedulers account for time (0.7 to 6 ms on one CPU).
"""

RunsAs = Literal["service", "container", "none"]
"""Where programs run: in a control group with the memory and pids controllers, as services do; with
the cpu controller, too, as containers do; or in the root group, as no program of a real system.
"""

Mode = Literal["user", "kernel", "kernel-direct", "kernel-skip"]
"""How a program runs, and how it calls the kernel. user: in user mode, as ever. kernel: in ring 0,
by the same instruction. kernel-direct: in ring 0, by a jump to the kernel's usual entry.
kernel-skip: by a jump to one that leaves out what only a change of privilege needs.
"""
MODES: tuple[Mode, ...] = get_args(Mode)
CALLS: dict[Mode, str] = {"kernel-direct": "direct", "kernel-skip": "skip"}
"""What the library that makes a program's calls direct is told by KDELTA_CALL, by mode."""

MOST_CPUS = 64

LEAST_PAGES = 128
MOST_PAGES = 1023


_BOOTS = (1, 2, 0, 3, 4, 5, 6, 7)
"""The boots of the perturbations from 1 on: eight in a row are of as many boots, so that what a
boot decides is drawn with each of them. That of perturbation 0, which is not shaken, serves another
one, too.
"""


def boot_of(index: int) -> int:
    """Return the number of the boot of the run with the perturbation of that index."""
    return _BOOTS[(index - 1) % len(_BOOTS)] if index else 0


class RunStatus(enum.StrEnum):
    """How a run ended. All of them are data."""

    OK = "ok"
    DOES_NOT_APPLY = "does-not-apply"
    CONFIG_REFUSED = "config-refused"
    BUILD_FAILED = "build-failed"
    BOOT_FAILED = "boot-failed"
    WORKLOAD_FAILED = "workload-failed"
    TIMED_OUT = "timed-out"


class MachineOptions(msgspec.Struct, frozen=True):
    """What may be chosen about the machine. `cpu` is the emulator's name of a CPU model; an empty
    one means the architecture's usual. `qemu` is "host", "pin", or the path of the emulator, of a
    folder that has it, or of an archive of the pin; an empty one means the usual. `append` is added
    to the kernel's command line. `timeout_seconds` is time of the host. `runs_as`: see RunsAs.
    `loaded`: the guest has executed the standard load before it is measured. An instruction takes
    2^`icount_shift` ns of the guest's time. `force`: features of the CPU that are forced in the
    guest's kernel (see CPU files). `compile_guest`: the guest's programs are compiled by the host's
    compiler instead of the pinned one. `cpus`: so many, which take turns.
    """

    memory_mib: Annotated[
        int,
        option(
            "--memory",
            metavar="MIB",
            least=64,
            most=1 << 20,
            group=HelpSection.MACHINE,
            help="Give a guest so much memory.",
        ),
    ] = 1024
    cpus: Annotated[
        int,
        option(
            "--smp",
            metavar="N",
            least=1,
            most=MOST_CPUS,
            group=HelpSection.MACHINE,
            help="Give a guest N CPUs (x86-64).",
        ),
    ] = 1
    cpu: Annotated[
        str,
        option(
            "--qemu-cpu",
            metavar="MODEL",
            group=HelpSection.MACHINE,
            usual="like zen4 on x86-64",
            help="Emulate this CPU model of QEMU; force no features.",
        ),
    ] = ""
    qemu: Annotated[
        str,
        option(
            "--qemu",
            metavar="host|pin|PATH",
            group=HelpSection.MACHINE,
            usual="pin",
            values="host|pin",
            help="Run guests by this QEMU; the pinned one is fetched.",
        ),
    ] = ""
    append: Annotated[
        str,
        option(
            "--append",
            metavar="WORDS",
            group=HelpSection.MACHINE,
            help="Add words to the kernel's command line.",
        ),
    ] = ""
    timeout_seconds: Annotated[
        float,
        option(
            "--timeout",
            metavar="SECONDS",
            least=1,
            group=HelpSection.MACHINE,
            help="End a boot or a run that takes longer on this host.",
        ),
    ] = 600.0
    runs_as: Annotated[
        RunsAs,
        option(
            "--as",
            metavar="service|container|none",
            group=HelpSection.MACHINE,
            help="Run programs in such a control group.",
        ),
    ] = "service"
    loaded: bool = False
    icount_shift: int = 0
    short_turns: bool = False
    force: tuple[str, ...] = ()
    compile_guest: Annotated[
        bool,
        option(
            "--compile-guest",
            group=HelpSection.MACHINE,
            help="Compile the guest's programs by this host's compiler.",
        ),
    ] = False


LEAST_TURN_US, MOST_TURN_US = 1, 100
"""Between these are the turns of guests with short ones: at 1 ns an instruction each of two CPUs
executes at most 500 to 50,000 of them at a time.
"""


def turn_us(index: int) -> int:
    """Return after how many microseconds of the guest's time all CPUs have had a turn, of a guest
    with short turns and that perturbation; 0 where turns are as long as without.
    """
    if index == 0:
        return 0
    digest = hashlib.sha256(f"kdelta turns {index}".encode()).digest()
    part = int.from_bytes(digest[:8], "big") / 2**64
    return round(float(LEAST_TURN_US * (MOST_TURN_US / LEAST_TURN_US) ** part))


class Perturbation(msgspec.Struct, frozen=True):
    """What one run is shaken by, so that an effect can carry a spread; index 0 is not shaken.

    `seed` (hexadecimal, may be empty) is mixed into the guest's random pool, `pages` stay allocated
    during the run, the workload starts `phase_ns` after a tick, and warms up for `warm_up_percent`
    of its usual time. Its guest is of the boot of that number: the kernel mixes its command line,
    which has the number, into what it draws before the workload can mix in a seed, and so arranges
    the free objects of its slabs in another order.
    """

    index: int
    seed: str
    pages: int
    phase_ns: int
    warm_up_percent: int = 100
    boot: int = 0


def perturbation(index: int) -> Perturbation:
    """Return the perturbation of that index: always the same, and a different one for each."""
    if index < 0:
        raise UserError(f"not the index of a perturbation: {index}", "they are 0, 1, 2, ...")
    if index == 0:
        return Perturbation(0, "", 0, 0)
    digest = hashlib.sha256(f"kdelta perturbation {index}".encode()).digest()
    # An odd number of pages moves what comes after it by more than whole huge or compound pages.
    pages = LEAST_PAGES + int.from_bytes(digest[16:20], "big") % (MOST_PAGES - LEAST_PAGES)
    # Never 0: that is the phase of the run that is not shaken.
    phase_ns = 1 + int.from_bytes(digest[20:28], "big") % (PHASE_NS - 1)
    warm_up_percent = 100 + int.from_bytes(digest[28:32], "big") % 100
    return Perturbation(
        index, digest[:16].hex(), pages | 1, phase_ns, warm_up_percent, boot_of(index)
    )
