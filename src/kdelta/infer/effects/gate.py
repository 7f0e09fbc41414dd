# SPDX-License-Identifier: GPL-2.0-or-later
"""From verdicts to the exit code that CI and `git bisect run` ask for."""

import enum
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, get_args

import msgspec

from kdelta.infer.effects.deferred import WITH_OTHERS
from kdelta.infer.effects.effects import OPEN, OperationEffect, Word, weighed
from kdelta.infer.effects.estimate import is_seen
from kdelta.infer.effects.weigh import terms_text


class Exit(enum.IntEnum):
    """What `git bisect run` takes an exit code for: 0 is good, 125 skips the commit, all else up to
    127 is bad, and more ends the bisection (git-bisect(1)). So what broke must not be below 128.
    """

    NOT_SLOWER = 0
    SLOWER = 1
    CANNOT_TELL = 125
    BROKEN = 255


BOUNDED = "not slower by more than the margin"
"""Of a region without a word whose interval ends below the margin."""


class Judged(msgspec.Struct, frozen=True):
    """A region's verdict, as far as a gate looks at it; `reason` says why nothing is known. Of what
    is slower `region` has the size, too, and `name` has not. `bounded`: whatever its word is, the
    upper bound of its effect is within the margin.
    """

    region: str
    word: Word
    reason: str = ""
    name: str = ""
    bounded: bool = False

    @property
    def id(self) -> str:
        """The region's name, with the CPU's where it is on model cycles: the same each time."""
        return self.name or self.region

    @property
    def is_bounded(self) -> bool:
        """Whether a gate passes it by its upper bound alone."""
        return self.word is Word.UNRESOLVED and self.bounded

    @property
    def words(self) -> str:
        """What a gate takes the verdict for."""
        return BOUNDED if self.is_bounded else str(self.word)


class Decision(msgspec.Struct, frozen=True):
    """The exit code, and what decided it: regions, or what failed."""

    exit: Exit
    because: tuple[str, ...]


Mixed = Literal["cannot-tell", "fail", "pass"]
"""What is made of an effect whose cycles may go either way."""
MIXED: tuple[Mixed, ...] = get_args(Mixed)


def decide_gate(
    judged: Sequence[Judged], failures: Sequence[str] = (), mixed: Mixed = "cannot-tell"
) -> Decision:
    """What a gate answers. `failures` lists kernels that could not be built, booted or run.

    One region that is slower is enough, whatever is not known of others: that would not make it
    faster. But with a failure nothing is decided, since what was measured is then not all of it.
    """
    if failures:
        return Decision(Exit.CANNOT_TELL, tuple(failures))
    bad = {Word.SLOWER, Word.MIXED} if mixed == "fail" else {Word.SLOWER}
    slower = tuple(one.region for one in judged if one.word in bad)
    if slower:
        return Decision(Exit.SLOWER, slower)
    unknown = tuple(
        f"{one.region}: {one.reason or one.word}"
        for one in judged
        if one.word in OPEN
        and not one.is_bounded
        and not (one.word is Word.MIXED and mixed == "pass")
    )
    if unknown:
        return Decision(Exit.CANNOT_TELL, unknown)
    if not judged:
        return Decision(Exit.CANNOT_TELL, ("nothing was measured",))
    return Decision(Exit.NOT_SLOWER, ())


def judge_path(
    operation: OperationEffect, exact: Fraction, margin: Fraction | None = None
) -> Judged:
    """Return the verdict on a path as a gate sees it: slower by the margin or less is the same.

    exact: the margin, a part of the base, of operations that are equal in all runs; margin: that of
    those which vary, the same by default.
    """
    name, verdict = operation.name, operation.verdict
    if operation.costs is None:
        return Judged(name, verdict.word, verdict.reason)
    insns, found = operation.costs.insns, weighed(operation.costs)
    part = exact if insns.effect.exact or margin is None else margin
    allowed = part * insns.base.value
    if verdict.word is not Word.SLOWER:
        # A gate asks in one direction, so the upper end of an interval over zero decides. It is a
        # bound only if there are enough runs.
        bounded = insns.effect.is_enough and not is_seen(insns.effect)
        others = operation.costs.others.effect
        beyond = max(Fraction(0), others.high) if is_seen(others) else Fraction(0)
        bounded &= insns.effect.high + beyond <= allowed
        bounded &= not found.terms or found.high <= part * found.least_of_base
        return Judged(name, verdict.word, verdict.reason, bounded=bounded)
    percent = insns.percent
    size = f"{float(insns.effect.value):+.6g}" if percent is None else f"{float(percent):+.3g}%"
    size = ", ".join([f"{size} instructions", *terms_text(found)])
    if verdict.reason == WITH_OTHERS:
        return _with_others(operation, size, allowed)
    if insns.effect.low > allowed or (found.terms and found.low > part * found.most_of_base):
        return Judged(f"{name} {size}", Word.SLOWER, name=name)
    is_small = not found.terms or found.high <= part * found.least_of_base
    if insns.effect.high <= allowed and is_small:
        return Judged(name, Word.SAME)
    return Judged(name, Word.UNRESOLVED, f"{size}, and its interval reaches over the margin")


def _with_others(operation: OperationEffect, size: str, allowed: Fraction) -> Judged:
    """The verdict on an operation that is slower by what other tasks do."""
    assert operation.costs
    own, others = operation.costs.insns.effect, operation.costs.others.effect
    where = "left to others" if operation.costs.left else "in other tasks"
    text = f"{size}, {float(others.value):+.6g} {where}"
    if own.low + others.low > allowed:
        return Judged(f"{operation.name} {text}", Word.SLOWER, name=operation.name)
    if own.high + others.high <= allowed:
        return Judged(operation.name, Word.SAME)
    return Judged(operation.name, Word.UNRESOLVED, f"{text}, and the sum reaches over the margin")
