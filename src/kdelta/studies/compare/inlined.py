# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions that one kernel alone executes, since the other has them as a part of their caller."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from kdelta.counts.by_key import by_key
from kdelta.counts.model import is_kernel
from kdelta.infer.effects.functions import FunctionEffect

_ABOUT = 2
"""How many times one of two amounts may be the other, for them to be about the same."""


def inlined_into(
    functions: Sequence[FunctionEffect],
) -> Iterator[tuple[FunctionEffect, list[FunctionEffect]]]:
    """Yield callers that both kernels execute, each with the functions that were inlined into it on
    one side: it alone calls them on the other side, and changed by about what these cost there.
    """
    by_name = by_key((one.name, one) for one in functions if is_kernel(one.origin))
    found = ((_caller_of(one, by_name), one) for one in functions)
    by_caller = by_key(((caller.name, _is_new(one)), one) for caller, one in found if caller)
    for (name, _), callees in by_caller.items():
        (caller,) = by_name[name]
        theirs = -sum((one.cost.effect.value for one in callees), Fraction(0))
        ours = caller.cost.effect.value
        if ours * theirs > 0 and abs(ours) <= _ABOUT * abs(theirs) <= _ABOUT**2 * abs(ours):
            yield caller, callees


def _caller_of(
    one: FunctionEffect, by_name: Mapping[str, Sequence[FunctionEffect]]
) -> FunctionEffect | None:
    """Who alone calls a function of one side, itself or by others of that side; None if that is not
    known, or is on the other side alone.
    """
    seen = [one]
    while not _is_on_both(seen[-1]):
        callers = by_name.get(seen[-1].called_by, ())
        if len(callers) != 1 or callers[0] in seen:
            return None
        seen += callers
    return seen[-1] if len({_is_new(one) for one in seen[:-1]}) == 1 else None


def _is_on_both(one: FunctionEffect) -> bool:
    return bool(one.cost.base.value and one.cost.other.value)


def _is_new(one: FunctionEffect) -> bool:
    return not one.cost.base.value
