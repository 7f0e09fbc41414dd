# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of a comparison: operations by verdict, then the functions that account for them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.effects import (
    BackgroundEffect,
    Costs,
    Effects,
    OperationEffect,
    Word,
)
from kdelta.infer.estimate import Quantity
from kdelta.infer.functions import FunctionChange, FunctionEffect
from kdelta.infer.relinked import MOVED
from kdelta.report import figures
from kdelta.report.layout import WIDTH, function_name, wrapped
from kdelta.spec.errors import LabError

PERCENT = 7
MEDIAN = 8
SPREAD = 7
LEAST_FIGURE = 10

VISIBLE = Fraction(1, 2000)
"""The part of a figure from which on its change is explained: what a tenth of a per cent rounds."""

NAMED = Fraction(1, 200)
"""The part of all of an operation's changes from which on a function is named."""

SEEN = Fraction(1, 20)
SEEN_PART = Fraction(1, 200)
"""The smallest change of a count an iteration that is worth its place: so much, and such a part."""

TRADED = "instructions were traded for bytes of string operations, which --cpu can weigh"

BACKGROUND_NAMES = {"interrupts": "interrupts", "other": "other tasks"}

_LEAST_CHANGE = Fraction(1, 4)
_LEAST_PART = Fraction(1, 100)
"""Of special instructions an iteration, to be shown; --json has all."""


class Columns(msgspec.Struct, frozen=True):
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


def comparison_lines(
    effects: Effects,
    operations: int,
    functions: int,
    bytes_worked_on: Mapping[str, int] | None = None,
) -> list[str]:
    """The tables; the `operations` that changed most are explained by `functions` each.

    `bytes_worked_on`: by operation, where an iteration works on a fixed number of bytes.

    Raises LabError if what is printed does not add up.
    """
    if all(one.costs is None for one in effects.operations):
        return ["nothing to compare: no operation succeeded on both sides"]
    columns = _columns_for(effects)
    costs = [(one.name, one.costs) for one in effects.operations if one.costs is not None]
    lines = _table(effects, columns)
    lines += _a_byte(costs, bytes_worked_on or {}, columns)
    lines += _user_part(costs, columns)
    lines += _specials(costs, columns)
    lines += _string_bytes(costs, columns)
    for operation in changed_most(effects.operations)[:operations]:
        if operation.costs is not None:
            title = f"{operation.name}, instructions an iteration"
            lines += _Account(title, operation.costs.insns, columns).lines(
                operation.functions, functions
            )
    for row in effects.background:
        visible = abs(row.rate.effect.value) >= row.rate.base.value * VISIBLE
        if visible and row.verdict.word in {Word.FASTER, Word.SLOWER}:
            title = f"{BACKGROUND_NAMES[row.context]}, a virtual second"
            lines += _Account(title, row.rate, columns).lines(row.functions, functions)
    return lines


def _columns_for(effects: Effects) -> Columns:
    values = [
        estimate.value
        for one in effects.operations
        for estimate in (one.base, one.other)
        if estimate is not None
    ]
    values += [side.value for row in effects.background for side in (row.rate.base, row.rate.other)]
    sign = 1
    widest = max(len(str(round(value))) for value in values) + sign
    aligned = any(not figures.is_whole(value) for value in values)
    return Columns(figure=max(LEAST_FIGURE, widest), aligned=aligned)


def _heading(title: str, columns: Columns, median: str) -> str:
    width = columns.figure
    return (
        f"{title:<{columns.name}} {'base':>{width}} {'other':>{width}} {'diff':>{width}} "
        f"{'%':>{PERCENT}} {median:>{MEDIAN}} {'spread':>{SPREAD}}"
    )


def _table(effects: Effects, columns: Columns) -> list[str]:
    lines = [_heading("operation", columns, "median")]
    for title, operations in groups(effects.operations):
        lines += ["", *wrapped(title, "", "  ")]
        lines += [line for one in operations for line in _row(one, columns)]
    if effects.background:
        lines += ["", _heading("a virtual second", columns, "")]
        lines += [_background_row(row, columns) for row in effects.background]
    return lines


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
        ("slower", _by_size(of(Word.SLOWER))),
        ("faster", _by_size(of(Word.FASTER))),
        (f"mixed, {TRADED}", _by_size(of(Word.MIXED))),
        *((word.value, _by_size(of(word))) for word in depends),
        (f"placement only, {MOVED}", _by_size(of(Word.PLACEMENT_ONLY))),
        (f"same within the spread, {figures.short(reach)} instructions at most", within),
        ("same, exactly", [one for one in same if one.verdict.within == 0]),
        *(
            (f"unresolved: {reason}", _by_size(o for o in unresolved if o.verdict.reason == reason))
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
        yield f"not comparable: {reason}", _by_size(found)


def _by_size(operations: Iterable[OperationEffect]) -> list[OperationEffect]:
    return sorted(operations, key=_size, reverse=True)


def _size(operation: OperationEffect) -> tuple[bool, Fraction, Fraction]:
    """By per cent; a cost that was nought before is above all."""
    if operation.costs is None:
        return False, Fraction(0), Fraction(0)
    part = operation.costs.insns.percent
    return part is None, abs(part or Fraction(0)), abs(operation.costs.insns.effect.value)


def changed_most(operations: Sequence[OperationEffect]) -> list[OperationEffect]:
    """The operations that are not the same, those that changed most first."""
    words = set(Word) - {Word.SAME}
    return [
        one
        for one in _by_size(operations)
        if one.verdict.word in words and one.costs and one.costs.insns.effect.value
    ]


def _row(operation: OperationEffect, columns: Columns) -> list[str]:
    costs = operation.costs
    lines, name = columns.named(operation.name)
    if costs is None:
        shown = [
            f"{'-':>{columns.figure}}"
            if estimate is None
            else columns.plain(figures.scaled(estimate.value, figures.unit_of(estimate.value)))
            for estimate in (operation.base, operation.other)
        ]
        lines.append(f"{name} {' '.join(shown)}  {operation.verdict.reason}")
    else:
        lines.append(
            f"{name} {columns.sides(costs.insns)} "
            f"{figures.percent(costs.insns.percent):>{PERCENT}} "
            f"{figures.brief(costs.median_insns.effect.value, MEDIAN)} "
            f"{figures.spread(costs.insns.effect):>{SPREAD}}"
        )
    depends = {Word.NOT_STEADY, Word.DEPENDS_ON_STATE, Word.DEPENDS_ON_SPEED}
    why = [operation.verdict.reason] if operation.verdict.word in depends else []
    return lines + [line for note in (*why, *operation.notes) for line in wrapped(note, "  ", "  ")]


def _background_row(row: BackgroundEffect, columns: Columns) -> str:
    return (
        f"{BACKGROUND_NAMES[row.context]:<{columns.name}} {columns.sides(row.rate)} "
        f"{figures.percent(row.rate.percent):>{PERCENT}} {'':>{MEDIAN}} "
        f"{figures.spread(row.rate.effect):>{SPREAD}}"
    )


Named = Sequence[tuple[str, Costs]]


def _changed(cost: Quantity) -> bool:
    """Whether a figure differs by more than its spread, and by so much that it matters."""
    effect = cost.effect
    least = max(SEEN, SEEN_PART * max(cost.base.value, cost.other.value))
    return abs(effect.value) >= least and (effect.low > 0 or effect.high < 0)


def _a_byte(costs: Named, sizes: Mapping[str, int], columns: Columns) -> list[str]:
    rows = [(name, cost.insns, sizes[name]) for name, cost in costs if name in sizes]
    if not rows:
        return []
    width = columns.figure
    heads = " ".join(f"{word:>{width}}" for word in ("base", "other", "diff"))
    lines = ["", f"{'instructions a byte':<{columns.name}} {heads}"]
    for name, cost, size in rows:
        own_line, column = columns.named(name)
        base, other = (figures.scaled(side.value / size) for side in (cost.base, cost.other))
        diff = columns.signed(other - base, cost.effect.value)
        cells = f"{columns.plain(base)} {columns.plain(other)} {diff}"
        lines += [*own_line, f"{column} {cells}"]
    return lines


def _user_part(costs: Named, columns: Columns) -> list[str]:
    rows = [(name, cost) for name, cost in costs if _changed(cost.user_insns)]
    if not rows:
        return ["", "The user's own code costs the same in each: the differences are the kernel's."]
    width = columns.figure
    head = f"{'kernel':>{width}} {'diff':>{width}} {'user':>{width}} {'diff':>{width}}"
    lines = ["", f"{'user code apart':<{columns.name}} {head} {'spread':>{SPREAD}}"]
    for name, cost in rows:
        own_line, column = columns.named(name)
        cells = []
        for part in (cost.kernel_insns, cost.user_insns):
            base, other = figures.pair(part)
            cells += [columns.plain(base), columns.signed(other - base, part.effect.value)]
        spread = figures.spread(cost.user_insns.effect)
        lines += [*own_line, f"{column} {' '.join(cells)} {spread:>{SPREAD}}"]
    return lines


def _specials(costs: Named, columns: Columns) -> list[str]:
    rows = []
    for name, cost in costs:
        changes = [
            f"{kind} {figures.number(one.base.value)} -> {figures.number(one.other.value)}"
            for kind, one in cost.specials.items()
            if _matters(one)
        ]
        if changes:
            own_line, column = columns.named(name)
            rows += own_line + _listed(changes, column)
    title = "special instructions an iteration, where they changed"
    return ["", title, *rows] if rows else []


def _matters(special: Quantity) -> bool:
    """Whether a change is worth a word: a tick more or less brings a few of every kind."""
    effect, base = abs(special.effect.value), special.base.value
    return _changed(special) and effect >= max(_LEAST_CHANGE, _LEAST_PART * base)


def _listed(changes: Sequence[str], column: str) -> list[str]:
    """A list that breaks between its entries and not inside of them."""
    unbroken = ", ".join(change.replace(" ", "\0") for change in changes)
    lines = wrapped(unbroken, f"{column} ", " " * (len(column) + 1))
    return [line.replace("\0", " ") for line in lines]


def _string_bytes(costs: Named, columns: Columns) -> list[str]:
    rows = []
    for name, cost in costs:
        moved = cost.string_bytes
        if _changed(moved):
            own_line, column = columns.named(name)
            change = f"{figures.number(moved.base.value)} -> {figures.number(moved.other.value)}"
            rows += [*own_line, f"{column} {change}"]
    title = "bytes of string operations an iteration, where they changed"
    return ["", title, *rows] if rows else []


class _Account:
    """The functions that account for a difference, in lines that add up to it as printed."""

    def __init__(self, title: str, whole: Quantity, columns: Columns) -> None:
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
        self._columns = Columns(self._columns.figure, aligned)
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
