# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of a comparison: operations by verdict, then the functions that account for them."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.effects.chance import MOVED
from kdelta.infer.effects.effects import OperationEffect, Word
from kdelta.infer.effects.estimate import Quantity
from kdelta.infer.effects.functions import FunctionChange, FunctionEffect
from kdelta.report import figures
from kdelta.report.lines import WIDTH, function_name
from kdelta.spec.errors import LabError

PERCENT = 7
MEDIAN = 8
SPREAD = 7
LEAST_FIGURE = 10


NAMED = Fraction(1, 200)
"""The part of all of an operation's changes from which on a function is named."""

SEEN = Fraction(1, 20)

TRADED = "instructions were traded for bytes of string operations, which --cpu can weigh"

BACKGROUND_NAMES = {"interrupts": "interrupts", "other": "other tasks"}


class TableWidths(msgspec.Struct, frozen=True):
    """How wide the columns are: figures as wide as the largest needs, names have the rest."""

    figure: int
    aligned: bool

    @property
    def name(self) -> int:
        """The width of names: three figures and the other columns take the rest of 79."""
        return WIDTH - 1 - 3 * (self.figure + 1) - (PERCENT + 1) - (MEDIAN + 1) - (SPREAD + 1)

    def plain(self, hundredths: int) -> str:
        """A figure."""
        return figures.plain(hundredths, self.figure, aligned=self.aligned)

    def signed(self, hundredths: int, value: Fraction) -> str:
        """A difference; `value` is what was rounded."""
        return figures.signed(hundredths, self.figure, value, aligned=self.aligned)

    def sides(self, cost: Quantity) -> str:
        """Base, other and their difference, which add up as printed."""
        base, other = figures.pair(cost)
        diff = self.signed(other - base, cost.effect.value)
        return f"{self.plain(base)} {self.plain(other)} {diff}"

    def named(self, name: str) -> tuple[list[str], str]:
        """A name's column, and before it a line of its own if it is too long for that."""
        if len(name) > self.name:
            return [name], " " * self.name
        return [], f"{name:<{self.name}}"


def groups(
    operations: Sequence[OperationEffect],
) -> list[tuple[str, Sequence[OperationEffect]]]:
    """The operations by verdict, those that changed most first; a title for each group."""

    def of(word: Word) -> list[OperationEffect]:
        return [one for one in operations if one.verdict.word is word]

    same = of(Word.SAME)
    within = [one for one in same if one.verdict.within != 0]
    reach = max((one.verdict.within or Fraction(0) for one in within), default=Fraction(0))
    unresolved = of(Word.UNRESOLVED)
    reasons = dict.fromkeys(one.verdict.reason for one in unresolved)
    depends = (Word.NOT_STEADY, Word.DEPENDS_ON_STATE, Word.DEPENDS_ON_SPEED)
    groups: list[tuple[str, Sequence[OperationEffect]]] = [
        ("slower", by_size(of(Word.SLOWER))),
        ("faster", by_size(of(Word.FASTER))),
        (f"mixed, {TRADED}", by_size(of(Word.MIXED))),
        *((word.value, by_size(of(word))) for word in depends),
        (f"placement only, {MOVED}", by_size(of(Word.PLACEMENT_ONLY))),
        (f"same within the spread, {figures.short(reach)} instructions at most", within),
        ("same, exactly", [one for one in same if one.verdict.within == 0]),
        *(
            (f"unresolved: {reason}", by_size(o for o in unresolved if o.verdict.reason == reason))
            for reason in reasons
        ),
        *_not_comparable(of(Word.NOT_COMPARABLE)),
    ]
    return [(f"{title} ({len(found)})", found) for title, found in groups if found]


def _not_comparable(
    operations: Sequence[OperationEffect],
) -> Iterator[tuple[str, Sequence[OperationEffect]]]:
    """Those that both sides have by their reasons; a row of the others has its own."""
    yield "not comparable", [one for one in operations if one.costs is None]
    both = [one for one in operations if one.costs is not None]
    for reason in dict.fromkeys(one.verdict.reason for one in both):
        found = [one for one in both if one.verdict.reason == reason]
        yield f"not comparable: {reason}", by_size(found)


def by_size(operations: Iterable[OperationEffect]) -> list[OperationEffect]:
    """Return the operations, those that changed by the largest part first."""
    return sorted(operations, key=_size, reverse=True)


def _size(operation: OperationEffect) -> tuple[bool, Fraction, Fraction]:
    """By per cent; a cost that was zero before is above all."""
    if operation.costs is None:
        return False, Fraction(0), Fraction(0)
    part = operation.costs.insns.percent
    return part is None, abs(part or Fraction(0)), abs(operation.costs.insns.effect.value)


def changed_most(operations: Sequence[OperationEffect]) -> list[OperationEffect]:
    """The operations that are not the same, those that changed most first."""
    words = set(Word) - {Word.SAME}
    return [
        one
        for one in by_size(operations)
        if one.verdict.word in words and one.costs and one.costs.insns.effect.value
    ]


class _Account:
    """The functions that account for a difference, in lines that add up to it as printed."""

    def __init__(self, title: str, whole: Quantity, columns: TableWidths) -> None:
        base, other = figures.pair(whole)
        self._title = title
        self._whole = whole
        self._total = other - base
        self._unit = figures.unit_of(whole.base.value, whole.other.value)
        self._columns = columns

    def lines(self, functions: Sequence[FunctionEffect], limit: int) -> list[str]:
        """A heading, the functions, the rest in one line, and the total."""
        named, rest = worth_a_line(functions, limit)
        values = [one.cost.effect.value for one in named]
        if rest:
            values.append(sum((one.cost.effect.value for one in rest), Fraction(0)))
        printed = figures.rounded_to_total(values, self._total, self._unit) if values else []
        if sum(printed) != self._total:
            raise LabError(
                f"{self._title}: the lines add up to {sum(printed) / figures.SCALE}, "
                f"and the table has {self._total / figures.SCALE}",
                "this is an error of kdelta; please report it with the output of --json",
            )
        aligned = any(value % figures.SCALE for value in printed)
        self._columns = TableWidths(self._columns.figure, aligned)
        lines = ["", self._title, self._line("diff", "%", "base", "other", "function")]
        for one, diff in zip(named, printed, strict=False):
            lines += self._function(one, diff)
        if rest:
            shown = self._columns.signed(printed[-1], values[-1])
            lines.append(self._line(shown, "", "", "", f"other functions ({len(rest)})"))
        shown = self._columns.signed(self._total, self._whole.effect.value)
        part = figures.percent(self._whole.percent)
        return [*lines, self._line(shown, part, "", "", "total, as in the table")]

    def _line(self, diff: str, part: str, base: str, other: str, name: str) -> str:
        width = self._columns.figure
        line = f"{diff:>{width}} {part:>{MEDIAN}} {base:>{width}} {other:>{width}}  {name}"
        return line.rstrip()

    def _function(self, function: FunctionEffect, diff: int) -> list[str]:
        columns = self._columns
        # The other side is rounded, and the base follows: so the line adds up as printed.
        other = figures.scaled(function.cost.other.value, self._unit)
        part = figures.percent(function.cost.percent)
        base_text, other_text = columns.plain(other - diff), columns.plain(other)
        if function.change is FunctionChange.ADDED:
            part, base_text, other_text = "added", "-", columns.plain(diff)
        elif function.change is FunctionChange.REMOVED:
            part, base_text, other_text = "removed", columns.plain(-diff), "-"
        shown = columns.signed(diff, function.cost.effect.value)
        name = function_name(function.name, function.origin, function.moved_from)
        line = self._line(shown, part, base_text, other_text, name)
        if len(line) <= WIDTH:
            return [line]
        return [
            self._line(shown, part, base_text, other_text, ""),
            f"{'':>{columns.figure + 4}}{name}",
        ]


def account_lines(
    name: str, whole: Quantity, functions: Sequence[FunctionEffect], limit: int
) -> list[str]:
    """Return one operation's account, with columns as wide as its own figures need."""
    widest = len(str(round(max(whole.base.value, whole.other.value)))) + 1
    columns = TableWidths(max(LEAST_FIGURE, widest), aligned=False)
    return _Account(f"{name}, instructions an iteration", whole, columns).lines(functions, limit)


def worth_a_line(
    functions: Sequence[FunctionEffect], limit: int
) -> tuple[list[FunctionEffect], list[FunctionEffect]]:
    """The changed functions that are worth a line of their own, and the rest of the changed."""
    changed = [one for one in functions if one.cost.effect.value]
    least = NAMED * sum(abs(one.cost.effect.value) for one in changed)
    count = sum(abs(one.cost.effect.value) >= least for one in changed[:limit])
    if count == len(changed) - 1:  # a name takes no more room than "other functions (1)"
        count = len(changed)
    return changed[:count], changed[count:]
