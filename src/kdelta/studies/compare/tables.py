# SPDX-License-Identifier: GPL-2.0-or-later
"""The order of operations, and words, that all parts of a comparison share."""

from collections.abc import Iterable
from fractions import Fraction

from kdelta.infer.effects.effects import Effects, OperationEffect
from kdelta.report import words

BACKGROUND_NAMES = {"interrupts": "interrupts", "other": "other tasks"}


_CONSTANT = "empty"
"""A region with nothing in it: what each region has, and no operation."""


def operations_of(effects: Effects) -> list[OperationEffect]:
    """Return the effects on operations."""
    found = [one for one in effects.operations if one.name != _CONSTANT]
    return found or list(effects.operations)


def in_order(operations: Iterable[OperationEffect]) -> list[OperationEffect]:
    """Return the operations as all forms list them: by verdict, then by size."""
    return sorted(by_size(operations), key=lambda one: words.ORDER.index(one.verdict.word))


def by_size(operations: Iterable[OperationEffect]) -> list[OperationEffect]:
    """Return the operations, those that changed by the largest part first."""
    return sorted(operations, key=_size, reverse=True)


def _size(operation: OperationEffect) -> tuple[bool, Fraction, Fraction]:
    """By per cent; a cost that was zero before is above all."""
    if operation.costs is None:
        return False, Fraction(0), Fraction(0)
    part = operation.costs.insns.percent
    return part is None, abs(part or Fraction(0)), abs(operation.costs.insns.effect.value)
