# SPDX-License-Identifier: GPL-2.0-or-later
"""What accounts for most of an operation's change: a function, or what took the place of one."""

import difflib
import functools
from collections.abc import Iterator, Sequence
from fractions import Fraction

import msgspec

from kdelta.infer.effects.by_code import by_code
from kdelta.infer.effects.chance import SO_FAR
from kdelta.infer.effects.costs import Costs
from kdelta.infer.effects.deferred import WITH_OTHERS
from kdelta.infer.effects.effects import FIRM, OperationEffect, Word, weighed
from kdelta.infer.effects.estimate import Estimate, is_seen
from kdelta.infer.effects.functions import FunctionEffect
from kdelta.infer.effects.weigh import terms_beyond, terms_text
from kdelta.report import figures, words
from kdelta.report.lines import function_name
from kdelta.studies.compare.inlined import inlined_into

_WHOLE_FROM = 10
_TERMS = 3
_NAMED = 2
_LOOKED_AT = 12
"""Of the functions that are gone, and of the new ones, so many are compared by their names."""

_LEAST_OTHERS = Fraction(5, 1000)
_UNDECIDED = Fraction(5, 100)
"""The part of the base from which on work of other tasks is named whose interval includes zero."""

_BALANCED = 3
"""How many times the whole its largest part may be, for it to be a cause."""

_CAUSE_FROM = Fraction(1, 5)
"""The part of the whole from which on its largest part may pass for its cause."""

_ALIKE = 0.61
"""How much of two names is the same, so that one is taken for the other's successor."""

_ALIKE_WORDS = 0.8


class Cause(msgspec.Struct, frozen=True):
    """Functions that belong together, and by how many instructions they changed in sum: one; new
    ones and those whose names say that they did the same before; or `into`, and what was inlined
    into it on either side.
    """

    functions: tuple[FunctionEffect, ...]
    into: FunctionEffect | None = None

    @property
    def base(self) -> Fraction:
        """Instructions an iteration under the base, in sum."""
        return sum((one.cost.base.value for one in self.functions), Fraction(0))

    @property
    def other(self) -> Fraction:
        """The same under the other kernel."""
        return sum((one.cost.other.value for one in self.functions), Fraction(0))

    @property
    def value(self) -> Fraction:
        """By how many instructions an iteration they changed, in sum."""
        return self.other - self.base

    @property
    def is_shown(self) -> bool:
        """Return whether the change of any of its functions may be named."""
        return any(is_shown(one.cost.effect) for one in self.functions)

    @property
    def name(self) -> str:
        """The largest function of now, and of before where that is another one, or by which one
        alone it is called, where that does so more often or less.
        """
        if self.into or len(self.functions) == 1:
            return self.title + self._caller
        now, gone = self._sides
        return f"{_name(now)} (was {_name(gone)})"

    @property
    def title(self) -> str:
        """The functions of now and of before, for a row of their own."""
        if self.into:
            return f"{_name([self.into])} ({self._inlined})"
        if len(self.functions) == 1:
            (one,) = self.functions
            return function_name(one.name, one.origin, one.moved_from)
        now, gone = (words.some([_name([one]) for one in side], _NAMED) for side in self._sides)
        return f"{now} (was {gone})"

    @property
    def _sides(self) -> tuple[list[FunctionEffect], list[FunctionEffect]]:
        """Those that are executed now, and those that are not any more."""
        now = [one for one in self.functions if one.cost.other.value]
        return now, [one for one in self.functions if not one.cost.other.value]

    @property
    def _inlined(self) -> str:
        found = [one for one in self.functions if one is not self.into]
        name = _name(found) + (f" and {len(found) - 1} more" if len(found) > 1 else "")
        is_now = not found[0].cost.other.value
        return f"with inlined {name}" if is_now else f"with {name}, inlined before"

    @property
    def _caller(self) -> str:
        """By whom alone it is called; not if the names say so: __do_it, called by do_it."""
        by = self.functions[0].called_by if len(self.functions) == 1 else ""
        return f", called by {by}" if by and _likeness(by, self.functions[0].name) < 1 else ""


def _name(functions: Sequence[FunctionEffect]) -> str:
    most = max(functions, key=lambda one: max(one.cost.base.value, one.cost.other.value))
    return function_name(most.name, most.origin)


def cause_of(one: OperationEffect) -> str:
    """Return what accounts for most of the change, with its part of it; "so far" where the
    operation is still run.
    """
    if one.verdict.reason == SO_FAR:
        return SO_FAR
    if one.costs is None:
        return ""
    if (found := by_code(one)) or one.verdict.word is Word.SAME:
        return _by_code(found)
    is_with_others = one.verdict.reason == WITH_OTHERS
    if not is_with_others and (one.verdict.word is Word.MIXED or not is_by_insns(one)):
        return terms_of(one.costs)
    others = others_of(one, Fraction(0) if is_with_others else _LEAST_OTHERS)
    if others and (is_seen(one.costs.others.effect) or is_with_others):
        return _with_others(one.costs, others)
    whole = one.costs.insns.effect.value
    texts = [_largest_part(one, whole), *terms_beyond(weighed(one.costs), whole)]
    return _listed(list(filter(None, texts)))


def _by_code(functions: Sequence[FunctionEffect]) -> str:
    """Return by how much more the code that differs costs, in sum; "" for none."""
    if not functions:
        return ""
    most = max(functions, key=lambda row: abs(row.cost.effect.value))
    value = sum((row.cost.effect.value for row in functions), Fraction(0))
    others = f" and {len(functions) - 1} more" if len(functions) > 1 else ""
    return f"{figures.brief(value, 6)} {function_name(most.name, most.origin)}{others}"


def _with_others(costs: Costs, others: str) -> str:
    """Own work and what others do, apart: each may outweigh the other."""
    own = Fraction(round(costs.insns.effect.value))
    text = f"{others} {'left to others' if costs.left else 'in other tasks'}"
    if not own:
        return text
    return f"{figures.brief(own, 6)} in the task, {text}{_in_sum(costs)}"


def _in_sum(costs: Costs) -> str:
    """By how many per cent own work and what is left change together."""
    if costs.left is None:
        return ""
    parts = (costs.insns, costs.left)
    base = sum(part.base.value for part in parts)
    if base <= 0:
        return ""
    effect, far = (
        100 * sum(getattr(part.effect, field) for part in parts) / base
        for field in ("value", "half_width")
    )
    return f": {figures.percent_within(effect, far)} in sum"


def _largest_part(one: OperationEffect, whole: Fraction) -> str:
    """The functions that account for most of a change of that size."""
    every = causes(one.functions)
    found = [cause for cause in every if cause.value * whole > 0 and cause.is_shown]
    if not found:
        return ""
    most = max(found, key=lambda cause: abs(cause.value))
    if abs(most.value) > _BALANCED * abs(whole):
        ends = [sum((cause.value for cause in every if cause.value * sign > 0), Fraction(0))
                for sign in (1, -1)]  # fmt: skip
        more, less = (figures.brief(Fraction(round(end)), 6) for end in ends)
        return f"{more} and {less} in {words.counted(len(every), 'function')}"
    value = Fraction(round(most.value)) if abs(most.value) >= _WHOLE_FROM else most.value
    is_small = abs(most.value) < _CAUSE_FROM * abs(whole)
    of = f", largest of {len(every)}" if is_small else ""
    return f"{figures.brief(value, 6)} {most.name}{of}"


def is_by_insns(one: OperationEffect) -> bool:
    """Whether the change of instructions does not contradict a verdict."""
    effect = one.costs.insns.effect.value if one.costs else 0
    word = one.verdict.word
    return effect < 0 if word is Word.FASTER else effect > 0 if word is Word.SLOWER else True


def besides_insns(one: OperationEffect | None) -> list[str]:
    """Return what of a change is no plain instruction: all where instructions do not decide its
    word, else what goes the other way or outweighs them.
    """
    if one is None or one.costs is None or one.verdict.word not in FIRM:
        return []
    found = weighed(one.costs)
    if one.verdict.word is Word.MIXED or not is_by_insns(one):
        return terms_text(found)
    return terms_beyond(found, one.costs.insns.effect.value)


def terms_of(costs: Costs) -> str:
    """Return what an effect consists of, special instructions and string bytes apart; what goes
    the other way than instructions is among those that are named.
    """
    effect = costs.insns.effect.value
    terms = terms_text(weighed(costs))
    contrary = [text for text in terms if (text[0] == "-") == (effect > 0)]
    terms = [*contrary[:1], *(text for text in terms if text not in contrary[:1])]
    if effect and is_shown(costs.insns.effect):
        terms.insert(0, f"{figures.brief(Fraction(round(effect)), 6)} instructions")
    return _listed(terms)


def _listed(terms: Sequence[str]) -> str:
    more = len(terms) - _TERMS
    return ", ".join([*terms[:_TERMS], f"{more} more"] if more > 1 else terms)


def others_of(one: OperationEffect, least: Fraction) -> str:
    """Return how many instructions more or less are left to other tasks, or done by them meanwhile
    where that is not known, with how far that may be off where it is not decided; empty where it is
    a smaller part of the base than matters.
    """
    if one.costs is None or not one.costs.insns.base.value:
        return ""
    effect, base = one.costs.others.effect, one.costs.insns.base.value
    needed = least or _LEAST_OTHERS if is_seen(effect) else _UNDECIDED
    if effect.n < 2 or abs(effect.value) < needed * base:
        return ""
    far = "" if is_seen(effect) else f" +-{figures.short(effect.half_width)}"
    return figures.brief(Fraction(round(effect.value)), 6) + far


def causes(functions: Sequence[FunctionEffect]) -> list[Cause]:
    """Return all functions that changed in sums that add up to the whole; what took the place of
    others is one with them, by the likeness of names or since it was inlined.
    """
    moved = sorted(
        (one for one in functions if one.cost.effect.value),
        key=lambda one: -abs(one.cost.effect.value),
    )
    gone = [one for one in moved if not one.cost.other.value][:_LOOKED_AT]
    new = [one for one in moved if not one.cost.base.value][:_LOOKED_AT]
    groups = {id(one): [one] for one in moved}
    for one, other in _pairs(gone, new):
        ours, theirs = groups[id(one)], groups[id(other)]
        if ours is not theirs:
            ours += theirs
            groups |= dict.fromkeys(map(id, theirs), ours)
    found = {id(group): group for group in groups.values()}.values()
    inlined = inlined_into([group[0] for group in found if len(group) == 1])
    together = [Cause((into, *callees), into) for into, callees in inlined]
    taken = {id(one) for cause in together for one in cause.functions}
    return [*together, *(Cause(tuple(group)) for group in found if id(group[0]) not in taken)]


def is_shown(effect: Estimate) -> bool:
    """Return whether a part of a change may be named: its interval excludes zero, if it has one."""
    return effect.n < 2 or is_seen(effect)


def _pairs(
    gone: Sequence[FunctionEffect], new: Sequence[FunctionEffect]
) -> Iterator[tuple[FunctionEffect, FunctionEffect]]:
    """Each function with the one on the other side whose name is most like its own."""
    for ours, theirs in ((gone, new), (new, gone)):
        for one in ours:
            found = [(_likeness(one.name, other.name), at) for at, other in enumerate(theirs)]
            most, at = max(found, default=(0.0, 0))
            if most >= _ALIKE:
                yield one, theirs[at]


def _likeness(one: str, other: str) -> float:
    """How much of two names is the same, 0 to 1: of their words, whatever underscores they have."""
    ours, theirs = _words(one), _words(other)
    shared = sum(any(_are_alike(word, their) for their in theirs) for word in ours)
    if shared >= min(len(ours), len(theirs)):
        return 1.0
    return shared / (len(ours) + len(theirs) - shared)


@functools.cache
def _words(name: str) -> tuple[str, ...]:
    """The kernel's folios were pages."""
    return tuple(dict.fromkeys(filter(None, name.replace("folio", "page").split("_"))))


@functools.cache
def _are_alike(one: str, other: str) -> bool:
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    return one == other or matcher.ratio() >= _ALIKE_WORDS
