# SPDX-License-Identifier: GPL-2.0-or-later
"""What crossing from user mode into the kernel and back costs a program: five variants of one run.

Two kernels are built, the tree as it is and the tree +kernel-mode. What cannot be built or run is
said, and the rest is broken down all the same.
"""

import asyncio
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.cpus.model import CPU
from kdelta.infer.cycles.crossing import VARIANTS, Crossing, VariantName, crossing_of
from kdelta.infer.cycles.prices import INSNS
from kdelta.infer.effects.estimate import ZERO
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.cpus import lab_like, must_fit
from kdelta.lab.found import in_rounds, with_found_files
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.plan import RunPlan, must_have_mode
from kdelta.lab.reports import (
    attachment,
    config_changes,
    facts_of_machine,
    reported_cpu,
    reported_side,
    unlike,
)
from kdelta.lab.request import LabRequest
from kdelta.lab.steps import expect_kernels, expect_runs
from kdelta.lab.work import Work
from kdelta.report.model import Facts, Mismatch
from kdelta.spec.change import KernelModeChange
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import BuiltSpec, KernelSpec, parameters_of, with_changes
from kdelta.spec.parameters import parameter
from kdelta.spec.run import Mode
from kdelta.store.store import Store
from kdelta.studies.crossing.model import (
    NOT_AFFECTED,
    VARIANT_NAMES,
    CrossingReport,
    CrossingVariant,
)

MITIGATIONS_OFF = "mitigations=off"
_MODES: Mapping[VariantName, Mode] = {
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
    what: Work
    cpu: CPU | None = None
    lab: LabRequest = LabRequest()


class _Variant(msgspec.Struct, frozen=True):
    """A variant and its runs; `failure` says why there are none."""

    name: VariantName
    spec: str
    kernel: Kernel | None
    done: tuple[RunResult, ...] = ()
    failure: str = ""

    @property
    def counts(self) -> tuple[RunCounts, ...]:
        return tuple(done.counts for done in self.done if done.counts is not None)


def both_kernels(spec: KernelSpec) -> tuple[KernelSpec, KernelSpec]:
    """The kernel of a spec without kernel mode, and with it. UserError for one that is built
    already: nothing can be added to it.
    """
    if isinstance(spec, BuiltSpec):
        raise UserError(
            f"{spec} is built already, and kernel mode cannot be added to it",
            "name a source: PATH, git:PATH@REV or deb-src:linux-source-6.12; or, with --with, a "
            "kernel that has kernel mode",
        )
    changes = tuple(one for one in spec.changes if not isinstance(one, KernelModeChange))
    stock = msgspec.structs.replace(spec, changes=changes)
    return stock, with_changes(stock, [KernelModeChange()])


def must_leave_mitigations(spec: KernelSpec) -> None:
    """UserError for a kernel whose own boot parameters would overrule those of the variants."""
    for word in parameters_of(spec):
        if parameter(word)[0] == "mitigations":
            raise UserError(
                f"cannot set {word} in crossing: some of its variants have {MITIGATIONS_OFF}, and "
                "a kernel's own parameters win",
                f"leave out +cmdline:{word}",
            )


@in_rounds
async def run_crossing(request: CrossingRequest, lab: Lab) -> CrossingReport:
    """The variants, as many as there are."""
    request.what.check()  # before a kernel is built for it
    lab, progress = lab.with_request(lab_like(request.lab, request.cpu)), lab.progress
    expect_kernels(progress, (request.with_mode, request.stock))
    expect_runs(progress, lab.request, 1, len(VARIANTS))
    # The one that may not be had comes first, so that its refusal does not take long.
    changed = lab.kernel(request.with_mode)
    stock = lab.kernel(request.stock)
    for kernel in (changed, stock):
        if isinstance(kernel, Kernel):
            must_have_mode("kernel", kernel)
            if request.cpu is not None:
                must_fit(request.cpu, kernel)
    kernels = [one for one in (stock, changed) if isinstance(one, Kernel)]
    what = await with_found_files(request.what, kernels, lab)
    request = msgspec.structs.replace(request, what=what)
    lab = await lab.settled(kernels)
    # A variant is as many guests as it has perturbations, and their slots are its own.
    slots = asyncio.Semaphore(max(1, lab.request.jobs // lab.request.perturbations))

    async def variant(name: VariantName) -> _Variant:
        spec, kernel = (request.with_mode, changed) if name in _MODES else (request.stock, stock)
        async with slots:
            made_by = lab.with_request(_of_arm(name, lab.request))
            plan = functools.partial(
                request.what.plan, asked=_of_arm(name, request.lab), log=progress.log
            )
            return await _arm(_Variant(name, spec, None), kernel, plan, made_by)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(variant(name)) for name in VARIANTS]
    return _report(request, [task.result() for task in tasks], lab.store)


async def _arm(
    variant: _Variant, kernel: Kernel | NoKernel, plan: Callable[[Kernel], RunPlan], lab: Lab
) -> _Variant:
    """The variant with its runs, or why it has none."""
    if isinstance(kernel, NoKernel):
        return msgspec.structs.replace(variant, failure=kernel.text)
    try:
        work = plan(kernel)
    except UserError as error:  # of a program that cannot run so; it can in other variants
        if variant.name not in _MODES:
            raise
        return msgspec.structs.replace(variant, failure=f"{error.message} ({error.hint})")
    (done,) = await lab.runs([kernel], [work])
    return msgspec.structs.replace(variant, kernel=kernel, done=tuple(done))


def _of_arm(name: VariantName, asked: LabRequest) -> LabRequest:
    """How runs of a variant are made."""
    machine = asked.machine
    if name != "stock":
        machine = msgspec.structs.replace(
            machine, append=f"{machine.append} {MITIGATIONS_OFF}".strip()
        )
    return msgspec.structs.replace(asked, machine=machine, mode=_MODES.get(name, "user"))


def _report(request: CrossingRequest, variants: Sequence[_Variant], store: Store) -> CrossingReport:
    found = crossing_of({variant.name: variant.counts for variant in variants}, request.cpu)
    reported = tuple(
        CrossingVariant(
            variant.name,
            reported_side(variant.spec, variant.kernel, variant.done, variant.failure, store),
            _chose(variant.done, store),
        )
        for variant in variants
    )
    return CrossingReport(
        workload=request.what.title,
        machine=_common_facts(variants, store),
        variants=reported,
        found=found,
        cpu=reported_cpu(request.cpu) if request.cpu else None,
        mismatches=_unlike(request.cpu, variants, store),
        notes=(*_path_notes(found), *_kernel_notes(variants, reported)),
        warnings=_warnings(variants),
    )


def _common_facts(variants: Sequence[_Variant], store: Store) -> Facts:
    """The machine, without what the variants differ in."""
    facts = facts_of_machine(
        next((variant.done for variant in variants if variant.counts), ()), store
    )
    facts.pop("mode", None)
    if append := str(facts.get("append", "")):
        facts["append"] = append.removesuffix(MITIGATIONS_OFF).strip()
    return facts


def _chose(done: Sequence[RunResult], store: Store) -> dict[str, str]:
    text = next(
        (attachment(one.run, "vulnerabilities", store) for one in done if one.counts is not None),
        "",
    )
    return dict(re.findall(r"^([\w-]+): *(.*\S)", text, re.MULTILINE))


def _unlike(cpu: CPU | None, variants: Sequence[_Variant], store: Store) -> tuple[Mismatch, ...]:
    """Return where the first variant's kernel was not as on that CPU; others differ on purpose."""
    stock = next((variant for variant in variants if variant.name == "stock"), None)
    done = next((one for one in stock.done if one.counts is not None), None) if stock else None
    return unlike(cpu, done, store, "stock") if cpu and done else ()


def _path_notes(found: Crossing) -> list[str]:
    """Whether the variants are what they are called, derived from what was executed."""
    notes = []
    for variant in (one for one in found.total.variants if one.name in _MODES):
        if back := variant.specials.get("sysret", ZERO):
            notes.append(
                f"{VARIANT_NAMES[variant.name]}: {_figure(back)} sysret an iteration: not all of "
                "its tasks are in the kernel's mode"
            )
        left = variant.specials.get("syscall", ZERO)
        if left and variant.name != "kernel":
            notes.append(
                f"{VARIANT_NAMES[variant.name]}: {_figure(left)} syscall instructions an iteration "
                "are left of calls that could not be made direct"
            )
    if found.total.variants and not found.total.variants[0].amounts.get(INSNS, ZERO):
        notes.append("the measured tasks executed nothing: there is nothing to break down")
    return notes


def _figure(value: Fraction) -> str:
    return f"{float(value):.2f}".removesuffix(".00")


def _kernel_notes(variants: Sequence[_Variant], reported: Sequence[CrossingVariant]) -> list[str]:
    """Return what lies between the two kernels besides kernel mode, and what no variant shows."""
    notes = []
    kernels = {variant.name in _MODES: variant.kernel for variant in variants if variant.kernel}
    if changes := config_changes(kernels.get(False), kernels.get(True)):
        shown = [f"{one.option} {one.base} -> {one.other}" for one in changes[:_MOST_OPTIONS]]
        more = f" and {len(changes) - len(shown)} more" if len(changes) > len(shown) else ""
        notes.append(
            f"the two kernels differ in {len(changes)} options, which are part of the crossing's "
            f"share: {', '.join(shown)}{more}"
        )
    chose = next((variant.chose for variant in reported if variant.name == "stock"), {})
    if unaffected := sum(words == NOT_AFFECTED for words in chose.values()):
        notes.append(
            f"this machine's CPU is not affected by {unaffected} of {len(chose)} vulnerabilities, "
            "as its kernel sees it, so their mitigations are not in the figures; --cpu makes it "
            "look like another one"
        )
    if open_ones := [name for name, words in chose.items() if words.startswith("Vulnerable")]:
        notes.append(
            f"the stock kernel does nothing about {', '.join(open_ones)}: a config that does has "
            "more to gain from mitigations=off"
        )
    notes.append(
        "instructions say nothing of what a change of privilege alone costs; model cycles "
        "(--cycles) have a cost of it, and misses and what speculation loses are in neither"
    )
    return notes


def _warnings(variants: Sequence[_Variant]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            f"{VARIANT_NAMES[variant.name]}: {text}"
            for variant in variants
            for counts in variant.counts
            for text in counts.warnings
        )
    )
