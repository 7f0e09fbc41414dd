# SPDX-License-Identifier: GPL-2.0-or-later
"""What programs took by the clock of some machine."""

import msgspec

from kdelta.spec.errors import UserError


class MachineFacts(msgspec.Struct, frozen=True):
    """What was timed on.

    id                hash of the machine's id: two results of one machine have the same
    arch              as kdelta's targets are called
    cpu               its name, as /proc/cpuinfo or the device tree has it
    cpu_numbers       what identifies the core: x86 family, model, stepping; Arm implementer, part,
                      variant; RISC-V mvendorid, marchid, mimpid, as text with spaces
    cores             that were online
    core              the one that the programs ran on
    hypervisor        whether the CPU says that it is a virtual one
    kernel            its release
    clock             what was read: tsc, cntvct, rdtime or clock_gettime
    page_bytes        of the kernel's small pages
    """

    id: str
    arch: str
    cpu: str
    cpu_numbers: str
    cores: int
    core: int
    hypervisor: bool
    kernel: str
    clock: str
    page_bytes: int = 4096


class Quiet(msgspec.Struct, frozen=True):
    """How quiet the machine was while it was timed. All shares are of 0 to 1.

    seconds            how long all of it took
    steal_share        of the core's time that the hypervisor gave to others
    other_share        of the core's time that other programs had
    elsewhere_share    of the time of the other cores that other programs had
    load_average       over a minute, before it began
    reference_spread   how far the reference loop's slowest tenth was above its fastest tenth
    dropped_share      of repetitions that were thrown away, since the frequency moved in them
    contended_share    of passes during which another thread of the core had a share of its width,
                       though that was waited for
    ok                 whether all of that is within the limits of a quiet machine
    said               what is not, in words
    """

    seconds: float
    steal_share: float
    other_share: float
    elsewhere_share: float
    load_average: float
    reference_spread: float
    dropped_share: float
    contended_share: float
    ok: bool
    said: tuple[str, ...] = ()


class TimedLink(msgspec.Struct, frozen=True):
    """One link of a program. Cycles are core cycles an iteration, which is a pass of its region.

    iterations        passes that one repetition times: those of the region as it is traced
    cycles            of each pass a low quantile over all its processes, averaged over the passes
    halves            likewise, of every other process: by how much they differ is how well the
                      figure repeats. Each process has the program in other physical pages
    samples           how many times of a pass are behind it, the median over passes
    cycles_min        the third least, taken for each of these passes and averaged over them: of
                      the least itself no other says that it is not a slip of the clock
    ticks_per_cycle   of the clock that was read; the reference loop's, its median
    alone             whether only passes count in which no other thread of the core was busy. Where
                      there were too few of them, all count, and the figures are much higher
    """

    seed: int
    sha256: str
    iterations: int
    cycles: float
    halves: tuple[float, float]
    samples: int
    cycles_min: float
    ticks_per_cycle: float
    alone: bool = True


class ProgramFacts(msgspec.Struct, frozen=True):
    """What a program is. Programs of the same `code` are the same files with other arguments, which
    they get in a guest as on the machine.
    """

    name: str
    code: str
    arguments: tuple[str, ...] = ()


class TimedProgram(ProgramFacts, frozen=True, kw_only=True):
    """A program, and what its links took."""

    links: tuple[TimedLink, ...]


class Timings(msgspec.Struct, frozen=True):
    """All that a machine said. `bundle` is the hash of the programs that were sent to it."""

    when: str
    machine: MachineFacts
    quiet: Quiet
    programs: tuple[TimedProgram, ...]
    bundle: str = ""

    def program(self, name: str) -> TimedProgram:
        """The program of that name; UserError if there is none."""
        for one in self.programs:
            if one.name == name:
                return one
        raise UserError(f"these timings have no program {name}")
