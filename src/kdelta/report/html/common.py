# SPDX-License-Identifier: GPL-2.0-or-later
"""Parts of pages that every study has: kernels, runs, what failed, and how to make it again."""

from collections.abc import Iterable, Sequence

from kdelta.report.html import words
from kdelta.report.html.model import (
    Block,
    Cell,
    Column,
    Facts,
    Fold,
    Items,
    Prose,
    Section,
    Table,
    Verbatim,
)
from kdelta.report.layout import machine_lines
from kdelta.report.model import Facts as MachineFacts
from kdelta.report.model import ReportedRun, Side, Unlike
from kdelta.report.stored import Stored
from kdelta.spec.identity import short
from kdelta.store.model import moment_text

OK = "ok"


def kernel_fact(side: Side) -> str:
    """A kernel in a line."""
    if side.failure:
        return f"{side.spec}: no kernel: {side.failure}"
    return f"{side.spec} (release {side.release})"


def failures(sides: Iterable[tuple[str, Side]]) -> list[str]:
    """What of these kernels could not be had or run, in a sentence each."""
    found = []
    for who, side in sides:
        if side.failure:
            found.append(f"{who}: there is no kernel: {side.failure}")
        for reported in side.failed:
            run = reported.run
            detail = f": {run.detail}" if run.detail else ""
            found.append(f"{who}, perturbation {run.perturbation}: {run.word}{detail}")
    return found


def failed_runs(sides: Iterable[tuple[str, Side]]) -> tuple[Block, ...]:
    """How the consoles of failed runs ended."""
    return tuple(
        Fold(
            f"{who}, run {one.run.id}: {one.run.word} {one.run.detail}".rstrip(),
            (Verbatim("\n".join(one.console_tail)),),
        )
        for who, side in sides
        for one in side.failed
        if one.console_tail
    )


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
    sides: Sequence[tuple[str, Side]],
    more: Sequence[tuple[str, Sequence[ReportedRun]]] = (),
) -> Section:
    """What it was measured with, and how it is made again."""
    kernels = tuple(
        (who, f"{side.spec}; release {side.release}; identity {side.identity}")
        for who, side in sides
        if not side.failure
    )
    runs = [*((who, side.runs) for who, side in sides), *more]
    blocks: list[Block] = [
        Prose("Run this to make the report again. What the store still has is not run anew:"),
        Verbatim(stored.command),
        Facts(
            (
                *kernels,
                *machine_facts(machine),
                ("made", f"{stored.started_text} UTC by kdelta {stored.version}"),
            )
        ),
    ]
    if any(found for _, found in runs):
        count = sum(len(found) for _, found in runs)
        blocks.append(Fold(words.counted(count, "run"), (runs_table(runs),)))
    blocks += failed_runs(sides)
    return Section("environment", "Environment, and how to make it again", tuple(blocks))


def machine_facts(machine: MachineFacts) -> tuple[tuple[str, str], ...]:
    """The machine and its CPU, as the text has them."""
    facts: list[tuple[str, str]] = []
    for line in machine_lines(machine) if machine else []:
        label, text = line[:9].strip(), line[9:].strip()
        if label:
            facts.append((label, text))
        elif facts:
            facts[-1] = (facts[-1][0], f"{facts[-1][1]} {text}")
    return tuple(facts)


def notes(titled: Sequence[tuple[str, Sequence[str]]]) -> tuple[Section, ...]:
    """Notes and warnings, if there are any."""
    blocks: list[Block] = []
    for title, texts in titled:
        if texts:
            blocks += [Prose(title), Items(tuple(texts))]
    return (Section("notes", "Notes", tuple(blocks)),) if blocks else ()


def unlike_section(cpu: str, unlike: Sequence[Unlike], id_: str = "unlike") -> tuple[Section, ...]:
    """Which paths were not those of the CPU, and whose figures hang on them."""
    if not unlike:
        return ()
    rows = tuple(
        (Cell(one.text), Cell(", ".join(one.kernels)), Cell(", ".join(one.regions) or "none"))
        for one in unlike
    )
    columns = (Column("what", "name"), Column("kernels"), Column("operations that hang on it"))
    table = Table(id_, f"Not as on a real {cpu}; what hangs on it is not representative",
                  columns, rows)  # fmt: skip
    return (Section(f"{id_}-section", f"Not as on a real {cpu}", (table,)),)


def as_text(text: str) -> Section:
    """The report that can be pasted into a mail."""
    return Section(
        "text", "The same as text", (Fold("The report as a mail has it", (Verbatim(text),)),)
    )


def identity_of(side: Side) -> str:
    """A kernel's identity as it is shown."""
    return short(side.identity)
