# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions that account for an operation's difference, as lines of the first screen."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from kdelta.infer.effects.effects import OperationEffect
from kdelta.infer.effects.estimate import Quantity
from kdelta.infer.effects.functions import FunctionChange, FunctionEffect
from kdelta.report import figures
from kdelta.report.lines import WIDTH, function_name
from kdelta.spec.errors import LabError

PERCENT = 8
LEAST_FIGURE = 10

NAMED = Fraction(1, 200)
"""The part of all of an operation's changes from which on a function is named."""

TRADED = "instructions were traded for bytes of string operations, which --cpu can weigh"

BACKGROUND_NAMES = {"interrupts": "interrupts", "other": "other tasks"}


def by_size(operations: Iterable[OperationEffect]) -> list[OperationEffect]:
    """Return the operations, those that changed by the largest part first."""
    return sorted(operations, key=_size, reverse=True)


def _size(operation: OperationEffect) -> tuple[bool, Fraction, Fraction]:
    """By per cent; a cost that was zero before is above all."""
    if operation.costs is None:
        return False, Fraction(0), Fraction(0)
    part = operation.costs.insns.percent
    return part is None, abs(part or Fraction(0)), abs(operation.costs.insns.effect.value)


class _Account:
    """The functions that account for a difference, in lines that add up to it as printed, with
    columns as wide as its own figures need.
    """

    def __init__(self, title: str, whole: Quantity) -> None:
        base, other = figures.pair(whole)
        largest = max(whole.base.value, whole.other.value)
        self._title = title
        self._whole = whole
        self._total = other - base
        self._unit = figures.unit_of(whole.base.value, whole.other.value)
        self._width = max(LEAST_FIGURE, len(str(round(largest))) + 1)
        self._aligned = False

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
        self._aligned = any(value % figures.SCALE for value in printed)
        lines = ["", self._title, self._line("diff", "%", "base", "other", "function")]
        for one, diff in zip(named, printed, strict=False):
            lines += self._function(one, diff)
        if rest:
            shown = self._signed(printed[-1], values[-1])
            lines.append(self._line(shown, "", "", "", f"other functions ({len(rest)})"))
        shown = self._signed(self._total, self._whole.effect.value)
        part = figures.percent(self._whole.percent)
        return [*lines, self._line(shown, part, "", "", "total, as in the table")]

    def _plain(self, hundredths: int) -> str:
        return figures.plain(hundredths, self._width, aligned=self._aligned)

    def _signed(self, hundredths: int, value: Fraction) -> str:
        """A difference; `value` is what was rounded."""
        return figures.signed(hundredths, self._width, value, aligned=self._aligned)

    def _line(self, diff: str, part: str, base: str, other: str, name: str) -> str:
        width = self._width
        line = f"{diff:>{width}} {part:>{PERCENT}} {base:>{width}} {other:>{width}}  {name}"
        return line.rstrip()

    def _function(self, function: FunctionEffect, diff: int) -> list[str]:
        # The other side is rounded, and the base follows: so the line adds up as printed.
        other = figures.scaled(function.cost.other.value, self._unit)
        part = figures.percent(function.cost.percent)
        base_text, other_text = self._plain(other - diff), self._plain(other)
        if function.change is FunctionChange.ADDED:
            part, base_text, other_text = "added", "-", self._plain(diff)
        elif function.change is FunctionChange.REMOVED:
            part, base_text, other_text = "removed", self._plain(-diff), "-"
        shown = self._signed(diff, function.cost.effect.value)
        name = function_name(function.name, function.origin, function.moved_from)
        line = self._line(shown, part, base_text, other_text, name)
        if len(line) <= WIDTH:
            return [line]
        return [
            self._line(shown, part, base_text, other_text, ""),
            f"{'':>{self._width + 4}}{name}",
        ]


def account_lines(
    name: str, whole: Quantity, functions: Sequence[FunctionEffect], limit: int
) -> list[str]:
    """Return one operation's account."""
    return _Account(f"{name}, instructions an iteration", whole).lines(functions, limit)


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
