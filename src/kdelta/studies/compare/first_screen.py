# SPDX-License-Identifier: GPL-2.0-or-later
"""The first screen of a comparison: the answer in sentences, then what changed, a line each."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.infer.effects.effects import FIRM, OPEN, Costs, OperationEffect, Word
from kdelta.report import figures
from kdelta.report.cycles import cpus_lines, in_per_cent
from kdelta.report.groups import report_groups
from kdelta.report.lines import WIDTH, failed_lines, finished, wrapped
from kdelta.report.model import CompareReport
from kdelta.studies.compare.answer import (
    LEAST,
    LISTED,
    Pair,
    cause_of,
    change,
    pair_of,
    path_text,
    percent,
)
from kdelta.studies.compare.tables import account_lines

LINES = 50
"""Of one screen."""

_NAMED = 3
_FUNCTIONS = 10
_LEAST_ROWS = 3
_FEW = 5
_CERTAINTY = 7
_LONGEST_NAME = 24
_DEPENDS = (Word.NOT_STEADY, Word.DEPENDS_ON_STATE, Word.DEPENDS_ON_SPEED)


def first_screen(reports: Sequence[CompareReport], least: Fraction = LEAST) -> str:
    """Return the first screen of a comparison: at most LINES lines where there is one pair of
    kernels and nothing failed. least: see LEAST.
    """
    pairs = [pair_of(report, other, least) for report in reports for other in report.others]
    footer = _footer(pairs)
    room = max(1, LINES - len(footer)) // len(pairs)
    lines: list[str] = []
    for pair in pairs:
        lines += [""] if lines else []
        lines += _screen(pair, room)
    return finished([*lines, *cpus_lines(reports), *footer])


def _screen(pair: Pair, room: int) -> list[str]:
    head = [*_answer(pair), *_failures(pair)]
    shown = _shown(pair)
    tail = [*_lists(pair, shown), *_cycles(pair), *_warnings(pair)]
    left = room - len(head) - len(tail) - 2  # a blank line and the heading
    table = _table(pair, shown, left)
    lines = [*head, *table, *tail]
    return [*lines, *_accounts(pair, room - len(lines))]


def _shown(pair: Pair) -> list[list[OperationEffect]]:
    """Which operations have a row: what is slower, what is faster, and what changed by less where
    that is little; without these all operations.
    """
    rows = pair.of(Word.SLOWER), pair.of(Word.FASTER)
    shown = [[one for one in found if pair.matters(one)] for found in rows]
    if not any(shown):
        return [[one for one in pair.of(*Word) if one.costs]]
    others = [one for one in pair.of(Word.SAME, *FIRM) if not pair.matters(one)]
    return [*shown, others] if len(others) <= _FEW else shown


def _answer(pair: Pair) -> list[str]:
    """What a reader wants to know, in sentences."""
    operations = pair.compared.effects.operations
    base, other = pair.names
    if not any(one.costs for one in operations):
        text = f"{other} against {base}: nothing to compare, no operation succeeded on both sides."
        return [*wrapped(text, "", ""), *_specs(pair)]
    text = path_text(pair) + _cycles_sentence(pair)
    groups = report_groups(pair.report)
    # Before the first figure, since it bears on all of them.
    lines = wrapped(f"Control groups: {groups}.", "", "") if groups else []
    return [*lines, *wrapped(text, "", ""), *_specs(pair)]


def _cycles_sentence(pair: Pair) -> str:
    """How many operations there are of each kind by their model cycles."""
    cycles = pair.compared.cycles
    found = Counter(one.verdict.word for one in cycles.effects) if cycles else Counter[Word]()
    why = {Word.PLACEMENT_ONLY: " (where the linker put the code, not what it does)"}
    parts = [f"{found[word]} {word}{why.get(word, '')}" for word in Word if found[word]]
    return f" In model cycles: {', '.join(parts)}." if parts else ""


def _specs(pair: Pair) -> list[str]:
    """Which kernels they are, where their versions are alike."""
    if pair.names[0] != "base":
        return []
    sides = pair.report.base, pair.compared.side
    return [
        line
        for name, side in zip(pair.names, sides, strict=True)
        for line in wrapped(side.spec, f"  {name:<5} ", "        ")
    ]


def _failures(pair: Pair) -> list[str]:
    lines = []
    for who, side in zip(pair.names, (pair.report.base, pair.compared.side), strict=True):
        if side.failure:
            lines += wrapped(f"{who}: no kernel: {side.failure}", "  ", "    ")
        lines += failed_lines(who, side.failed)
    for more in pair.compared.more:
        for who, runs in zip(pair.names, (more.base, more.other), strict=True):
            failed = [run for run in runs if not run.ok]
            lines += failed_lines(f"{who}, {more.operation} alone", failed)
    return ["", "failed runs", *lines] if lines else []


def _table(pair: Pair, shown: Sequence[Sequence[OperationEffect]], left: int) -> list[str]:
    """The rows of slower and faster operations, as many of each as there is room for."""
    if not any(shown):
        return []
    columns = _Columns(pair, [one for found in shown for one in found])
    lines = ["", columns.heading()]
    budgets = _shared([len(found) for found in shown], left)
    for found, budget in zip(shown, budgets, strict=True):
        kept = found if len(found) <= budget else found[: budget - 1]
        lines += [columns.row(one, one.costs) for one in kept if one.costs]
        if rest := found[len(kept) :]:
            ends = figures.percent(_part(rest[-1])), figures.percent(_part(rest[0]))
            lines.append(f"  ... {len(rest)} more from {ends[0]} to {ends[1]}")
    return lines


def _part(one: OperationEffect) -> Fraction | None:
    return one.costs.insns.percent if one.costs else None


def _shared(sizes: Sequence[int], left: int) -> list[int]:
    """How many lines each group has: an equal share, and what others do not need."""
    left = max(left, _LEAST_ROWS * len(sizes))
    budgets = [min(size, left // len(sizes)) for size in sizes]
    for at, size in enumerate(sizes):
        more = min(size - budgets[at], left - sum(budgets))
        budgets[at] += more
    return budgets


class _Columns:
    """How wide the columns of the table are; the cause has what is left."""

    def __init__(self, pair: Pair, operations: Sequence[OperationEffect]) -> None:
        self._names = pair.names
        longest = max(len("operation"), *(len(one.name) for one in operations))
        self._name = min(longest, _LONGEST_NAME)
        costs = [one.costs.insns for one in operations if one.costs]
        texts = [_whole(side.value) for one in costs for side in (one.base, one.other)]
        self._figure = max(map(len, [*texts, *self._names]))
        self._change = max(len("change"), *(len(change(one)) for one in operations))

    def heading(self) -> str:
        """The names of the columns."""
        figure = self._figure
        heads = f"{self._names[0]:>{figure}}  {self._names[1]:>{figure}}"
        return (
            f"{'operation':<{self._name}}  {heads}  {'change':>{self._change}} "
            f"{'':<{_CERTAINTY}}  largest part"
        )

    def row(self, one: OperationEffect, costs: Costs) -> str:
        """An operation's line."""
        sides = costs.insns.base, costs.insns.other
        cells = (f"{_whole(side.value):>{self._figure}}" for side in sides)
        name = _cut(one.name, self._name)
        line = (
            f"{name:<{self._name}}  {'  '.join(cells)}  {change(one):>{self._change}} "
            f"{_certainty(costs):<{_CERTAINTY}}  "
        )
        return line + _cut(cause_of(one), WIDTH - 1 - len(line))


def _whole(value: Fraction) -> str:
    return str(round(value))


def _certainty(costs: Costs) -> str:
    """How far the change may be off, in per cent of the base."""
    effect, base = costs.insns.effect, costs.insns.base.value
    if effect.n < 2:
        return "n=1"
    if effect.exact:
        return "exact"
    if not base:
        return ""
    hundredths = math.ceil(100 * 100 * effect.half_width / abs(base))
    return f"+-{hundredths / 100:.3g}%" if hundredths < 10000 else "+-100%+"


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 2]}.."


def _lists(pair: Pair, shown: Sequence[Sequence[OperationEffect]]) -> list[str]:
    """What is known of operations besides their rows."""
    lines: list[str] = []
    small = [
        one
        for one in pair.of(*FIRM)
        if not pair.matters(one) and not any(one in of for of in shown)
    ]
    mixed = [one for one in pair.of(Word.MIXED) if pair.matters(one)]
    traded = "instructions were traded for bytes of string operations; --cpu CPU weighs them"
    lines += _list("mixed", mixed, traded)
    for word in _DEPENDS:
        for one in pair.of(word):
            lines += wrapped(f"{word}: {one.name}: {one.verdict.reason}", "", "  ")
    for word in (Word.UNRESOLVED, Word.NOT_COMPARABLE):
        found = pair.of(word)
        for reason in dict.fromkeys(one.verdict.reason for one in found):
            lines += _list(word, [one for one in found if one.verdict.reason == reason], reason)
    lines += _list(f"less than {percent(pair.least)}", small)
    return ["", *lines] if lines else []


def _list(title: str, operations: Sequence[OperationEffect], note: str = "") -> list[str]:
    if not operations:
        return []
    names = ", ".join(one.name for one in operations)
    because = f" ({note})" if note else ""
    return wrapped(f"{title}: {names}{because}", "", "  ")


def _cycles(pair: Pair) -> list[str]:
    """The verdicts on model cycles, a line for each word."""
    cycles, cpu = pair.compared.cycles, pair.report.cpu
    if cycles is None or cpu is None:
        return []
    lines = ["", f"Model cycles on {cpu.name}, means over random layouts of each kernel:"]
    words = dict.fromkeys((*(Word.SLOWER, Word.FASTER, Word.PLACEMENT_ONLY), *OPEN, *Word))
    for word in words:
        found = [one for one in cycles.effects if one.verdict.word is word]
        if found:
            lines += wrapped(f"{word} ({len(found)}): {_regions(found, word)}", "  ", "    ")
    if cycles.unlike:
        names = dict.fromkeys(one.name for one in cycles.unlike)
        lines += wrapped(f"not as on a real {cpu.name}: {', '.join(names)}", "  ", "    ")
    return lines


def _regions(found: Sequence[PlacementEffect], word: Word) -> str:
    names = [one.region + _size(one, word) for one in found]
    more = f" and {len(names) - 2 * _NAMED} more" if len(names) > 2 * _NAMED else ""
    return ", ".join(names[: 2 * _NAMED]) + more


def _size(effect: PlacementEffect, word: Word) -> str:
    if word is Word.PLACEMENT_ONLY:
        return f" {in_per_cent(effect.shipped.relative)} in the two layouts as linked"
    return f" {in_per_cent(effect.relative)}" if word in FIRM else ""


def _warnings(pair: Pair) -> list[str]:
    texts = list(dict.fromkeys((*pair.report.warnings, *pair.compared.effects.warnings)))
    lines = [line for text in texts[:_NAMED] for line in wrapped(text, "  ", "    ")]
    if len(texts) > _NAMED:
        lines.append(f"  {len(texts) - _NAMED} more: --all")
    return ["", "warnings", *lines] if lines else []


def _accounts(pair: Pair, left: int) -> Iterator[str]:
    """The functions of what changed most, where there is still room for all of an account."""
    for one in (one for word in LISTED for one in pair.of(word)):
        if one.costs is None or not pair.matters(one):
            continue
        lines = account_lines(one.name, one.costs.insns, one.functions, _FUNCTIONS)
        if len(lines) > left:
            return
        left -= len(lines)
        yield from lines


def _footer(pairs: Sequence[Pair]) -> list[str]:
    text = (
        "Instructions of the measured tasks an iteration, kernel and user; not time. "
        "All figures and functions: kdelta report --all, or --format html -o FILE."
    )
    return ["", *wrapped(text, "", "")] if pairs else []
