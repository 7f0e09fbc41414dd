# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts on the path of code that is the same, only relinked."""

from collections.abc import Collection

import msgspec

from kdelta.infer.effects.effects import FIRM, Effects, Verdict, Word

MOVED = "the same code relinked: addresses move the path"


def of_relinked(effects: Effects, relinked: Collection[str]) -> Effects:
    """The effects with "placement only" in place of faster and slower for the operations of these
    names, and for what interrupts and others did besides.

    What searches tables of addresses takes other steps where the linker put things elsewhere. That
    is shown, and explained by function, as before; it is no verdict on a change.
    """
    if not relinked:
        return effects
    return msgspec.structs.replace(
        effects,
        operations=tuple(
            msgspec.structs.replace(one, verdict=_moved(one.verdict))
            if one.name in relinked
            else one
            for one in effects.operations
        ),
        background=tuple(
            msgspec.structs.replace(row, verdict=_moved(row.verdict)) for row in effects.background
        ),
    )


def _moved(verdict: Verdict) -> Verdict:
    if verdict.word in FIRM:
        return Verdict(Word.PLACEMENT_ONLY, reason=MOVED)
    return verdict
