# SPDX-License-Identifier: GPL-2.0-or-later
"""Which cores a machine has, by its /proc/cpuinfo, and which CPUs have such a core."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from kdelta.cpus.model import CPU, Core
from kdelta.spec.errors import UserError

CPUINFO = Path("/proc/cpuinfo")

_FLAGS = ("flags", "Features")
_X86 = ("cpu family", "model")
_ARM = ("CPU implementer", "CPU part")
_ARM_64_BIT = ("8", "AArch64")
_NEAREST = 3


class FoundCore(msgspec.Struct, frozen=True):
    """A kind of core that a machine has.

    arch     of the kernels that it is made for
    numbers  family and model (x86), or implementer and part (Arm)
    name     as /proc/cpuinfo has it, in words; empty if it has none
    flags    its features
    """

    arch: str
    numbers: tuple[int, int]
    name: str
    flags: frozenset[str]

    @property
    def text(self) -> str:
        """What it is, in words: the numbers, and the name if it has one."""
        first, second = self.numbers
        words = (
            f"family {first}, model {second}"
            if self.arch == "x86_64"
            else f"implementer {first:#x}, part {second:#x}"
        )
        return f"{words} ({self.name})" if self.name else words


class HostCPU(msgspec.Struct, frozen=True):
    """The CPU with a machine's core. others: names of those with its cores of other kinds."""

    cpu: CPU
    others: tuple[str, ...] = ()


def cpu_of_machine(cpus: Iterable[CPU], cpuinfo: str) -> HostCPU:
    """Return which of the CPUs a machine's first core is, by the text of its /proc/cpuinfo.

    UserError if the text tells of no core, or of one that no CPU has.
    """
    every = list(cpus)
    cores = cores_in(cpuinfo)
    if not cores:
        raise UserError(
            f"cannot tell which core this machine has: {CPUINFO} has neither family and model nor "
            "implementer and part",
            "name a CPU: kdelta cpus lists them",
        )
    known = [(core, _cpu_of(every, core)) for core in cores]
    core, cpu = known[0]
    if cpu is None:
        near = ", ".join(one.name for one in nearest_cpus(every, core.arch, core.numbers))
        raise UserError(
            f"no CPU file is of this machine's core: {core.text}",
            f"the nearest are {near}: name one" if near else "docs/cpus.md describes a file",
        )
    others = [found.name for _, found in known[1:] if found is not None and found is not cpu]
    return HostCPU(cpu, tuple(dict.fromkeys(others)))


def read_cpuinfo() -> str:
    """Return the text of this machine's /proc/cpuinfo; UserError if there is none."""
    try:
        return CPUINFO.read_text(errors="replace")
    except OSError as error:
        raise UserError(
            f"cannot tell which core this machine has: {CPUINFO}: {error.strerror}",
            "name a CPU: kdelta cpus lists them",
        ) from error


def cores_in(cpuinfo: str) -> tuple[FoundCore, ...]:
    """Return the kinds of cores of a /proc/cpuinfo, each once, in its order."""
    found: dict[tuple[int, int], FoundCore] = {}
    for fields in _processors(cpuinfo):
        core = _core(fields)
        if core is not None:
            found.setdefault(core.numbers, core)
    return tuple(found.values())


def flags_of(cpuinfo: str) -> frozenset[str]:
    """Return the features of the first CPU of a /proc/cpuinfo."""
    return next(filter(None, map(_flags, _processors(cpuinfo))), frozenset())


def with_core(
    cpus: Iterable[CPU], pair: tuple[int, int] | None, flags: Collection[str] = ()
) -> CPU | None:
    """Return the CPU with such a core: by its numbers; by its features where no CPU has these."""
    cores = [(cpu, cpu.core) for cpu in cpus if cpu.core is not None]
    found = [cpu for cpu, core in cores if pair is not None and _has_numbers(core, pair)]
    found += [cpu for cpu, core in cores if _has_flags(core, frozenset(flags))]
    return found[0] if found else None


def nearest_cpus(cpus: Iterable[CPU], arch: str, pair: tuple[int, int]) -> list[CPU]:
    """Return the CPUs of an architecture whose numbers are the nearest, the nearest first."""

    def distance(core: Core) -> tuple[int, int]:
        return min(
            (abs(first - pair[0]), max(low - pair[1], pair[1] - high, 0))
            for first, low, high in core.numbers
        )

    cores = [(cpu, cpu.core) for cpu in cpus if cpu.arch == arch and cpu.core is not None]
    known = [(distance(core), cpu) for cpu, core in cores if core.numbers]
    return [cpu for _, cpu in sorted(known, key=lambda one: one[0])][:_NEAREST]


def _cpu_of(cpus: Iterable[CPU], core: FoundCore) -> CPU | None:
    """Features are looked at only under a hypervisor, which may make the numbers up."""
    flags = core.flags if "hypervisor" in core.flags else ()
    return with_core((cpu for cpu in cpus if cpu.arch == core.arch), core.numbers, flags)


def _processors(cpuinfo: str) -> Iterator[dict[str, str]]:
    """The fields of each paragraph that has any."""
    for paragraph in re.split(r"\n[ \t]*\n", cpuinfo):
        lines = (line.partition(":") for line in paragraph.splitlines())
        fields = {name.strip(): value.strip() for name, colon, value in lines if colon}
        if fields:
            yield fields


def _core(fields: Mapping[str, str]) -> FoundCore | None:
    """The core of a paragraph; None if it has no numbers."""
    for names in (_X86, _ARM):
        try:
            first, second = (int(fields[name], 0) for name in names)
        except (KeyError, ValueError):
            continue
        arm = "arm64" if fields.get("CPU architecture") in _ARM_64_BIT else "arm"
        arch = "x86_64" if names == _X86 else arm
        return FoundCore(arch, (first, second), fields.get("model name", ""), _flags(fields))
    return None


def _flags(fields: Mapping[str, str]) -> frozenset[str]:
    return next((frozenset(fields[name].split()) for name in _FLAGS if name in fields), frozenset())


def _has_numbers(core: Core, pair: tuple[int, int]) -> bool:
    return any(pair[0] == first and low <= pair[1] <= high for first, low, high in core.numbers)


def _has_flags(core: Core, flags: frozenset[str]) -> bool:
    return bool(core.flags) and flags.issuperset(core.flags) and flags.isdisjoint(core.without)
