# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a machine moves times, by what a run says of it, and how that is set: kdelta does not."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import msgspec

HYPERVISOR = "hypervisor"
"""The flag of a CPU that is a virtual one."""

_INVARIANT = {"constant_tsc", "nonstop_tsc"}
_IDLE = 0.5
"""A load up to which a machine is idle."""


class MovesTimes(Protocol):
    """What a run says of its machine, as far as it moves times; see BootFacts."""

    @property
    def cpu_flags(self) -> str: ...
    @property
    def clock(self) -> str: ...
    @property
    def governor(self) -> str: ...
    @property
    def boost(self) -> str: ...
    @property
    def no_turbo(self) -> str: ...
    @property
    def smt(self) -> str: ...


class HostSettings(msgspec.Struct, frozen=True):
    """The same of this host, whose CPU a guest runs on. `load`: of the last minute."""

    cpu: int
    governor: str
    boost: str
    no_turbo: str
    smt: str
    load: float
    cpu_flags: str = ""
    clock: str = ""


def host_settings(system: Path = Path("/sys/devices/system/cpu")) -> HostSettings:
    """Return the settings of this host, and of the CPU that guests under KVM keep to."""
    cpu = max(os.sched_getaffinity(0))
    return HostSettings(
        cpu,
        governor=_line(system / f"cpu{cpu}/cpufreq/scaling_governor"),
        boost=_line(system / "cpufreq/boost"),
        no_turbo=_line(system / "intel_pstate/no_turbo"),
        smt=_line(system / "smt/control"),
        load=os.getloadavg()[0],
    )


def _line(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def unset(facts: MovesTimes) -> Iterator[str]:
    """Yield what of the machine moves times, and how it is set."""
    flags = set(facts.cpu_flags.split())
    if HYPERVISOR in flags:
        yield "the CPU is a virtual one: what else its host does is in the times"
    if facts.clock == "tsc" and not flags >= _INVARIANT:
        yield "the TSC may follow the frequency: the CPU does not say constant_tsc and nonstop_tsc"
    if facts.governor and facts.governor != "performance":
        yield (
            f"the cpufreq governor is {facts.governor}, which moves the frequency: "
            "cpupower frequency-set -g performance"
        )
    if facts.boost == "1" or facts.no_turbo == "0":
        yield (
            "boost is on: the frequency depends on temperature and on other cores; as root: "
            + _BOOST_OFF[facts.boost == "1"]
        )
    if facts.smt == "on":
        yield (
            "SMT is on: another thread of the core may take part of it; as root: "
            "echo off >/sys/devices/system/cpu/smt/control"
        )


def busy(load: float) -> Iterator[str]:
    """Yield that others work on the machine, by its load before a study began."""
    if load > _IDLE:
        yield (
            f"the load was {load:.2f} before the first run: other programs take part of the CPU "
            "and of its caches; end them, or measure later"
        )


_BOOST_OFF = (
    "echo 1 >/sys/devices/system/cpu/intel_pstate/no_turbo",
    "echo 0 >/sys/devices/system/cpu/cpufreq/boost",
)
