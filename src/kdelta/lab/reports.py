# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of reports that every study needs: kernels with their runs, and the machine."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from kdelta.cpus.model import CPU, DATA_MISS_KINDS
from kdelta.cpus.representative import paths_not_taken
from kdelta.infer.effects.marks import marked_regions
from kdelta.kernels.config.kconfig import Config, explain_diff, parse_config
from kdelta.kernels.model import Kernel
from kdelta.lab.cpus import default_cpus
from kdelta.lab.lab import RunResult
from kdelta.report.model import (
    Controllers,
    Facts,
    KernelRuns,
    Mismatch,
    ReportedCPU,
    ReportedOption,
    ReportedRun,
)
from kdelta.spec.run import RunStatus
from kdelta.store.model import Run
from kdelta.store.store import Store

CONSOLE_LINES = 12
_MODEL_NAME = re.compile(r"^model name\s*: (.*)$", re.MULTILINE)


def reported_side(
    spec: str, kernel: Kernel | None, done: Sequence[RunResult], failure: str, store: Store
) -> KernelRuns:
    """One kernel and its runs; no kernel: `failure` says why."""
    runs = tuple(reported_run(one.run, store, stored=one.stored) for one in done)
    if kernel is None:
        return KernelRuns(spec, "", "", runs, failure)
    return KernelRuns(
        spec,
        kernel.identity,
        kernel.release,
        runs,
        controllers=controllers(done, store),
        notes=kernel.notes,
    )


def controllers(done: Sequence[RunResult], store: Store) -> Controllers:
    """Return the controllers of the group that a kernel's programs ran in, by the first run that
    sent them; None where no run did.
    """
    runs = (one.run for one in done if "group" in one.run.attachments)
    return next((tuple(attachment(run, "group", store).split()) for run in runs), None)


def reported_run(run: Run, store: Store, *, stored: bool = False) -> ReportedRun:
    """A run, and for a failed one how its console ended."""
    if run.status is RunStatus.OK:
        return ReportedRun(run, stored)
    lines = store.console(run).strip().splitlines()
    return ReportedRun(run, stored, tuple(line.rstrip() for line in lines[-CONSOLE_LINES:]))


def config_changes(base: Kernel | None, other: Kernel | None) -> tuple[ReportedOption, ...] | None:
    """How two kernels' configs differ; None where one of them has none that can be read."""
    ours, theirs = _config(base), _config(other)
    if ours is None or theirs is None:
        return None
    flips = explain_diff(ours, theirs)
    return tuple(ReportedOption(one.option, one.before, one.after) for one in flips)


def _config(kernel: Kernel | None) -> Config | None:
    if kernel is None or kernel.config is None:
        return None
    try:
        return parse_config(Path(kernel.config).read_text(errors="replace"))
    except OSError:  # it was there when the kernel was taken in; a report can do without
        return None


def facts_of_machine(done: Sequence[RunResult], store: Store) -> Facts:
    """The machine's facts, the CPU's name as a guest saw it, and the default CPU if it is that."""
    if not done:
        return {}
    facts: Facts = dict(done[0].run.machine)
    if title := default_title(str(facts.get("cpu", ""))):
        facts["cpu_like"] = title
    for one in done:
        if found := _MODEL_NAME.search(attachment(one.run, "cpuinfo", store)):
            return {**facts, "cpu_model": found[1].strip()}
    return facts


def default_title(model: str) -> str:
    """Return the title of the default CPU that QEMU emulates by that model; empty if none is."""
    found = default_like(model)
    return found.title if found else ""


def default_like(model: str) -> CPU | None:
    """Return the default CPU that QEMU emulates by that model; None if none is."""
    return next((cpu for cpu in default_cpus() if cpu.qemu.cpu == model), None)


def attachment(run: Run, name: str, store: Store) -> str:
    """A text that came out of the guest; empty if there is none of that name."""
    blob = run.attachments.get(name)
    return store.get(blob).decode("utf-8", "replace") if blob else ""


def reported_cpu(cpu: CPU) -> ReportedCPU:
    """The CPU, and which of its prices were not measured. Those of misses of data are left to the
    effects, since not all runs and studies know these.
    """
    kinds = tuple(kind for kind in cpu.misses if kind not in DATA_MISS_KINDS)
    guessed = tuple(kind for kind in kinds if not cpu.misses[kind].calibrated)
    return ReportedCPU(cpu.name, cpu.title, kinds, guessed, cpu.clock_mhz)


def unlike(cpu: CPU, done: RunResult, store: Store, who: str = "kernel") -> tuple[Mismatch, ...]:
    """What the kernel of a run did otherwise than on that CPU, with the regions that depend on
    it.
    """
    if done.counts is None:
        return ()
    names = ("cpuinfo", "vulnerabilities")
    found = paths_not_taken(cpu, *(attachment(done.run, name, store) for name in names))
    marks = marked_regions(found, done.counts)
    return tuple(
        Mismatch(
            one.path.name,
            one.text,
            (who,),
            tuple(dict.fromkeys(mark.region for mark in marks if mark.path == one.path.name)),
        )
        for one in found
    )


def merged_unlike(every: Iterable[Mismatch]) -> tuple[Mismatch, ...]:
    """The same, each text once, with all its kernels and regions."""
    merged: dict[str, Mismatch] = {}
    for one in every:
        known = merged.get(one.text, Mismatch(one.name, one.text, (), ()))
        merged[one.text] = msgspec.structs.replace(
            known,
            kernels=tuple(dict.fromkeys((*known.kernels, *one.kernels))),
            regions=tuple(dict.fromkeys((*known.regions, *one.regions))),
        )
    return tuple(merged.values())
