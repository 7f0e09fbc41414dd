# SPDX-License-Identifier: GPL-2.0-or-later
"""The document of a comparison: the verdict, the effects, and which functions did it."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kdelta.infer.effects.effects import BackgroundEffect, OperationEffect, Word
from kdelta.measures.cycles.words import OnCPU, cpus_lines, path_words
from kdelta.report import cells, figures, words
from kdelta.report import parts as common
from kdelta.report.document import (
    Answer,
    Block,
    Case,
    Cell,
    Chart,
    Charts,
    Chip,
    Column,
    Document,
    Fold,
    Point,
    Prose,
    Section,
    Suite,
    Table,
    Verbatim,
    retitled,
)
from kdelta.report.effects import effects_chart
from kdelta.report.measured import placements_in
from kdelta.report.model import KernelRuns
from kdelta.report.stored import Stored
from kdelta.report.words import TONES
from kdelta.studies.compare import functions, packets
from kdelta.studies.compare.answer import (
    Pair,
    heading,
    least_of,
    like_name,
    pairs_of,
    path_text,
    tally,
)
from kdelta.studies.compare.causes import terms_of
from kdelta.studies.compare.columns import all_columns, operations_table
from kdelta.studies.compare.model import Compared, CompareReport, MoreRuns, in_order, report_groups
from kdelta.studies.compare.variants import variants_section

_PATH = (
    "Path: instructions an iteration, other less base, with the interval over perturbed runs. Left "
    "of zero the other kernel executes fewer."
)
"""What the path's chart shows."""


def compare_document(
    stored: Stored, reports: Sequence[CompareReport], most: int = functions.MOST
) -> Document:
    """Return the document of a comparison. most: how many functions of an operation are named."""
    least = least_of(stored)
    found = pairs_of(reports, least)
    answers = tuple(answer for pair in found for answer in answers_of(pair))
    sections = [
        retitled(one, dict(zip(("base", "other"), pair.names.columns, strict=True)))
        for pair in found
        for one in sections_of(pair, most)
    ]
    several = [report for report in reports if len(report.others) > 1]
    sections[:0] = [
        variants_section(pairs_of([report], least), f"-{at}")
        for at, report in enumerate(several, start=1)
    ]
    if lines := cpus_lines(_by_cpu(reports)):
        shown = Verbatim("\n".join(line.rstrip() for line in lines), wide=True)
        sections.append(Section("cpus", "Kernels by CPUs", (shown,)))
    sides = _all_sides(reports)
    return Document(
        title=_title(found),
        heading=heading(reports),
        made=common.made_of(stored),
        notices=tuple(_notices(reports, found)),
        answers=answers,
        facts=facts_of(reports),
        sections=tuple(sections),
        environment=environment_of(stored, reports),
        suites=(
            common.kernels_suite(sides),
            *(suite for pair in found for suite in _suites(pair)),
        ),
        failures=common.failures(sides),
        notes=(
            *_spec_notes(_sides(reports[0]), lost=False),
            *(note for pair in found for note in _notes(pair)),
        ),
        warnings=(
            *_spec_notes(_sides(reports[0]), lost=True),
            *(
                text
                for report in reports
                for warnings in (report.warnings, *(one.effects.warnings for one in report.others))
                for text in warnings
            ),
        ),
    )


def _notices(reports: Sequence[CompareReport], found: Sequence[Pair]) -> Iterator[str]:
    """Yield what may make the kernels' work another one."""
    groups = dict.fromkeys(map(report_groups, reports))
    yield from (f"Control groups: {one}." for one in groups if one)
    for pair in found:
        if output := pair.compared.output:
            yield (
                f"The program's output differs, so it may not have done the same work: {output} "
                f"under {pair.compared.side.release}."
            )


def _by_cpu(reports: Sequence[CompareReport]) -> list[OnCPU]:
    return [(one.cpu, [placements_in(each.measured) for each in one.others]) for one in reports]


def _title(found: Sequence[Pair]) -> str:
    """Return the answer in some words: those of its first sentence."""
    counts: Counter[str] = Counter()
    for pair in found:
        counts.update(tally(pair))
    text = ", ".join(f"{count} {word}" for word, count in counts.items()) or "nothing to compare"
    workload = found[0].report.workload
    if len(found) > 1:
        return f"{workload}: {len(found)} comparisons: {text}"
    return f"{workload}: {text}: {found[0].title}{found[0].on_cpu}"


def facts_of(reports: Sequence[CompareReport]) -> tuple[tuple[str, str], ...]:
    """Return what was compared: names and values."""
    first = reports[0]
    facts = [
        (who if name == who else f"{who}, {name}", common.kernel_fact(side))
        for (who, side), name in zip(_sides(first), first.names.columns, strict=True)
    ]
    facts.append(("workload", first.workload))
    if cpus := [report.cpu.title for report in reports if report.cpu]:
        facts.append(("CPU", ", ".join(cpus)))
    elif like := first.machine.get("cpu_like"):
        facts.append(("CPU", f"{like}, since none was named"))
    sides = [side for report in reports for _, side in _sides(report)]
    counts = sorted({len(side.runs) for side in sides})
    runs = f"{' and '.join(map(str, counts))} a kernel, perturbed by {words.PERTURBED}"
    if stored := sum(run.from_store for side in sides for run in side.runs):
        every = sum(len(side.runs) for side in sides)
        runs += f"; {stored} of {every} answered from the store (--rerun reruns them)"
    return (*facts, ("runs", runs), ("counted", words.COUNTED))


def answers_of(pair: Pair) -> tuple[Answer, ...]:
    """Return what is known of the path, and by other measures."""
    operations = pair.operations
    if not any(one.costs for one in operations):
        text = "Nothing can be compared: no operation succeeded on both sides."
        return (Answer((text,), about=pair.about, tone="unresolved"),)
    found = tally(pair)
    path = Answer(
        (path_text(pair),),
        tuple(Chip(word, count, TONES.get(word, "same")) for word, count in found.items()),
        f"instructions executed{f', {pair.about}' if pair.about else ''}",
        words.tone_of(Counter({word: found.get(word, 0) for word in Word})),
    )
    measured = (form.answers(found, pair.about) for found, form in pair.measured)
    return (path, *itertools.chain.from_iterable(measured))


def sections_of(pair: Pair, most: int) -> Iterator[Section]:
    """Yield the sections of one pair. most: how many functions of an operation are named."""
    compared = pair.compared
    operations = pair.operations
    if not any(one.costs for one in operations):
        return
    yield Section(
        f"effects{pair.mark}",
        pair.headed("Effects"),
        _effects(pair),
    )
    yield Section(f"operations{pair.mark}", pair.headed("Operations"), tuple(_tables(pair)))
    yield from packets.sections(compared, pair.report.cpu, pair.about, pair.mark)
    for found, form in pair.measured:
        yield from form.sections(found, pair.about, pair.mark, pair.report.cpu)
    like = pair.report.cpu.name if pair.report.cpu else like_name(pair.report)
    yield from common.unlike_section(like, compared.mismatches, f"mismatches{pair.mark}")
    yield from common.gains_section(like, compared.gains, f"gains{pair.mark}")
    folds = functions.folds(in_order(operations), pair.mark, most)
    folds += functions.background_folds(compared.effects.background, pair.mark, most)
    if folds:
        lead = Prose(
            "Which functions account for the difference, in instructions an iteration and in per "
            "cent of the function's own. The rows add up to the total."
        )
        blocks: tuple[Block, ...] = (lead, *folds)
        yield Section(f"functions{pair.mark}", pair.headed("Functions"), blocks, detail=True)
    yield from functions.config_sections(compared, pair.headed("How the configs differ"), pair.mark)


def _effects(pair: Pair) -> tuple[Block, ...]:
    """The charts of effects, side by side."""
    drawn = [*_path_chart(pair)]
    names = [one.name for one in in_order(pair.operations)]
    for found, form in pair.measured:
        drawn += form.charts(found, names)
    return (Charts(tuple(drawn)),) if drawn else ()


def _path_chart(pair: Pair) -> Iterator[Chart]:
    """Draw the path's effects, most of which have no interval to be seen: they are exact."""
    points = []
    for one in in_order(pair.operations):
        if one.costs and (base := one.costs.insns.base.value):
            effect = one.costs.insns.effect
            ends = [float(100 * end / base) for end in (effect.value, effect.low, effect.high)]
            points.append(Point(one.name, ends[0], ends[1], ends[2], TONES[one.verdict.word]))
    said = (f"{point.name} {point.value:+.2f} %" for point in points)
    return effects_chart(points, said, "the path", _PATH, "instructions")


def _tables(pair: Pair) -> Iterator[Block]:
    """The table of operations, that of what others did meanwhile, and what else is counted."""
    yield from _operations(pair)
    background = pair.compared.effects.background
    if background:
        yield _background_table(background, pair.mark)
    yield from _bytes_table(pair)
    yield from functions.kinds_folds(in_order(pair.operations), pair.mark)


def _bytes_table(pair: Pair) -> Iterator[Table]:
    """What a byte costs, where an iteration works on a fixed number of them."""
    sizes = pair.report.bytes_worked_on
    rows = tuple(
        (
            Cell(one.name),
            *cells.between(*(end.value / sizes[one.name] for end in (insns.base, insns.other))),
        )
        for one in in_order(pair.operations)
        if one.costs and one.name in sizes
        for insns in (one.costs.insns,)
    )
    if rows:
        titles = ("base", "other", "diff")
        columns = (Column("operation", "name"), *(Column(title, "number") for title in titles))
        yield Table(f"bytes{pair.mark}", "Instructions a byte", columns, rows)


def _operations(pair: Pair) -> Iterator[Block]:
    """The operations by verdict; those that are the same in all that was judged are folded."""
    ordered = in_order(pair.operations)
    same = [one for one in ordered if _is_same(one, pair)]
    caption = "Instructions an iteration of the measured tasks' own work"
    for found, _ in pair.joined:
        caption += f", and {found.measure}{found.where}" if found.placements else ""
    columns = all_columns(pair)
    if others := [one for one in ordered if one not in same]:
        yield operations_table(f"ops{pair.mark}", caption, others, columns, filtered=True)
    if same:
        text = f"{words.counted(len(same), 'operation is', 'operations are')} the same"
        table = operations_table(f"same{pair.mark}", caption, same, columns, filtered=True)
        yield Fold(text, (table,))


def _is_same(one: OperationEffect, pair: Pair) -> bool:
    judged = (effect for found, _ in pair.joined for effect in found.effects if effect.base)
    others = [effect.word for effect in judged if effect.region == one.name]
    return all(word is Word.SAME for word in (one.verdict.word, *others))


def _background_table(background: Sequence[BackgroundEffect], mark: str) -> Table:
    columns = (
        Column("who", "name"),
        Column("verdict", "word"),
        *(Column(title, "number") for title in ("base", "other", "diff", "%", "spread")),
    )
    rows = tuple(
        (
            Cell(words.OTHERS[one.context]),
            # What others did is no finding on the operations: without their colours.
            msgspec.structs.replace(cells.verdict(one.verdict.word), tone="same"),
            *cells.effect(one.rate),
        )
        for one in background
    )
    caption = "What others did meanwhile, in instructions a virtual second"
    return Table(f"background{mark}", caption, columns, rows)


def _suites(pair: Pair) -> Iterator[Suite]:
    if cases := tuple(map(_path_case, pair.operations)):
        yield Suite(f"{pair.who}path{pair.on_cpu}", cases)
    for found, form in pair.measured:
        yield from form.suites(found, pair.who)


def _path_case(one: OperationEffect) -> Case:
    costs, lines = one.costs, one.notes
    if costs:
        base, other, diff = (cell.text for cell in cells.sides(costs.insns))
        effect = costs.insns.effect
        spread = f"{figures.spread(effect)}, n {effect.n}"
        lines = (f"{base} -> {other} instructions an iteration, {diff}, {spread}", *lines)
    verdict = path_words(one.verdict, costs.insns.percent if costs else None)
    return Case(one.name, words.OUTCOMES[one.verdict.word], verdict, lines)


def _spec_notes(sides: Iterable[tuple[str, KernelRuns]], *, lost: bool) -> Iterator[str]:
    """What came of the changes of kernels."""
    for who, side in sides:
        yield from (f"{who}: {note.text}" for note in side.notes if note.lost == lost)


def _notes(pair: Pair) -> Iterator[str]:
    for names, one in _further(pair.compared):
        yield (
            f"{max(len(one.base), len(one.other))} more runs on each kernel, since fewer may "
            f"differ so by chance: {', '.join(names)}"
        )
    for operation in pair.operations:
        if operation.verdict.reason:
            yield f"{operation.name} is {operation.verdict.word}: {operation.verdict.reason}"
        elif operation.verdict.word is Word.MIXED:
            of = f": {terms_of(operation.costs)}" if operation.costs else ""
            yield f"{operation.name} is mixed{of}; what these cost may be more or less in sum"
        yield from (f"{operation.name}: {text}" for text in operation.notes)
    yield from (note for one in pair.compared.measured for note in one.notes)


def _further(compared: Compared) -> list[tuple[tuple[str, ...], MoreRuns]]:
    """Return the further runs, each time with the operations that share them."""
    found: dict[tuple[str, ...], list[MoreRuns]] = {}
    for one in compared.more:
        found.setdefault(tuple(run.run.id for run in (*one.base, *one.other)), []).append(one)
    return [(tuple(one.operation for one in same), same[0]) for same in found.values()]


def _all_sides(reports: Sequence[CompareReport]) -> list[tuple[str, KernelRuns]]:
    """The kernels on every CPU, and the further runs that failed."""
    found = []
    for report in reports:
        on = f" on {report.cpu.name}" if report.cpu and len(reports) > 1 else ""
        found += [(f"{who}{on}", side) for who, side in _sides(report)]
        for (who, side), compared in zip(_sides(report)[1:], report.others, strict=True):
            for names, more in _further(compared):
                for word, kernel, runs in (
                    ("base", report.base, more.base),
                    (who, side, more.other),
                ):
                    again = msgspec.structs.replace(kernel, runs=runs, failure="")
                    if again.failed:
                        found.append((f"{word}{on}, {', '.join(names)} alone", again))
    return found


def _sides(report: CompareReport) -> list[tuple[str, KernelRuns]]:
    alone = len(report.others) == 1
    others = [
        ("other" if alone else f"other {number + 1}", one.side)
        for number, one in enumerate(report.others)
    ]
    return [("base", report.base), *others]


def environment_of(stored: Stored, reports: Sequence[CompareReport]) -> tuple[Section, ...]:
    """The machine, and all runs, those of other CPUs too."""
    first, *rest = reports
    more = [(f"{who}, {report.cpu.name if report.cpu else ''}", side.runs)
            for report in rest for who, side in _sides(report)]  # fmt: skip
    for report in reports:
        for other in report.others:
            for names, one in _further(other):
                more += [
                    (f"base, {', '.join(names)}", one.base),
                    (f"other, {', '.join(names)}", one.other),
                ]
    return common.environment(stored, first.machine, _sides(first), more)
