# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of what CPUs contend for."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from fractions import Fraction

import msgspec

from kdelta.counts.by_key import by_key
from kdelta.counts.conflicts import (
    Conflicts,
    ContendedLine,
    ContestedField,
    CpuAccesses,
    FieldUse,
    sum_by_cpu,
)
from kdelta.infer.conflicts.changes import Contention, RegionChange
from kdelta.infer.conflicts.interrupts import all_sent
from kdelta.measures.conflicts.words import because
from kdelta.report import cells, words
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Block,
    Case,
    Cell,
    Column,
    Document,
    Fold,
    Outcome,
    Prose,
    Section,
    Suite,
    Table,
)
from kdelta.report.kind import ALL
from kdelta.report.names import kernel_name, side_names
from kdelta.report.shortened import shortened
from kdelta.report.stored import Stored
from kdelta.studies.conflicts.model import ConflictSide, ConflictsReport
from kdelta.studies.conflicts.waiting import cost_sections, waiting_sections

FEW = 3
"""So many regions are explained unasked."""
_NAMED = 3
_MOST_LINES = 20
_MOST_REGIONS = 8
"""Of what follows the table of all regions."""
_LEAST_ITERATIONS = 4
_MOST_CALLERS = 6
_LEAST_SENT = Fraction(1, 200)
"""What is less is printed as none."""
_COUNTED = (
    "accesses of kernel code to a line of 64 bytes that one CPU writes and another one accesses; "
    "not time, and not how often the line moved between CPUs"
)
_OUTCOMES = {
    Contention.MORE: Outcome.SLOWER,
    Contention.MORE_OFTEN: Outcome.SLOWER,
    Contention.OTHERS: Outcome.UNKNOWN,
    Contention.UNRESOLVED: Outcome.UNKNOWN,
}
_TONES = {
    Contention.MORE: "slower",
    Contention.MORE_OFTEN: "slower",
    Contention.FEWER: "faster",
    Contention.LESS_OFTEN: "faster",
    Contention.OTHERS: "mixed",
    Contention.UNRESOLVED: "unresolved",
}
_IN_TABLE = {**_TONES, Contention.PLACEMENT: "placement"}


def conflicts_document(stored: Stored) -> Document:
    """Return the document of one kernel's conflicts, or of two kernels'."""
    report = stored.one(ConflictsReport)
    sides = _named(report)
    runs = [(name, one.side) for name, one in zip(sides, report.sides, strict=True)]
    sentences = tuple(_sentences(report, sides))
    return Document(
        title=sentences[0].rstrip("."),
        made=common.made_of(stored),
        answers=(Answer(sentences, tone=_tone(report)),),
        facts=(
            ("workload", f"{report.workload} on {report.cpus} CPUs"),
            ("counted", _COUNTED),
        ),
        sections=(
            Section("regions", "Regions whose CPUs contend for memory", _table(report)),
            *waiting_sections(report),
            *cost_sections(report),
            *_details(report, sides),
        ),
        environment=common.environment(stored, report.machine, runs),
        suites=(common.kernels_suite(runs), *_regions_suite(report)),
        failures=common.failures(runs),
        notes=tuple(_notes(report)),
        warnings=report.warnings,
    )


def conflicts_screen(stored: Stored) -> Document:
    """Return as much of it as a screen holds: regions that contend, or do so otherwise than in the
    other kernel; and of few regions the lines.
    """
    found = conflicts_document(stored)
    if ALL in stored.shown:
        return found
    found = shortened(found, "lines", "rows", _MOST_LINES)
    for section in ("waiting", "costs"):
        found = shortened(found, section, "rows", _MOST_REGIONS)
    report = stored.one(ConflictsReport)
    details = [one for one in found.sections if one.id.startswith("lines")]
    most = stored.shown.get("explain", FEW if len(details) <= FEW else 0)
    quiet = _quiet(report)
    sections = [
        msgspec.structs.replace(one, blocks=tuple(_without(block, quiet) for block in one.blocks))
        if one.id == "regions"
        else msgspec.structs.replace(one, blocks=tuple(_without_folds(one.blocks)))
        for one in found.sections
        if one not in details[most:]
    ]
    more = "All of it: kdelta report --all, or --html FILE."
    if (left := len(details) - most) > 0:
        more = f"The lines of {words.counted(left, 'region')} more: -o REGION, --explain N. {more}"
    return msgspec.structs.replace(
        found,
        facts=(),
        sections=(*sections, Section("more", "", (Prose(more),))),
        environment=(),
    )


def _without_folds(blocks: Iterable[Block]) -> Iterator[Block]:
    """All but lines that are contended for now and then."""
    return (block for block in blocks if not isinstance(block, Fold))


def _quiet(report: ConflictsReport) -> frozenset[str]:
    """The regions that the first sentences count and name."""
    if len(report.sides) > 1:
        same = (one for one in report.changes if one.contention is Contention.SAME)
        return frozenset(one.region for one in same if not (one.left or one.joined))
    return frozenset(one.region for one in report.sides[0].conflicts if not one.steady)


def _without(block: Block, regions: Container[str]) -> Block:
    if not isinstance(block, Table):
        return block
    rows = tuple(row for row in block.rows if row[0].text not in regions)
    if not rows:
        return Prose("No region is left to be shown: none contends, or none does so otherwise.")
    return msgspec.structs.replace(block, rows=rows)


def _named(report: ConflictsReport) -> tuple[str, ...]:
    if len(report.sides) == 1:
        (one,) = report.sides
        return (kernel_name(one.spec, one.release),)
    return side_names(report.sides).names


def _tone(report: ConflictsReport) -> str:
    if len(report.sides) == 1:
        return "same"
    found = Counter(one.contention for one in report.changes)
    tones = {_TONES[one] for one in _TONES if found[one]}
    return "mixed" if len(tones) > 1 else next(iter(tones), "same")


def _sentences(report: ConflictsReport, names: Sequence[str]) -> Iterator[str]:
    where = f"{report.workload} on {report.cpus} CPUs"
    if not all(side.conflicts for side in report.sides):
        yield f"Nothing is known of {where}: no run went well."
    elif len(report.sides) == 1:
        yield from _alone(report.sides[0], names[0], where)
    elif report.same_kernel:
        yield f"Both kernels are {names[0]}: nothing was changed, so nothing is compared."
    else:
        yield from _compared(report.changes, names, where)


def _alone(side: ConflictSide, name: str, where: str) -> Iterator[str]:
    steady = {one.region: len(one.steady) for one in side.conflicts}
    free = [region for region, count in steady.items() if not count]
    busy, each_time = len(steady) - len(free), "of the kernel in each iteration"
    clauses = (
        (busy, "contend", f"for lines {each_time}"),
        (len(free), "contend", "for none" if busy else f"for no line {each_time}"),
    )
    yield f"{name}, {where}: {_of_regions(list(steady), clauses)}."
    if 0 < len(free) < len(steady):
        yield f"Without one: {words.some(free, 6)}."
    named = Counter(
        name for one in side.conflicts for name in dict.fromkeys(line.name for line in one.steady)
    )
    if named:
        most = [f"{name} ({count})" for name, count in named.most_common(_NAMED)]
        yield f"In most regions: {words.listed(most)}."


_CLAUSES = {
    Contention.MORE: ("contend", "for more fields"),
    Contention.FEWER: ("contend", "for fewer"),
    Contention.OTHERS: ("contend", "for others"),
    Contention.MORE_OFTEN: ("write", "the same more often"),
    Contention.LESS_OFTEN: ("write", "the same less often"),
    Contention.SAME: ("are", "the same"),
    Contention.PLACEMENT: ("differ", "in data placement only"),
    Contention.UNRESOLVED: ("are", "unresolved"),
}
_OF_ONE = {"contend": "contends", "write": "writes", "are": "is", "differ": "differs"}


def _of_regions(regions: Sequence[str], clauses: Iterable[tuple[int, str, str]]) -> str:
    """How many regions do what, with the verb of several; without what none does."""
    texts = [
        (f"{count} ", f"{_OF_ONE[verb] if count == 1 else verb} {what}")
        for count, verb, what in clauses
        if count
    ]
    if len(regions) == 1:
        return f"{regions[0]} {texts[0][1]}"
    if len(texts) == 1:
        return f"all {len(regions)} regions {texts[0][1]}"
    return f"of {len(regions)} regions {words.listed([count + text for count, text in texts])}"


def _compared(changes: Sequence[RegionChange], names: Sequence[str], where: str) -> Iterator[str]:
    regions = {word: [one.region for one in changes if one.contention is word] for word in _CLAUSES}
    clauses = [(len(regions[word]), *clause) for word, clause in _CLAUSES.items()]
    what = _of_regions([one.region for one in changes], clauses)
    yield f"{names[1]} against {names[0]}, {where}: {what}."
    for title, word in _NAMED_REGIONS.items():
        if 0 < len(regions[word]) < len(changes):
            yield f"{title}: {words.some(regions[word], 6)}."
    for title, lists in (("New", "added"), ("Gone", "gone")):
        named = Counter(
            name
            for one in changes
            for name in dict.fromkeys(field.place for field in getattr(one, lists))
        )
        if named and len(changes) > 1:
            most = [f"{name} ({count})" for name, count in named.most_common(_NAMED)]
            yield f"{title} in most regions: {words.listed(most)}."


_NAMED_REGIONS = {
    "Data placement only": Contention.PLACEMENT,
    "Unresolved": Contention.UNRESOLVED,
    "The same": Contention.SAME,
}


_CAPTION = "Lines that one CPU writes and another one accesses, each in half of all iterations"


def _table(report: ConflictsReport) -> tuple[Block, ...]:
    columns = _columns_of_one() if len(report.sides) == 1 else _columns_of_two(report)
    rows = _rows_of_one(report.sides[0]) if len(report.sides) == 1 else _rows_of_two(report)
    return (Table("regions-table", _CAPTION, columns, tuple(rows), filtered=True),)


def _columns_of_one() -> tuple[Column, ...]:
    return (
        Column("region", "name"),
        Column("lines", "number"),
        Column("false", "number", "lines of which no byte is shared"),
        Column("accesses", "number", "of all CPUs to these lines, an iteration"),
        Column("locked", "number", "of them by instructions that lock the line"),
        Column("sent", "number", "interrupts that CPUs send each other, an iteration"),
        Column("contended for most"),
        Column(
            "next to it",
            "text",
            "what else each iteration accesses in these lines, most, and by what",
        ),
    )


def _columns_of_two(report: ConflictsReport) -> tuple[Column, ...]:
    base, other = side_names(report.sides).columns
    return (
        Column("region", "name"),
        Column(base, "number", "lines that are contended for in each iteration"),
        Column(other, "number"),
        Column("lines", "word"),
        Column("because"),
    )


def _rows_of_one(side: ConflictSide) -> Iterator[tuple[Cell, ...]]:
    for one in side.conflicts:
        steady = one.steady
        locked = sum(cpu.locked for line in steady for cpu in line.cpus)
        names = list(dict.fromkeys(line.name for line in steady))
        neighbors = sorted(
            (field for line in steady for field in line.fields if field.is_neighbor),
            key=lambda field: (-field.accesses, field.place),
        )
        yield (
            Cell(one.region),
            Cell(str(len(steady)), len(steady)),
            Cell(str(count := sum(not line.is_true for line in steady)), count),
            cells.number(Fraction(sum(line.accesses for line in steady), one.iterations)),
            cells.number(Fraction(locked, one.iterations)),
            cells.number(all_sent(side.sent.get(one.region, {}))),
            Cell(words.some(names, 2) if names else "-"),
            Cell(words.some([_by_whom(field, one.iterations) for field in neighbors], 1) or "-"),
        )


def _by_whom(field: ContestedField, iterations: int) -> str:
    times = cells.number(Fraction(field.accesses, iterations)).text
    return f"{field.place} ({times} by {field.function})"


def _rows_of_two(report: ConflictsReport) -> Iterator[tuple[Cell, ...]]:
    for change in report.changes:
        counts = [
            len(found.steady) if (found := side.of(change.region)) else 0 for side in report.sides
        ]
        yield (
            Cell(change.region),
            *(Cell(str(count), count) for count in counts),
            Cell(change.contention.value, tone=_IN_TABLE.get(change.contention, "same")),
            Cell(because(change)),
        )


def _details(report: ConflictsReport, names: Sequence[str]) -> Iterator[Section]:
    """A section a region: its lines, in the last of the kernels that has it."""
    for region in report.regions:
        folds = tuple(
            block
            for name, side in zip(names, report.sides, strict=True)
            if (found := side.of(region))
            for block in (*_lines(name, found), *_interrupts(name, side, region))
        )
        yield Section(f"lines-{region}", region, folds, detail=True)


def _lines(name: str, found: Conflicts) -> Iterator[Block]:
    rare = [line for line in found.lines if not line.is_steady]
    columns = (
        Column("line", "name"),
        Column("sharing", "word"),
        *(
            Column(f"{what} {letter}", "number")
            for letter in _letters(found.cpus)
            for what in ("reads", "writes")
        ),
        Column("locked", "number", "writes by instructions that lock the line"),
        Column("by"),
    )
    rows = tuple(row for line in found.steady for row in _line_rows(line, found.iterations))
    caption = f"{name}: accesses an iteration; A is the CPU that began the region"
    if rows:
        yield Table(f"lines-{found.region}-{name}", caption, columns, rows)
    else:
        yield Prose(f"{name}: no line is contended for in each iteration.")
    if rare:
        places = list(dict.fromkeys(line.name for line in rare))
        count = sum(line.count for line in rare)
        text = f"Now and then, {words.counted(count, 'line')}: {words.some(places, 8)}."
        yield Fold("contended for now and then", (Prose(text),))
    if found.is_cut:
        yield Prose("The region accesses more memory than is followed: lines may be missing.")


def _interrupts(name: str, side: ConflictSide, region: str) -> Iterator[Block]:
    if senders := side.senders.get(region):
        columns = (
            Column("kind", "name"),
            Column("sent", "number", "an iteration"),
            Column("by", "text", "the nearest caller of what sends, its callers, the system call"),
        )
        rows = tuple(
            (Cell(one.kind), cells.number(one.count), Cell(_path(one.callers)))
            for one in senders
            if one.count >= _LEAST_SENT
        )
        caption = f"{name}: interrupts that measured tasks send to other CPUs"
        yield Table(f"interrupts-{region}-{name}", caption, columns, rows)
    elif sent := side.sent.get(region):
        kinds = ", ".join(f"{kind} {cells.number(n).text}" for kind, n in sent.items())
        yield Prose(
            f"{name}: interrupts to other CPUs, an iteration: {kinds}. By whom: -o {region}."
        )


def _path(callers: Sequence[str]) -> str:
    left_out = len(callers) > _MOST_CALLERS
    shown = (*callers[: _MOST_CALLERS - 1], "...", callers[-1]) if left_out else callers
    return " < ".join(shown)


def _letters(cpus: int) -> tuple[str, ...]:
    """What CPUs are called, the first being the one that began the region."""
    return ("A", "B") if cpus <= len("AB") else ("A", "others")


def _line_rows(line: ContendedLine, iterations: int) -> Iterator[tuple[Cell, ...]]:
    """A line, and each field of it that CPUs do not contend for."""
    several = f" ({line.count} lines)" if line.count > 1 else ""
    sharing = "true" if line.is_true else "placement" if line.is_placed else "false"
    yield _access_row(line.name + several, sharing, line.uses, iterations)
    for one in line.fields:
        if one.is_neighbor:
            uses = [use for use in line.uses if use.place == one.place]
            yield _access_row(f"next to it: {one.place}", "-", uses, iterations)


def _access_row(
    name: str, sharing: str, uses: Sequence[FieldUse], iterations: int
) -> tuple[Cell, ...]:
    cpus = sum_by_cpu([use.cpus for use in uses])
    shown = [cpus[0], sum(cpus[1:], CpuAccesses())]
    figures = [count for one in shown for count in (one.reads, one.writes)]
    return (
        Cell(name),
        Cell(sharing),
        *(cells.number(Fraction(count, iterations)) for count in figures),
        cells.number(Fraction(sum(one.locked for one in cpus), iterations)),
        Cell(_functions(uses)),
    )


def _functions(uses: Iterable[FieldUse]) -> str:
    by_function = by_key((use.function, sum(one.total for one in use.cpus)) for use in uses)
    names = sorted(by_function, key=lambda name: (-sum(by_function[name]), name))
    return words.some(names, _NAMED)


def _regions_suite(report: ConflictsReport) -> tuple[Suite, ...]:
    cases = tuple(_cases(report))
    return (Suite("regions", cases),) if cases else ()


def _cases(report: ConflictsReport) -> Iterator[Case]:
    if len(report.sides) > 1:
        for change in report.changes:
            outcome = _OUTCOMES.get(change.contention, Outcome.OK)
            yield Case(change.region, outcome, change.contention.value, (because(change),))
        return
    for one in report.sides[0].conflicts:
        text = f"{words.counted(len(one.steady), 'line')} contended for in each iteration"
        yield Case(one.region, Outcome.OK, text, tuple(line.name for line in one.steady))


def _notes(report: ConflictsReport) -> Iterator[str]:
    yield (
        "The CPUs take turns, so no access waits for a line: which lines are shared is exact, how "
        "long hardware would wait for them is not known. A lock is found taken where a turn ended "
        "before it was given back: how often that is depends on the turns, not on hardware."
    )
    if report.on and report.on.transfer:
        yield f"How long lines take from CPU to CPU: {report.on.source}."
    elif report.on:
        yield f"How long a line takes from CPU to CPU on {report.on.cpu} is not known."
    found = [one for side in report.sides for one in side.conflicts]
    once = dict.fromkeys(one.region for one in found if one.iterations < _LEAST_ITERATIONS)
    if once:
        yield (
            f"{words.some(list(once), _NAMED)}: of fewer than {_LEAST_ITERATIONS} iterations. What "
            "happens once there cannot be distinguished from what happens each time; "
            "kdelta_iter() of kdelta.h marks iterations."
        )
    if any(not line.fields[0].is_named for one in found for line in one.steady):
        yield (
            "Memory without a name of its own goes by the function that writes it: content of "
            "pages, objects of kmalloc, or what a kernel without BTF or CONFIG_KALLSYMS_ALL does "
            "not describe."
        )
