# SPDX-License-Identifier: GPL-2.0-or-later
"""What a change adds to the functions that it is in, where the operations that execute them vary by
more than that.
"""

from collections.abc import Callable, Sequence

import msgspec

from kdelta.infer.effects.chance import FEW, NOT_KNOWN, DifferingCode
from kdelta.infer.effects.effects import Effects, OperationEffect, Word
from kdelta.infer.effects.functions import FunctionEffect, strip_suffixes


def with_code(effects: Effects, differing: Callable[[], DifferingCode]) -> Effects:
    """Return the effects with the functions marked whose code differs, and that cost as much more
    in all runs, in operations that these runs do not show to differ. differing: as of
    `first_verdicts`; it is asked only where that matters.
    """
    wanted = [one.name for one in effects.operations if any(map(_is_steady, _hidden(one)))]
    code = differing() if wanted else NOT_KNOWN
    found = {name: {(origin, strip_suffixes(of)) for origin, of in code.get(name, ())}
             for name in wanted}  # fmt: skip
    operations = tuple(
        msgspec.structs.replace(
            one, functions=tuple(_marked(row, found[one.name]) for row in one.functions)
        )
        if found.get(one.name)
        else one
        for one in effects.operations
    )
    return msgspec.structs.replace(effects, operations=operations)


def by_code(one: OperationEffect) -> list[FunctionEffect]:
    """Return the functions that are marked so."""
    return [row for row in one.functions if row.by_code is True]


def _hidden(one: OperationEffect) -> Sequence[FunctionEffect]:
    is_open = one.verdict.word in (Word.SAME, Word.UNRESOLVED)
    return one.functions if is_open and one.costs and not one.costs.insns.effect.exact else ()


def _is_steady(row: FunctionEffect) -> bool:
    effect = row.cost.effect
    return bool(effect.value) and effect.exact and effect.n >= FEW


def _marked(row: FunctionEffect, differing: set[tuple[str, str]]) -> FunctionEffect:
    is_it = (row.origin, row.name) in differing and _is_steady(row)
    return msgspec.structs.replace(row, by_code=True) if is_it else row
