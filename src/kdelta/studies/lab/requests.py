# SPDX-License-Identifier: GPL-2.0-or-later
"""What the command line asks of a study, and to whom the study reports how far it is."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Protocol

import msgspec

from kdelta.cpus.catalog import list_cpus
from kdelta.cpus.model import CPU, Cache
from kdelta.host.target import targets
from kdelta.infer.cycles.ensembles import DEFAULT_LAYOUTS
from kdelta.infer.cycles.placement_model import DEFAULT_MARGIN
from kdelta.infer.effects.effects import MARGIN
from kdelta.infer.effects.gate import Mixed
from kdelta.infer.search.series_model import View
from kdelta.kernels.model import Kernel
from kdelta.machines.arch import arch_machine
from kdelta.machines.tcg import CallsMode, Recording
from kdelta.replay.hierarchy import check_levels
from kdelta.replay.order import DEFAULT_EVALUATIONS
from kdelta.spec.errors import UserError
from kdelta.spec.run import MachineOptions, Mode


class LabRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How runs are made, whatever the study.

    perturbations: runs a kernel. jobs: guests at a time. again: run what the store has, and see
    that it counts the same. snapshots: start from a snapshot of the booted guest, taken once.
    trace: keep the sequence of executed blocks, too; data_lines: and of accesses to data;
    trace_limit: see Recording. simulate: count the misses of that instruction cache while the guest
    runs. calls: follow calls, for profiles. mode: in which programs run and call.
    """

    machine: MachineOptions = MachineOptions()
    perturbations: int = 4
    jobs: int = 2
    again: bool = False
    snapshots: bool = True
    trace: bool = False
    data_lines: bool = False
    trace_limit: int = Recording().trace_limit
    simulate: Cache | None = None
    calls: CallsMode = "off"
    mode: Mode = "user"


USUAL_LAB = LabRequest()
DEFAULT_WORKLOAD = "syscalls"


class Program(msgspec.Struct, frozen=True):
    """A program of the host, in place of a workload.

    command  its words, as for a shell
    files    what is carried along, each as HOST[:GUEST]
    seconds  the longest it may run, in the guest's own time
    find     whether files of the host that it asks for are carried along, too
    names    those that it asked for (guests/host_files.py); None before they were looked for
    """

    command: tuple[str, ...]
    files: tuple[str, ...] = ()
    seconds: int = 600
    find: bool = True
    names: tuple[str, ...] | None = None


class CompareRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Kernel specs as text: a base and others. No operations means all of the workload. program:
    what is run in place of the workload; so in the other requests.

    cpus: what model cycles are judged on, each on a machine that looks like it; without any, only
    the path is. layouts: how many are drawn for it. margin: which differences of model cycles
    matter, as a fraction. path_margin: which of paths. states: run what depends on it from other
    states, too. budget_seconds: see `Budget`.
    """

    base: str
    others: tuple[str, ...]
    workload: str = "syscalls"
    operations: tuple[str, ...] = ()
    program: Program | None = None
    cpus: tuple[CPU, ...] = ()
    layouts: int = DEFAULT_LAYOUTS
    margin: float = DEFAULT_MARGIN
    path_margin: Fraction = MARGIN
    states: bool = True
    budget_seconds: Fraction | None = None
    lab: LabRequest = LabRequest()


class GateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison with one other kernel that is to be answered by yes or no.

    exact_margin  by what fraction more may be executed where all runs are equal; where they vary
                  the comparison's path margin counts
    left_out      operations that do not count
    mixed         what is made of operations that are mixed
    """

    compare: CompareRequest
    exact_margin: Fraction = Fraction(0)
    left_out: tuple[str, ...] = ()
    mixed: Mixed = "cannot-tell"


class LayoutRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel whose sensitivity to placement is asked for, on a CPU that its machine looks like.
    layouts, seed: of the ensemble. No operations means all of the workload.
    """

    kernel: str
    cpu: CPU
    workload: str = "syscalls"
    operations: tuple[str, ...] = ()
    program: Program | None = None
    layouts: int = DEFAULT_LAYOUTS
    seed: int = 1
    lab: LabRequest = LabRequest(perturbations=1)


class PlaceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel for which a better order of functions is looked for, to be written to `file`.

    weights: of operations, 1 by default; with several workloads an operation is named
    WORKLOAD/OPERATION. evaluations: the most orders that are judged. seed: of these, and of the
    ensemble that they are compared with, of `layouts`. No operations means all of the workloads.
    apply: relink the kernel in that order, and measure it.
    """

    kernel: str
    cpu: CPU
    file: Path
    workloads: tuple[str, ...] = ("syscalls",)
    operations: tuple[str, ...] = ()
    weights: dict[str, float] = {}
    evaluations: int = DEFAULT_EVALUATIONS
    layouts: int = DEFAULT_LAYOUTS
    seed: int = 1
    apply: bool = False
    lab: LabRequest = LabRequest(perturbations=1)


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A program for a kernel."""

    kernel: str
    program: Program
    lab: LabRequest = LabRequest(perturbations=1)


def machine_like(machine: MachineOptions, cpu: CPU) -> MachineOptions:
    """That machine with what the emulator has for this CPU, and the words that make a kernel take
    its paths. UserError if there is no machine of its architecture.
    """
    arch_machine(cpu.arch).board(cpu.qemu.cpu)
    return msgspec.structs.replace(
        machine,
        cpu=cpu.qemu.cpu or machine.cpu,
        append=f"{cpu.qemu.append} {machine.append}".strip(),
        force=cpu.qemu.force,
    )


def machine_for(machine: MachineOptions, arch: str) -> MachineOptions:
    """That machine for a kernel of the architecture: where it names no CPU, it is like the default
    one, if the architecture has one.
    """
    cpu = None if machine.cpu else default_cpu(arch)
    return machine_like(machine, cpu) if cpu else machine


def default_cpu(arch: str) -> CPU | None:
    """The CPU that guests of an architecture are like where the user names none."""
    name = arch_machine(arch).default_cpu
    return list_cpus()[name] if name else None


def default_cpus() -> tuple[CPU, ...]:
    """Those of all architectures."""
    found = map(default_cpu, targets())
    return tuple(cpu for cpu in found if cpu)


def lab_like(lab: LabRequest, cpu: CPU | None) -> LabRequest:
    """The same request for runs on a machine that looks like the CPU, if there is one."""
    return msgspec.structs.replace(lab, machine=machine_like(lab.machine, cpu)) if cpu else lab


def must_fit(cpu: CPU, kernel: Kernel) -> None:
    """UserError for a CPU of another architecture than the kernel's."""
    if cpu.arch != kernel.arch:
        raise UserError(
            f"{cpu.name} is a CPU of {cpu.arch}, and {kernel.spec} is a kernel for {kernel.arch}",
            "kdelta cpus lists the CPUs",
        )


def must_replay_data(cpu: CPU) -> None:
    """UserError for a CPU of which the L2 cannot be replayed, known before anything is run."""
    check_levels(cpu.l1i, cpu.l1d, cpu.l2, data_line_bytes=arch_machine(cpu.arch).data_line_bytes)


class Progress(Protocol):
    """To whom a study reports how far it is. A step is a short name, unique in the study; its first
    word is its kind.
    """

    def expect(self, kind: str, count: int, at_once: int = 1, *, rough: bool = False) -> None:
        """So many further steps of a kind will begin, `at_once` of them at a time; rough: or some
        more or fewer, as the search goes.
        """

    def found(self, step: str) -> None:
        """A step has nothing to do, since what it would make is there."""

    def log(self, line: str) -> None:
        """Something worth a line of its own."""

    def show(self, text: Callable[[], str]) -> None:
        """Show this in place of what was shown before, until the study ends; it is called only
        where there is a terminal for it.
        """

    def begin(self, step: str, seconds: float | None = None) -> None:
        """A step starts; `seconds` is how long it will take, where that is known."""

    def doing(self, step: str, what: str) -> None:
        """What a step is at."""

    def end(self, step: str, result: str) -> None:
        """A step has ended, and how."""


class Silent:
    """Reports nothing."""

    def expect(self, kind: str, count: int, at_once: int = 1, *, rough: bool = False) -> None:
        """Nothing."""

    def found(self, step: str) -> None:
        """Nothing."""

    def log(self, line: str) -> None:
        """Nothing."""

    def show(self, text: Callable[[], str]) -> None:
        """Nothing."""

    def begin(self, step: str, seconds: float | None = None) -> None:
        """Nothing."""

    def doing(self, step: str, what: str) -> None:
        """Nothing."""

    def end(self, step: str, result: str) -> None:
        """Nothing."""


class AblateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A source tree, and the paths of two configs for it, whole ones or defconfigs.

    one_by_one    build a kernel for each unit, however few might do
    max_builds    the most kernels besides A and B; None: as many as it takes
    no_modules    leave out of both configs what would be a module
    rule_out      rule out units that reach no executed code
    recompile     and those whose executed objects come out the same when compiled
    switches      try what the kernel's command line can switch
    more_runs     perturbed runs of the two kernels of a proof that fails at first
    cpu           judge model cycles on it, too, over so many `layouts` of each kernel; differences
                  of no more than the fraction `margin` are none
    """

    tree: str
    before: str
    after: str
    workloads: tuple[str, ...] = ("syscalls",)
    program: Program | None = None
    one_by_one: bool = False
    max_builds: int | None = None
    no_modules: bool = False
    rule_out: bool = True
    recompile: bool = True
    switches: bool = True
    more_runs: int = 8
    cpu: CPU | None = None
    layouts: int = DEFAULT_LAYOUTS
    margin: float = DEFAULT_MARGIN
    lab: LabRequest = LabRequest()


BISECT_MARGIN = Fraction(1, 1000)


class BisectRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A repository's folder, a range of its commits, and what all kernels have in common.

    changes     +WORDS as text: the config, patches, variables of make
    operations  of the workloads; none means all
    cpu         judge model cycles, too, over `layouts` random layouts of each kernel
    first       only the commit with the largest effect
    regions     only effects on these; none means all
    margin      the part of a region's cost in the good end that an effect has to exceed
    max_builds  the most kernels besides the two ends; None: as many as it takes
    rule_out    rule out commits that reach no executed code
    """

    repository: str
    range: str
    changes: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ("syscalls",)
    operations: tuple[str, ...] = ()
    program: Program | None = None
    cpu: CPU | None = None
    layouts: int = DEFAULT_LAYOUTS
    first: bool = False
    regions: tuple[str, ...] = ()
    margin: Fraction = BISECT_MARGIN
    max_builds: int | None = None
    rule_out: bool = True
    lab: LabRequest = LabRequest()


DEFAULT_WITHIN = Fraction(1, 10)


class SeriesRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A source tree with its changes, as a spec's text, and words that name patches.

    views       what effects are measured against
    minimal     look for the smallest set of patches with the effect, and nothing else
    within      the part of the whole effect in a region by which that set's may differ
    max_builds  the most kernels besides the trees without and with all; None: as many as it takes
    rule_out    rule out patches that reach no executed code
    recompile   and those whose executed objects come out the same before and after them
    more_runs   perturbed runs of the two kernels of a proof that fails at first
    keep        REPO:BRANCH to write a commit a patch to; drop: not those that make it slower
    """

    tree: str
    patches: tuple[str, ...]
    workloads: tuple[str, ...] = ("syscalls",)
    program: Program | None = None
    views: tuple[View, ...] = (View.ORDER,)
    minimal: bool = False
    within: Fraction = DEFAULT_WITHIN
    max_builds: int | None = None
    rule_out: bool = True
    recompile: bool = True
    more_runs: int = 8
    keep: str = ""
    drop: bool = False
    lab: LabRequest = LabRequest()


class HistoryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A workload's history. operations: none means a summary over all. kernels: words that name
    some of those in the store, none means all. cpus: those on whose machines runs were made; model
    cycles are judged on them, too. mode: in which programs ran, None means any. since: a date or a
    version; limit: the last so many kernels. perturbations, layouts, margin: as of a comparison.
    """

    workload: str
    operations: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    cpus: tuple[CPU, ...] = ()
    mode: Mode | None = None
    since: str = ""
    limit: int = 20
    perturbations: int = USUAL_LAB.perturbations
    layouts: int = DEFAULT_LAYOUTS
    margin: float = DEFAULT_MARGIN
