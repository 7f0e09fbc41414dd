# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of reports that every study has: kernels, runs, what failed, and how to make it again."""

from collections.abc import Iterable, Sequence

import msgspec

from kdelta.infer.effects.gains import PathGain
from kdelta.report import figures, words
from kdelta.report.document import (
    Block,
    Case,
    Cell,
    Column,
    Document,
    Facts,
    Failure,
    Flames,
    Fold,
    Made,
    Outcome,
    Prose,
    Section,
    Suite,
    Table,
    Verbatim,
)
from kdelta.report.flame import SMALLEST, Flame
from kdelta.report.lines import machine_facts
from kdelta.report.model import Facts as MachineFacts
from kdelta.report.model import KernelRuns, Mismatch, ReportedRun
from kdelta.report.stored import Stored
from kdelta.spec.identity import short_id
from kdelta.store.model import moment_text


def made_of(stored: Stored) -> Made:
    """Return what a stored study is of, and what made it."""
    made = Made(stored.kind, stored.question, stored.command, stored.version, stored.started)
    return msgspec.structs.replace(made, id=stored.id)


def kernel_fact(side: KernelRuns) -> str:
    """Return a kernel in a line: its spec, release and identity."""
    if side.failure:
        return f"{side.spec}: no kernel"
    return f"{side.spec} ({side.release}, identity {short_id(side.identity)})"


def run_side(*runs: ReportedRun) -> KernelRuns:
    """Return the kernel of runs that are looked at without another one."""
    run = runs[0].run
    return KernelRuns(run.kernel_spec, run.kernel_identity, run.kernel_release, runs)


def failures(sides: Iterable[tuple[str, KernelRuns]]) -> tuple[Failure, ...]:
    """Return what of these kernels was not built, booted or run, each once."""
    found: dict[Failure, None] = {}
    for who, side in sides:
        if side.failure:
            found[Failure(f"{who}: no kernel: {side.failure}")] = None
        for one in side.failed:
            reason = f": {one.run.detail}" if one.run.detail else ""
            text = f"{who}, perturbation {one.run.perturbation}: {one.run.word}{reason}"
            found[Failure(f"{text} (run {one.run.id})", one.console_tail)] = None
    return tuple(found)


def kernels_suite(sides: Iterable[tuple[str, KernelRuns]]) -> Suite:
    """Return a case for each kernel: whether it is there, and its runs went well."""
    return Suite("kernels", tuple(_kernel_case(who, side) for who, side in sides))


def _kernel_case(who: str, side: KernelRuns) -> Case:
    name = f"kernel {who}"
    if side.failure:
        return Case(name, Outcome.FAILED, f"{side.spec}: no kernel: {side.failure}")
    failed = [f"{one.run.word}: {one.run.detail}".rstrip(": ") for one in side.failed]
    if failed:
        verdict = f"{side.spec}: {len(failed)} of {len(side.runs)} runs failed"
        return Case(name, Outcome.FAILED, verdict, tuple(dict.fromkeys(failed)))
    return Case(name, Outcome.OK, f"{side.spec}: {words.counted(len(side.runs), 'run')}")


def runs_table(sides: Sequence[tuple[str, Sequence[ReportedRun]]]) -> Table:
    """All runs of a study."""
    columns = (
        Column("run", "name"),
        Column("kernel"),
        Column("perturbation", "number"),
        Column("status", "word"),
        Column("made (UTC)"),
        Column("seconds", "number", "of the host"),
    )
    rows = tuple(
        (
            Cell(one.run.id),
            Cell(who),
            Cell(str(one.run.perturbation), one.run.perturbation),
            Cell(one.run.word, tone="" if one.ok else "slower"),
            Cell(moment_text(one.run.started), one.run.started),
            Cell("" if one.run.seconds is None else f"{one.run.seconds:.1f}", one.run.seconds or 0),
        )
        for who, runs in sides
        for one in runs
    )
    return Table("runs", "The runs; kdelta show RUN prints one, kdelta profile RUN its calls",
                 columns, rows)  # fmt: skip


def environment(
    stored: Stored,
    machine: MachineFacts,
    sides: Sequence[tuple[str, KernelRuns]],
    more: Sequence[tuple[str, Sequence[ReportedRun]]] = (),
) -> tuple[Section, ...]:
    """Return what it was measured with, and how it is made again."""
    kernels = tuple(
        (who, f"{side.spec}; release {side.release}; identity {side.identity}")
        for who, side in sides
        if not side.failure
    )
    facts = (*kernels, *(machine_facts(machine) if machine else ()))
    runs = [(who, found) for who, found in (*((w, s.runs) for w, s in sides), *more) if found]
    count = sum(len(found) for _, found in runs)
    folds = (Fold(words.counted(count, "run"), (runs_table(runs),)),) if runs else ()
    return last_sections(stored, facts, folds)


def last_sections(
    stored: Stored, facts: tuple[tuple[str, str], ...], folds: tuple[Block, ...]
) -> tuple[Section, ...]:
    """Return the sections that end every report."""
    made = ("made", f"{stored.started_text} UTC by kdelta {stored.version}")
    if stored.defaults:
        facts = (*facts, ("defaults", stored.defaults))
    command = Verbatim(stored.command, command=True)
    return (
        Section("environment", "Environment", (Facts((*facts, made)), *folds), detail=True),
        Section("reproduce", "How to reproduce it", (command,), detail=True),
    )


def unlike_section(
    cpu: str, unlike: Sequence[Mismatch], id_: str = "unlike"
) -> tuple[Section, ...]:
    """Which paths were not those of the CPU, and whose figures depend on them."""
    if not unlike:
        return ()
    rows = tuple(
        (Cell(one.text), Cell(", ".join(one.kernels)), Cell(", ".join(one.regions) or "none"))
        for one in unlike
    )
    columns = (Column("what", "name"), Column("kernels"), Column("operations that depend on it"))
    table = Table(id_, "What depends on it is not representative",
                  columns, rows)  # fmt: skip
    return (Section(f"{id_}-section", f"Not as on a real {cpu}", (table,)),)


def gains_section(cpu: str, gains: Sequence[PathGain], id_: str = "gains") -> tuple[Section, ...]:
    """How far paths of the CPU that QEMU cannot offer could move each operation."""
    if not gains:
        return ()
    rows = tuple(
        (
            Cell(one.region),
            *(
                Cell(figures.reach(each.low, each.high), each.most)
                for each in (one.base, one.other, one.effect)
            ),
            Cell(", ".join(one.paths)),
        )
        for one in gains
    )
    columns = (
        Column("operation", "name"),
        Column("base", "number", "instructions an iteration that it could execute more"),
        Column("other", "number"),
        Column("diff", "number", "by how much that could change the difference"),
        Column("paths"),
    )
    caption = "Bounds, as found in Linux 6.1 and 6.12; a verdict that they could turn is unresolved"
    table = Table(id_, caption, columns, rows)
    return (Section(f"{id_}-section", f"What QEMU lacks of a real {cpu}, by operation", (table,)),)


def with_flames(found: Document, flames: Sequence[Flame]) -> Document:
    """The document with its flame graphs, and how they are read."""
    if not flames:
        return found
    held = any(len(one.sides) > 1 for one in flames)
    compared = (
        "Red frames execute more themselves in the other kernel, blue ones less; the mark in front "
        "of the name says the same. "
    )
    what = (
        "Callers are above what they call; a frame is as wide as what was executed in it and below "
        f"it. {compared if held else ''}Frames that have less than {100 * SMALLEST:g} % of a "
        "region are summed up as smaller ones."
    )
    title = "Differential flame graph" if held else "Flame graph"
    section = Section("flames", title, (Prose(what), Flames("flame", tuple(flames))))
    return msgspec.structs.replace(found, sections=(*found.sections, section))
