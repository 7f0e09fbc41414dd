# SPDX-License-Identifier: GPL-2.0-or-later
"""The outline of a comparison, and of a gate, which decides by one."""

from collections.abc import Iterator, Sequence

import msgspec

from kdelta.infer.effects import OPEN, OperationEffect, Word
from kdelta.infer.gate import Exit, Judged
from kdelta.infer.placement_model import PlacementEffect
from kdelta.report import figures
from kdelta.report.comparison import (
    BACKGROUND_NAMES,
    TRADED,
    changed_most,
    groups,
)
from kdelta.report.cycles import cpu_line, cycle_reason, cycle_words, in_per_cent, path_words
from kdelta.report.gate import gate_line
from kdelta.report.gate_model import GateReport
from kdelta.report.model import Compared, CompareReport, CycleReport
from kdelta.report.outline import Case, Outcome, Outline, Suite, Table
from kdelta.report.outlines import parts
from kdelta.report.stored import Stored
from kdelta.report.text import COUNTED

OUTCOMES = {
    Word.SLOWER: Outcome.SLOWER,
    Word.FASTER: Outcome.OK,
    Word.SAME: Outcome.OK,
    Word.NOT_SLOWER: Outcome.OK,
    Word.PLACEMENT_ONLY: Outcome.OK,
    **dict.fromkeys(OPEN, Outcome.UNKNOWN),
}
"""What a verdict's word means to somebody who waits for yes or no."""

_ANSWERS = {
    Exit.NOT_SLOWER: Outcome.OK,
    Exit.SLOWER: Outcome.SLOWER,
    Exit.CANNOT_TELL: Outcome.UNKNOWN,
}

_OPTIONS = 40
"""So many options are listed; of more, it is only told how many."""

_EXPLAINED = 5
_FUNCTIONS = 10


class _Pair(msgspec.Struct, frozen=True):
    """One kernel against the base, on one machine. `who`: which of the others, if there are more;
    `alone`: there is no other pair.
    """

    report: CompareReport
    compared: Compared
    who: str
    alone: bool

    @property
    def label(self) -> str:
        """What against what."""
        other, base = (parts.brief_name(one) for one in (self.compared.side, self.report.base))
        if other == base:
            other, base = self.compared.side.spec, self.report.base.spec
        return f"{other} against {base}{self.on_cpu}"

    @property
    def on_cpu(self) -> str:
        """On which CPU, if on any."""
        return f" on {self.report.cpu.name}" if self.report.cpu else ""

    @property
    def place(self) -> str:
        """Where a table stands among those of other pairs."""
        return "" if self.alone else f"{self.label}: "


def _pairs(reports: Sequence[CompareReport]) -> list[_Pair]:
    alone = len(reports) == 1 and len(reports[0].others) == 1
    return [
        _Pair(report, one, f"other {number}: " if len(report.others) > 1 else "", alone)
        for report in reports
        for number, one in enumerate(report.others, start=1)
    ]


def compare_outline(stored: Stored) -> Outline:
    """The outline of a comparison, on one machine or several."""
    return _outline(stored, stored.of(CompareReport))


def gate_outline(stored: Stored) -> Outline:
    """The outline of a gate: its answer first, and its verdicts as the cases, since they know of
    the margin.
    """
    report = stored.one(GateReport)
    answer = gate_line(report.decision, report.judged).strip()
    text = f"The gate says: {answer} (exit code {int(report.decision.exit)})."
    cases = (
        Case("answer", _ANSWERS[report.decision.exit], answer),
        *(_judged_case(one) for one in report.judged),
    )
    if not report.compared:
        return Outline(answer, (text,), (Suite("gate", cases),), notes=report.notes)
    found = _outline(stored, report.compared)
    kept = [one for one in found.suites if one.name == "kernels"]
    return msgspec.structs.replace(
        found,
        subject=f"{report.compared[0].workload}: {answer}",
        short=(text, *found.short),
        suites=(*kept, Suite("gate", cases)),
        notes=(*report.notes, *found.notes),
    )


def _judged_case(one: Judged) -> Case:
    reason = f": {one.reason}" if one.reason else ""
    told = f" ({one.region})" if one.region != one.id else ""
    outcome = Outcome.OK if one.is_bounded else OUTCOMES[one.word]
    return Case(one.id, outcome, f"{one.words}{reason}{told}")


def _outline(stored: Stored, reports: Sequence[CompareReport]) -> Outline:
    pairs = _pairs(reports)
    sides = _sides(reports)
    return Outline(
        subject=_subject(pairs),
        short=tuple(text for pair in pairs for text in _short(pair)),
        suites=(
            parts.kernels_suite(sides),
            *(suite for pair in pairs for suite in _suites(pair)),
        ),
        tables=tuple(table for pair in pairs for table in _tables(pair, stored)),
        failures=parts.failures_of(sides),
        facts=tuple(dict(_facts(reports, sides)).items()),
        notes=tuple(dict.fromkeys(note for pair in pairs for note in _notes(pair))),
        warnings=_warnings(reports),
    )


def _sides(reports: Sequence[CompareReport]) -> parts.Sides:
    found = []
    for report in reports:
        on = f" on {report.cpu.name}" if report.cpu and len(reports) > 1 else ""
        found.append((f"base{on}", report.base))
        for number, compared in enumerate(report.others):
            word = "other" if len(report.others) == 1 else f"other {number + 1}"
            found.append((f"{word}{on}", compared.side))
            for more in compared.more:
                for who, runs in (("base", more.base), (word, more.other)):
                    side = report.base if who == "base" else compared.side
                    again = msgspec.structs.replace(side, runs=runs, failure="")
                    if again.failed:
                        found.append((f"{who}{on}, {more.operation} by itself", again))
    return found


def _subject(pairs: Sequence[_Pair]) -> str:
    words = parts.tallied(_words(pairs))
    if len(pairs) == 1:
        text = words or "nothing to compare"
        return f"{pairs[0].report.workload}: {text}: {pairs[0].label}"
    return f"{pairs[0].report.workload}: {len(pairs)} comparisons: {words or 'nothing to compare'}"


def _words(pairs: Sequence[_Pair]) -> list[Word]:
    return [one.verdict.word for pair in pairs for one in pair.compared.effects.operations]


def _short(pair: _Pair) -> Iterator[str]:
    operations = pair.compared.effects.operations
    for who, side in (("base", pair.report.base), ("other", pair.compared.side)):
        if side.failure:
            yield f"{pair.label}: there is no kernel of {who}: {side.failure.partition(chr(10))[0]}"
    if all(one.costs is None for one in operations):
        yield f"{pair.label}: nothing to compare, no operation succeeded on both sides."
        return
    text = f"{pair.label}: of {parts.counted(len(operations), 'operation')}, by instructions, "
    text += parts.tallied(one.verdict.word for one in operations)
    changed = changed_most(operations)
    for word in (Word.SLOWER, Word.FASTER):
        most = [_sized(one) for one in changed if one.verdict.word is word][: parts.NAMED]
        if most:
            text += f"; {word} by most: {', '.join(most)}"
    yield f"{text}."
    effects = pair.compared.cycles.effects if pair.compared.cycles else ()
    if effects and pair.report.cpu:
        tally = parts.tallied(one.verdict.word for one in effects)
        named = [
            f"{one.region} {in_per_cent(one.relative)}"
            for one in effects
            if one.verdict.word is Word.SLOWER
        ]
        more = f"; slower: {', '.join(named[: parts.NAMED])}" if named else ""
        yield f"Model cycles on {pair.report.cpu.name}: {tally}{more}."


def _sized(operation: OperationEffect) -> str:
    part = operation.costs.insns.percent if operation.costs else None
    return f"{operation.name} {figures.percent(part)}"


def _suites(pair: _Pair) -> Iterator[Suite]:
    cases = tuple(_path_case(one) for one in pair.compared.effects.operations)
    if cases:
        yield Suite(f"{pair.who}path{pair.on_cpu}", cases)
    cycles = pair.compared.cycles
    if cycles and (found := tuple(_cycle_cases(cycles))):
        yield Suite(f"{pair.who}model cycles{pair.on_cpu}", found)


def _path_case(operation: OperationEffect) -> Case:
    costs = operation.costs
    words = path_words(operation.verdict, costs.insns.percent if costs else None)
    lines: tuple[str, ...] = ()
    if costs:
        base, other, diff = parts.sides_of(costs.insns)
        spread = figures.spread(costs.insns.effect)
        runs = f"n {costs.insns.effect.n}"
        lines = (f"{base} -> {other} instructions an iteration, {diff}, {spread}, {runs}",)
    return Case(operation.name, OUTCOMES[operation.verdict.word], words, (*lines, *operation.notes))


def _cycle_cases(cycles: CycleReport) -> Iterator[Case]:
    for effect in cycles.effects:
        lines = tuple(
            f"{name} {left} -> {right}" for name, left, right in _misses(effect) if (left or right)
        )
        yield Case(effect.region, OUTCOMES[effect.verdict.word], cycle_words(effect), lines)
    for one in cycles.cut:
        if one.verdict:
            words = f"{one.verdict.word}: {cycle_reason(one.verdict)}"
            yield Case(one.name, OUTCOMES[one.verdict.word], words)


def _misses(effect: PlacementEffect) -> Iterator[tuple[str, str, str]]:
    """Model cycles with misses hidden and exposed, and misses: the means of both ensembles."""
    rows = {"model cycles, misses hidden": effect.hidden, "misses exposed": effect.exposed}
    rows |= {f"{kind} misses": found for kind, found in (effect.misses | effect.data).items()}
    for name, found in rows.items():
        left, right = (f"{side.mean:.6g}" for side in (found.base, found.other))
        yield name, left, right


def _tables(pair: _Pair, stored: Stored) -> Iterator[Table]:
    effects = pair.compared.effects
    yield from _path_tables(pair)
    if effects.background:
        yield Table(
            f"{pair.place}interrupts and other tasks, instructions a virtual second",
            ("who", "base", "other", "diff", "%", "spread"),
            tuple(
                (
                    BACKGROUND_NAMES[row.context],
                    *parts.sides_of(row.rate),
                    figures.percent(row.rate.percent),
                    figures.spread(row.rate.effect),
                )
                for row in effects.background
            ),
        )
    yield from _cycle_tables(pair)
    limit = stored.shown.get("functions", _FUNCTIONS)
    for operation in changed_most(effects.operations)[: stored.shown.get("explain", _EXPLAINED)]:
        if operation.costs:
            table = parts.functions_table(
                operation.name,
                "instructions an iteration",
                operation.costs.insns,
                operation.functions,
                limit,
            )
            if table:
                yield table
    if pair.compared.config and len(pair.compared.config) <= _OPTIONS:
        yield Table(
            f"{pair.place}options that differ between the configs",
            ("option", "base", "other"),
            tuple((one.option, one.base, one.other) for one in pair.compared.config),
            folded=True,
        )


def _path_tables(pair: _Pair) -> Iterator[Table]:
    """What is not the same, and folded what is."""
    rows: dict[bool, list[tuple[str, ...]]] = {False: [], True: []}
    notes: dict[str, None] = {}
    for _, operations in groups(pair.compared.effects.operations):
        for one in operations:
            rows[one.verdict.word is Word.SAME].append(_row(one))
            if one.verdict.word is Word.MIXED:
                notes["mixed: " + TRADED] = None
            elif one.verdict.word in OPEN and one.verdict.reason:
                notes[f"{one.name}: {one.verdict.reason}"] = None
    heads = ("operation", "verdict", "base", "other", "diff", "%", "spread")
    title = f"{pair.place}instructions an iteration"
    if rows[False]:
        note = "; ".join(notes)
        name = f"{title}, what is not the same"
        yield Table(name, heads, tuple(rows[False]), note=note, groups=True)
    if rows[True]:
        name = f"{title}, what is the same"
        yield Table(name, heads, tuple(rows[True]), folded=True, groups=True)


def _row(one: OperationEffect) -> tuple[str, ...]:
    word = str(one.verdict.word)
    if one.costs is None:
        shown = [
            "-" if side is None else parts.plain(figures.scaled(side.value))
            for side in (one.base, one.other)
        ]
        return one.name, word, *shown, "", "", ""
    insns = one.costs.insns
    percent, spread = figures.percent(insns.percent), figures.spread(insns.effect)
    return one.name, word, *parts.sides_of(insns), percent, spread


def _cycle_tables(pair: _Pair) -> Iterator[Table]:
    cycles, cpu = pair.compared.cycles, pair.report.cpu
    if not cycles or not cpu or not cycles.effects:
        return
    rows = [
        (
            one.region,
            str(one.verdict.word),
            in_per_cent(one.relative),
            in_per_cent(one.shipped.relative),
            ", ".join(
                f"{kind} {one.misses[kind].base.mean:.4g} -> {one.misses[kind].other.mean:.4g}"
                for kind in one.misses
                if one.misses[kind].base.most or one.misses[kind].other.most
            ),
        )
        for one in sorted(cycles.effects, key=lambda one: parts.WORDS.index(one.verdict.word))
    ]
    layouts = " and ".join(
        map(str, sorted({count for one in cycles.effects for count in one.layouts}))
    )
    yield Table(
        f"{pair.place}model cycles an iteration",
        ("operation", "verdict", "effect", "as shipped", "misses"),
        tuple(rows),
        groups=True,
        note=f"Of {layouts} random layouts of each kernel: by how much the other costs more, from "
        "misses hidden and cheap to exposed and dear; as shipped: in the layouts that the linker "
        "made; misses: the means over the layouts.",
    )


def _facts(reports: Sequence[CompareReport], sides: parts.Sides) -> Iterator[tuple[str, str]]:
    first = reports[0]
    yield "workload", first.workload
    yield from parts.kernel_facts([one for one in sides if " by itself" not in one[0]])
    for report in reports:
        on = f" for {report.cpu.name}" if report.cpu and len(reports) > 1 else ""
        for name, text in parts.lab_facts(report.machine):
            yield f"{name}{on}", text
        if report.cpu:
            yield f"priced{on}", cpu_line(report.cpu)
    runs = sorted({len(side.runs) for _, side in sides})
    shaken = "perturbed by boot, seed, memory, phase and warm-up"
    yield "runs", f"{' and '.join(map(str, runs))} a kernel, {shaken}"
    yield "counted", COUNTED


def _notes(pair: _Pair) -> Iterator[str]:
    cycles, cpu = pair.compared.cycles, pair.report.cpu
    for more in pair.compared.more:
        count = max(len(more.base), len(more.other))
        yield f"{more.operation}: judged on {count} runs by itself, as fewer may differ by chance"
    for operation in pair.compared.effects.operations:
        if operation.verdict.reason:
            yield f"{operation.name} is {operation.verdict.word}: {operation.verdict.reason}"
    if len(pair.compared.config or ()) > _OPTIONS:
        yield f"{pair.place}{len(pair.compared.config or ())} options differ between the configs"
    if not cycles or not cpu:
        return
    for effect in cycles.effects:
        if effect.verdict.reason:
            word = effect.verdict.word
            yield f"{effect.region} on {cpu.name} is {word}: {cycle_reason(effect.verdict)}"
    yield from cycles.notes
    for one in cycles.unlike:
        hangs = f"; it bears on {', '.join(one.regions)}" if one.regions else ""
        yield f"not as on a real {cpu.name}: {' and '.join(one.kernels)}: {one.text}{hangs}"


def _warnings(reports: Sequence[CompareReport]) -> tuple[str, ...]:
    found = [
        text
        for report in reports
        for warnings in (report.warnings, *(one.effects.warnings for one in report.others))
        for text in warnings
    ]
    return tuple(dict.fromkeys(found))
