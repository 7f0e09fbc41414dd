# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU: its caches, what things cost on it, and the paths that a kernel takes on it."""

from typing import Literal, get_args

import msgspec

from kdelta.cpus.cache import LRU as LRU  # noqa: PLC0414 (for others to import from here)
from kdelta.cpus.cache import Cache as Cache  # noqa: PLC0414
from kdelta.cpus.cache import Replacement as Replacement  # noqa: PLC0414

DataMissKind = Literal[
    "l1d", "l1d-store", "l2-data", "l2-data-store", "dtlb", "dtlb-store", "stlb", "stlb-store"
]
"""What accesses to data can miss, loads and stores apart: a line in the L1D; in the L2, too; a page
in the first-level TLB of data; in the second-level TLB, too."""

DATA_MISS_KINDS: tuple[DataMissKind, ...] = get_args(DataMissKind)

MissKind = Literal["l1i", "itlb", "btb", "l2", DataMissKind]
"""What can miss: a line of code, a page of code, a branch's target, a line in the unified L2; and
what accesses to data can."""

MISS_KINDS: tuple[MissKind, ...] = ("l1i", "itlb", "btb", "l2")
"""Those that depend on where code lies; all CPUs have prices of them, if they have such a thing."""

LINES: MissKind = "l1i"

L2_OF_DATA: tuple[DataMissKind, ...] = ("l2-data", "l2-data-store")
"""Those that depend on where code lies, since the L2 holds code, too."""

Frontend = Literal["coupled", "decoupled"]
"""Whether fetching waits for the branch that it follows ("coupled"), or runs ahead of execution
along predicted branches ("decoupled"), which hides misses."""

BARE_METAL = "-hypervisor"
"""What of QEMU's model makes a kernel take the paths of bare metal."""

GUEST = ":guest"
"""What follows the name of a CPU, with its options, for that of a guest on it."""

ASSUMED = "assumed:"
MEASURED = "measured:"

DATA_TLBS = ("dtlb", "dtlb_large", "dtlb_store", "stlb")

MAX_WAYS = 128
"""Fully associative TLBs of the cores described here have up to so many entries."""


class Price(msgspec.Struct, frozen=True):
    """What something costs, in cycles: at least `low`, at most `high`."""

    low: float
    high: float


class MissPrice(msgspec.Struct, frozen=True):
    """What a miss costs: `hidden`, behind other work, to `exposed`, in full; in cycles.

    `calibrated` says whether the interval was measured with a clock on such a CPU.
    """

    hidden: float
    exposed: float
    calibrated: bool


class LineTransfer(msgspec.Struct, frozen=True):
    """How long a CPU waits for a line that another one wrote, in nanoseconds, from the least to the
    most that was measured.

    near  CPUs that share a last-level cache
    far   CPUs of other clusters, or of another socket
    """

    near: tuple[float, float]
    far: tuple[float, float]


class Qemu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What makes an emulated machine look like this CPU to a kernel.

    cpu     QEMU's model and flags; empty where no machine of kdelta's emulates it yet
    append  words for the kernel's command line, where no flag makes it take the CPU's path
    reason  why these
    force   features that QEMU cannot offer, and that are forced in the kernel: see `Feature`
    force_source  from where it is known that the CPU has them
    """

    cpu: str = ""
    append: str = ""
    reason: str = ""
    force: tuple[str, ...] = ()
    force_source: str = ""


class Gain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What some instructions of a guest's kernel would gain on the CPU, by a path that QEMU lacks.

    insns      instructions that each of them would add, at least and at most
    special    the special instruction that is meant; empty: each instruction
    functions  patterns (as of a shell) of the functions that have it; empty: all
    """

    insns: tuple[float, float]
    special: str = ""
    functions: tuple[str, ...] = ()


class KernelPath(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A path that a kernel takes on this CPU, how to tell whether it did, and what depends on it.

    name         what it is, in words
    source       from where it is known that this CPU has it
    flags        of /proc/cpuinfo, which this CPU has; without them a kernel takes another path
    without      flags of /proc/cpuinfo that this CPU has not
    mitigations  file of /sys/devices/system/cpu/vulnerabilities -> what a kernel that was built
                 with all mitigations says there on this CPU
    foreign      such a file -> words that no kernel says there on this CPU: one that says any of
                 them took another path. (What a kernel was not built to do it does nowhere.)
    not_emulated what of it QEMU's TCG cannot offer, in words; empty where it can
    otherwise    what the kernel does without it, in words
    functions    patterns (as of a shell) of functions whose path it changes
    specials     special instructions whose number it changes
    strings      whether it changes how strings are copied and cleared
    entries      whether it changes each way into the kernel and out of it
    gains        how far it could move figures, from docs/cases/forced/lacking; empty: by nothing,
                 or that is not known
    """

    name: str
    source: str
    otherwise: str
    flags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    mitigations: dict[str, str] = {}
    foreign: dict[str, tuple[str, ...]] = {}
    not_emulated: str = ""
    functions: tuple[str, ...] = ()
    specials: tuple[str, ...] = ()
    strings: bool = False
    entries: bool = False
    gains: tuple[Gain, ...] = ()


class Core(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """By what a machine's core is known to be such a one.

    numbers        family, first and last model (x86), or implementer, first and last part (Arm)
    flags, without features in its /proc/cpuinfo, where a hypervisor makes up the numbers: all of
                   these and none of those
    """

    source: str
    numbers: tuple[tuple[int, int, int], ...] = ()
    flags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class CPU(msgspec.Struct, frozen=True):
    """All that is known about a CPU.

    itlb         for pages of the size in which the kernel's own code is mapped
    itlb_small   for pages of 4 KiB, in which modules and programs are; None where not published
    btb          None where its geometry was not published
    dtlb         of data, for pages of 4 KiB; for all sizes where there is no other. None where
                 nothing is known of the TLBs of data
    dtlb_large   for larger pages, where these have one of their own
    dtlb_store   for stores, where these have one of their own, for pages of all sizes
    stlb         the second level, for pages of all sizes; None where there is none or it is unknown
    cycles_per_insn  the base rate: stated, not measured
    string_bytes_per_cycle  how fast string operations (rep movs) are, from worst to best
    misses       the prices of misses, by kind
    specials     special instruction -> what it costs beyond an instruction
    sources      field of the file -> where its figures are from, in full
    clock_mhz    at which such a core runs; None where no device is meant
    sizes        "l1i", "l1d", "l2" -> what sizes it comes in, in bytes, where a licensee chooses
    core         by what such a core is known
    transfer     how long a line takes from CPU to CPU; None where that is not known
    """

    name: str
    title: str
    arch: str
    frontend: Frontend
    l1i: Cache
    l1d: Cache
    l2: Cache
    l2_shared: bool
    itlb: Cache
    itlb_small: Cache | None
    btb: Cache | None
    cycles_per_insn: float
    string_bytes_per_cycle: Price
    misses: dict[MissKind, MissPrice]
    specials: dict[str, Price]
    qemu: Qemu
    paths: tuple[KernelPath, ...]
    sources: dict[str, str]
    clock_mhz: float | None = None
    sizes: dict[str, tuple[int, ...]] = {}
    dtlb: Cache | None = None
    dtlb_large: Cache | None = None
    dtlb_store: Cache | None = None
    stlb: Cache | None = None
    core: Core | None = None
    transfer: LineTransfer | None = None

    @property
    def least_recent(self) -> "CPU":
        """The same with caches that all evict what was least recently used."""
        caches = {
            name: cache.least_recent
            for name in ("l1i", "l1d", "l2", "itlb", "itlb_small", "btb", *DATA_TLBS)
            if (cache := getattr(self, name)) is not None
        }
        return msgspec.structs.replace(self, **caches)


def is_bare_metal(model: str) -> bool:
    """Return whether kernels take the paths of bare metal on that model and flags of QEMU's."""
    return BARE_METAL in model.split(",")


def is_guest(name: str) -> bool:
    """Return whether a CPU of that name is what a guest finds."""
    return name.partition(",")[0].endswith(GUEST)
