# SPDX-License-Identifier: GPL-2.0-or-later
"""The order of operations, and words, that all parts of a comparison share."""

from collections.abc import Iterable
from fractions import Fraction

from kdelta.infer.effects.effects import OperationEffect
from kdelta.report import words

TRADED = "instructions were traded for bytes of string operations, which --cpu can weigh"

BACKGROUND_NAMES = {"interrupts": "interrupts", "other": "other tasks"}


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
