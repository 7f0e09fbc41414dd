# SPDX-License-Identifier: GPL-2.0-or-later
"""What studies return, with what the store knows beside it, as reports."""

import re
from collections.abc import Sequence

from kdelta.infer.effects import compare
from kdelta.report.model import Compared, CompareReport, Facts, ReportedRun, RunReport, Side
from kdelta.spec.run import RunStatus
from kdelta.store.model import Run
from kdelta.store.store import Store
from kdelta.studies import compare as study
from kdelta.studies.lab import Done

CONSOLE_LINES = 12
_MODEL_NAME = re.compile(r"^model name\s*: (.*)$", re.MULTILINE)


def compare_report(comparisons: Sequence[study.Comparison], store: Store) -> CompareReport:
    """The report of one base against each of the others."""
    base = comparisons[0].base
    return CompareReport(
        workload=comparisons[0].workload,
        machine=_machine(base.done, store),
        base=_side(base, store),
        others=tuple(
            Compared(
                _side(one.other, store),
                one.effects or compare(one.base.counts, one.other.counts),
            )
            for one in comparisons
        ),
    )


def done_report(done: Done, store: Store) -> RunReport:
    """The report of a run that was just made or found."""
    return _run_report(_reported(done.run, store, stored=done.stored), done, store)


def stored_report(run: Run, store: Store) -> RunReport:
    """The report of a run of the store."""
    counts = store.counts(run) if run.status is RunStatus.OK else None
    return _run_report(_reported(run, store), Done(run, counts), store)


def _run_report(reported: ReportedRun, done: Done, store: Store) -> RunReport:
    return RunReport(
        run=reported,
        counts=done.counts,
        stdout=_attachment(done.run, "stdout", store),
        stderr=_attachment(done.run, "stderr", store),
    )


def _side(side: study.Side, store: Store) -> Side:
    runs = tuple(_reported(done.run, store, stored=done.stored) for done in side.done)
    if side.kernel is None:
        return Side(side.spec, "", "", runs, side.failure)
    return Side(side.kernel.spec, side.kernel.identity, side.kernel.release, runs)


def _reported(run: Run, store: Store, *, stored: bool = False) -> ReportedRun:
    if run.status is RunStatus.OK:
        return ReportedRun(run, stored)
    lines = store.console(run).strip().splitlines()
    return ReportedRun(run, stored, tuple(line.rstrip() for line in lines[-CONSOLE_LINES:]))


def _machine(done: Sequence[Done], store: Store) -> Facts:
    """The machine's facts, and the CPU's name as a guest saw it."""
    if not done:
        return {}
    facts: Facts = dict(done[0].run.machine)
    for one in done:
        if found := _MODEL_NAME.search(_attachment(one.run, "cpuinfo", store)):
            return {**facts, "cpu_model": found[1].strip()}
    return facts


def _attachment(run: Run, name: str, store: Store) -> str:
    blob = run.attachments.get(name)
    return store.get(blob).decode("utf-8", "replace") if blob else ""
