# SPDX-License-Identifier: GPL-2.0-or-later
"""Why a kernel is built, in a line for people."""

from collections.abc import Iterable, Sequence

from kdelta.infer.search.evidence import Question
from kdelta.infer.search.search_model import FlipSet

_SHOWN = 3


def few_of(names: Iterable[str], shown: int = _SHOWN) -> str:
    """The first few names, and how many more."""
    ordered = sorted(names)
    if len(ordered) <= shown + 1:
        return ", ".join(ordered)
    return f"{', '.join(ordered[:shown])} and {len(ordered) - shown} more"


def proof_text(kept: FlipSet) -> str:
    """Of the proof."""
    if not kept:
        return "the proof: no option group is left, so A must have B's path"
    return f"the proof: all that was not ruled out ({_units(kept)}) together must have B's path"


def alone_text(name: str, flips: FlipSet, below: FlipSet, top: FlipSet) -> str:
    """Of one of the two kernels that decide about a unit."""
    if flips == below | {name}:
        return (
            f"{name} on top of what it needs ({few_of(below)})"
            if below
            else f"{name} alone, from A"
        )
    if name in flips:
        return f"{name} on top of {few_of(flips - {name})}"
    if flips == below:
        return f"what {name} needs ({few_of(below)}), without it"
    others = top - flips - {name}
    return f"everything but {few_of({name, *others})}, to see what {name} adds"


def halving_text(units: Sequence[str], first: FlipSet, below: FlipSet) -> str:
    """Of a kernel that parts a group. `first`: the part that is flipped; `below`: what else is."""
    context = f", on top of {_units(below)}" if below else ""
    if len(first) == 1:
        return f"{few_of(first)} of a group of {len(units)}{context}"
    shown = f"{few_of(first)} ({len(first)} of a group of {len(units)}){context}"
    return f"{shown}: if nothing changes they are all cleared"


def interaction_text(question: Question) -> str:
    """Of a kernel that narrows down which units interact."""
    rest = question.flips - frozenset(question.known)
    if not question.known:
        return f"{few_of(question.flips)}: whether what they do together adds up"
    if not rest:
        return f"{' and '.join(question.known)} alone: whether it is these that interact"
    return f"{' and '.join(question.known)} with {_units(rest)} ({few_of(rest)}): which interacts"


def _units(names: FlipSet | Sequence[str]) -> str:
    return "1 option group" if len(names) == 1 else f"{len(names)} option groups"
