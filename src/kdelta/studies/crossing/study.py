# SPDX-License-Identifier: GPL-2.0-or-later
"""What crossing from user mode into the kernel and back costs a program: five arms of one run.

Two kernels are built, the tree as it is and the tree +kernel-mode. What cannot be built or run is
said, and the rest is broken down all the same.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.cpus.model import CPU
from kdelta.infer.cycles.crossing import ARMS, ArmName, Crossing, crossing
from kdelta.infer.cycles.prices import INSNS
from kdelta.infer.effects.estimate import ZERO
from kdelta.kernels.build.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.report.model import Facts, Unlike
from kdelta.spec.change import KernelModeChange
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import DebSpec, ImageSpec, KernelSpec, parameters_of, with_changes
from kdelta.spec.parameters import parameter
from kdelta.spec.run import Mode
from kdelta.store.store import Store
from kdelta.studies.crossing.model import ARM_NAMES, NOT_AFFECTED, CrossingArm, CrossingReport
from kdelta.studies.lab.command import with_own_regions
from kdelta.studies.lab.lab import Done, Lab
from kdelta.studies.lab.reports import (
    attachment,
    config_changes,
    machine_facts,
    reported_cpu,
    reported_side,
    unlike,
)
from kdelta.studies.lab.requests import LabRequest, Progress, lab_like, must_fit
from kdelta.studies.lab.work import must_have_modes
from kdelta.studies.profile.study import ProfileJob

MITIGATIONS_OFF = "mitigations=off"
_MODES: Mapping[ArmName, Mode] = {
    "kernel": "kernel",
    "kernel-direct": "kernel-direct",
    "kernel-skip": "kernel-skip",
}
_MOST_OPTIONS = 12


class CrossingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Two kernel specs: one as it is, and one with kernel mode. what: is to be run in both. cpu:
    which the machine is to look like, and whose prices model cycles have.
    """

    stock: str
    with_mode: str
    what: ProfileJob
    cpu: CPU | None = None
    lab: LabRequest = LabRequest()


class _Arm(msgspec.Struct, frozen=True):
    """An arm and its runs; `failure` says why there are none."""

    name: ArmName
    spec: str
    kernel: Kernel | None
    done: tuple[Done, ...] = ()
    failure: str = ""

    @property
    def counts(self) -> tuple[RunCounts, ...]:
        return tuple(done.counts for done in self.done if done.counts is not None)


def both_kernels(spec: KernelSpec) -> tuple[KernelSpec, KernelSpec]:
    """The kernel of a spec without kernel mode, and with it. UserError for one that is built
    already: nothing can be added to it.
    """
    if isinstance(spec, DebSpec | ImageSpec):
        raise UserError(
            f"{spec} is built already, and kernel mode cannot be added to it",
            "name a source: PATH, git:PATH@REV or deb-src:linux-source-6.12; or, with --with, a "
            "kernel that has kernel mode",
        )
    changes = tuple(one for one in spec.changes if not isinstance(one, KernelModeChange))
    stock = msgspec.structs.replace(spec, changes=changes)
    return stock, with_changes(stock, [KernelModeChange()])


def must_leave_mitigations(spec: KernelSpec) -> None:
    """UserError for a kernel whose own boot parameters would overrule those of the arms."""
    for word in parameters_of(spec):
        if parameter(word)[0] == "mitigations":
            raise UserError(
                f"cannot set {word} in crossing: some of its variants have {MITIGATIONS_OFF}, and "
                "a kernel's own parameters win",
                f"leave out +cmdline:{word}",
            )


async def run_crossing(
    request: CrossingRequest, store: Store, progress: Progress
) -> CrossingReport:
    """The arms, as many as there are."""
    request.what.check()  # before a kernel is built for it
    lab = lab_like(request.lab, request.cpu)
    builder = Lab(lab, store, progress)
    # The one that may not be had comes first, so that its refusal does not take long.
    changed = builder.kernel(request.with_mode)
    stock = builder.kernel(request.stock)
    for kernel in (changed, stock):
        if isinstance(kernel, Kernel):
            must_have_modes("kernel", kernel)
            if request.cpu is not None:
                must_fit(request.cpu, kernel)
    # An arm is as many guests as it has perturbations, and their slots are its own.
    slots = asyncio.Semaphore(max(1, lab.jobs // lab.perturbations))

    async def arm(name: ArmName) -> _Arm:
        is_changed = name in _MODES
        spec = request.with_mode if is_changed else request.stock
        async with slots:
            return await _arm(
                _Arm(name, spec, None),
                changed if is_changed else stock,
                request.what,
                Lab(_of_arm(name, lab), store, progress),
                progress,
            )

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(arm(name)) for name in ARMS]
    return _report(request, [task.result() for task in tasks], store)


async def _arm(
    arm: _Arm, kernel: Kernel | NoKernel, what: ProfileJob, lab: Lab, progress: Progress
) -> _Arm:
    """The arm with its runs, or why it has none."""
    if isinstance(kernel, NoKernel):
        return msgspec.structs.replace(arm, failure=kernel.text)
    try:
        work = _in_mode(what, _MODES.get(arm.name, "user")).work(kernel, progress)
    except UserError as error:  # of a program that cannot run so; it can in other arms
        if arm.name not in _MODES:
            raise
        return msgspec.structs.replace(arm, failure=f"{error.message} ({error.hint})")
    (done,) = await lab.runs([kernel], [work])
    if what.command is not None:
        done = [with_own_regions(one) for one in done]
    return msgspec.structs.replace(arm, kernel=kernel, done=tuple(done))


def _of_arm(name: ArmName, lab: LabRequest) -> LabRequest:
    """How runs of an arm are made."""
    machine = lab.machine
    if name != "stock":
        append = f"{machine.append} {MITIGATIONS_OFF}".strip()
        machine = msgspec.structs.replace(machine, append=append)
    return msgspec.structs.replace(lab, machine=machine, mode=_MODES.get(name, "user"))


def _in_mode(what: ProfileJob, mode: Mode) -> ProfileJob:
    command = what.command
    if command is not None:
        lab = msgspec.structs.replace(command.lab, mode=mode)
        command = msgspec.structs.replace(command, lab=lab)
    return msgspec.structs.replace(what, command=command, mode=mode)


def _report(request: CrossingRequest, arms: Sequence[_Arm], store: Store) -> CrossingReport:
    found = crossing({arm.name: arm.counts for arm in arms}, request.cpu)
    reported = tuple(
        CrossingArm(
            arm.name,
            reported_side(arm.spec, arm.kernel, arm.done, arm.failure, store),
            _chose(arm.done, store),
        )
        for arm in arms
    )
    return CrossingReport(
        workload=_name(request.what),
        machine=_common_facts(arms, store),
        arms=reported,
        found=found,
        cpu=reported_cpu(request.cpu) if request.cpu else None,
        unlike=_unlike(request.cpu, arms, store),
        notes=(*_path_notes(found), *_kernel_notes(arms, reported)),
        warnings=_warnings(arms),
    )


def _name(what: ProfileJob) -> str:
    return " ".join(what.command.command) if what.command else what.workload


def _common_facts(arms: Sequence[_Arm], store: Store) -> Facts:
    """The machine, without what the arms differ in."""
    done = next((arm.done for arm in arms if arm.counts), ())
    facts = machine_facts(done, store)
    facts.pop("mode", None)
    if append := str(facts.get("append", "")):
        facts["append"] = append.removesuffix(MITIGATIONS_OFF).strip()
    return facts


def _chose(done: Sequence[Done], store: Store) -> dict[str, str]:
    text = next(
        (attachment(one.run, "vulnerabilities", store) for one in done if one.counts is not None),
        "",
    )
    return dict(re.findall(r"^([\w-]+): *(.*\S)", text, re.MULTILINE))


def _unlike(cpu: CPU | None, arms: Sequence[_Arm], store: Store) -> tuple[Unlike, ...]:
    """In what the kernel of the first arm was not as on that CPU: the others are told otherwise."""
    stock = next((arm for arm in arms if arm.name == "stock"), None)
    done = next((one for one in stock.done if one.counts is not None), None) if stock else None
    return unlike(cpu, done, store, "stock") if cpu and done else ()


def _path_notes(found: Crossing) -> list[str]:
    """Whether the arms are what they are called, derived from what was executed."""
    notes = []
    for arm in found.total.arms:
        if arm.arm not in _MODES:
            continue
        back = arm.specials.get("sysret", ZERO)
        if back:
            notes.append(
                f"{ARM_NAMES[arm.arm]}: {_figure(back)} sysret an iteration: not all of its tasks "
                "are in the kernel's mode"
            )
        left = arm.specials.get("syscall", ZERO)
        if left and arm.arm != "kernel":
            notes.append(
                f"{ARM_NAMES[arm.arm]}: {_figure(left)} syscall instructions an iteration are left "
                "of calls that could not be made direct"
            )
    if not found.total.arms:
        return notes
    first = found.total.arms[0].amounts.get(INSNS, ZERO)
    if not first:
        notes.append("the measured tasks executed nothing: there is nothing to break down")
    return notes


def _figure(value: Fraction) -> str:
    return f"{float(value):.2f}".removesuffix(".00")


def _kernel_notes(arms: Sequence[_Arm], reported: Sequence[CrossingArm]) -> list[str]:
    """What lies between the two kernels besides kernel mode, and what no arm shows."""
    notes = []
    kernels = {arm.name in _MODES: arm.kernel for arm in arms if arm.kernel}
    changes = config_changes(kernels.get(False), kernels.get(True)) or ()
    if changes:
        shown = [f"{one.option} {one.base} -> {one.other}" for one in changes[:_MOST_OPTIONS]]
        more = f" and {len(changes) - len(shown)} more" if len(changes) > len(shown) else ""
        notes.append(
            f"the two kernels differ in {len(changes)} options, which are part of the crossing's "
            f"share: {', '.join(shown)}{more}"
        )
    chose = next((arm.chose for arm in reported if arm.name == "stock"), {})
    unaffected = sum(words == NOT_AFFECTED for words in chose.values())
    if unaffected:
        notes.append(
            f"this machine's CPU is not affected by {unaffected} of {len(chose)} vulnerabilities, "
            "as its kernel sees it, so their mitigations are not in the figures; --cpu makes it "
            "look like a CPU that is sold"
        )
    if open_ones := [name for name, words in chose.items() if words.startswith("Vulnerable")]:
        notes.append(
            f"the stock kernel does nothing about {', '.join(open_ones)}: a config that does has "
            "more to gain from mitigations=off"
        )
    notes.append(
        "instructions say nothing of what a change of privilege alone costs; model cycles "
        "(--cpu) have a price of it, and misses and what speculation loses are in neither"
    )
    return notes


def _warnings(arms: Sequence[_Arm]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            f"{ARM_NAMES[arm.name]}: {text}"
            for arm in arms
            for counts in arm.counts
            for text in counts.warnings
        )
    )
