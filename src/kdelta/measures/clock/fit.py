# SPDX-License-Identifier: GPL-2.0-or-later
"""What path and placement let one expect of times, which operations are worth timing by that, and
how the clock's verdicts fit it: one word from three.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import OPEN, Effects, OperationEffect, Word
from kdelta.measures.model import RunPair
from kdelta.report.measured import Effect, MeasuredEffects

NO_DIFFERENCE = "no difference"
BY_PATH = "explained by the path"
IN_PART = "explained by the path in part: the time changes by more than three times as much"
BY_PLACEMENT = "explained by placement"
BY_CYCLES = "explained by model cycles"
DISAGREE = "clock and model disagree"
PATH_SAME = "the path is the same: where the linker put the code, or what no path shows"
OWN_LINKS = "the path is the same, and each boot had a link of its own: what no path shows"
_FAR = 3
SAMPLE = 3
"""How many operations are timed of those that nothing is expected of."""

Draw = Callable[[Sequence[str], int], Collection[str]]
"""Draws so many of the names at random."""


class Expected(msgspec.Struct, frozen=True):
    """What is known of an operation before it is timed.

    path       the verdict on its path
    change     by how much its path differs, as a fraction of the base's; None where not known
    cycles     that on its model cycles over all layouts; None where these are not known
    as_linked  by how much the model cycles of the two builds differ, as a fraction of the base's,
               over all prices of misses; None where that is not known
    """

    path: Word
    cycles: Word | None = None
    as_linked: Interval | None = None
    change: float | None = None

    def is_same(self, margin: float) -> bool:
        """Return whether path and, as far as that is known, placement are equal within it."""
        placed = self.as_linked
        return self.path is Word.SAME and (placed is None or _within(placed, margin))


def expected_of(pair: RunPair, *, by_model: bool) -> dict[str, Expected]:
    """Return by operation what is expected of times. by_model: whether the clock is that of a CPU,
    of which model cycles say something.
    """
    expected = expected_by(pair.path)
    for one in (one for judged in pair.judged if by_model for one in judged.found.effects):
        if one.as_linked and one.region in expected:
            path = expected[one.region]
            known = {"cycles": one.word, "as_linked": one.as_linked}
            expected[one.region] = msgspec.structs.replace(path, **known)
    return expected


def expected_by(path: Effects) -> dict[str, Expected]:
    """Return by operation what the path alone lets one expect."""
    return {one.name: Expected(one.verdict.word, change=_change_of(one)) for one in path.operations}


def _change_of(one: OperationEffect) -> float | None:
    percent = one.costs.insns.percent if one.costs else None
    return None if percent is None else float(percent) / 100


def worth_timing(
    expected: Mapping[str, Expected], margin: float, draw: Draw
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the operations to time, and those that are left out: of which nothing is expected,
    besides a sample that is drawn.
    """
    equal = [name for name, one in expected.items() if one.is_same(margin)]
    drawn = set(draw(equal, min(SAMPLE, len(equal))))
    left_out = tuple(name for name in equal if name not in drawn)
    return tuple(name for name in expected if name not in left_out), left_out


def fitted(
    found: MeasuredEffects, expected: Mapping[str, Expected], margin: float, *, links: bool = False
) -> MeasuredEffects:
    """Return the verdicts with how each decided one fits what was expected; and a note on those
    that do not fit it. links: each boot had a link of its own, so that placement is left out.
    """
    effects = tuple(
        msgspec.structs.replace(one, reason=_words(fit(one, expected[one.region], margin), links))
        if one.region in expected and one.word not in OPEN
        else one
        for one in found.effects
    )
    notes = (*found.notes, *_disagreements(effects))
    return msgspec.structs.replace(found, effects=effects, notes=notes)


def _words(reason: str, links: bool) -> str:
    return OWN_LINKS if links and reason == PATH_SAME else reason


def fit(effect: Effect, expected: Expected, margin: float) -> str:
    """Return how a decided verdict by the clock fits what was expected of it."""
    if expected.path is Word.SAME:
        return _of_same_path(effect, expected.as_linked, margin)
    word, path = effect.word, expected.path
    if word is path:
        return IN_PART if _is_more(effect.change, expected.change, margin) else BY_PATH
    if word is not Word.SAME and word is expected.cycles:
        return BY_CYCLES
    if path in OPEN:
        return f"the path is {path}"
    if word is Word.SAME:
        return f"the path is {path}, and the time is not by more than the margin"
    return DISAGREE


def _of_same_path(effect: Effect, placed: Interval | None, margin: float) -> str:
    """Return the same where the paths are equal. placed: what the builds as linked differ by."""
    if effect.word is Word.SAME:
        return DISAGREE if placed and _beyond(placed, margin) else NO_DIFFERENCE
    if placed is None:
        return PATH_SAME
    return BY_PLACEMENT if effect.change and _meet(placed, effect.change) else DISAGREE


def _disagreements(effects: Iterable[Effect]) -> Iterable[str]:
    names = [one.region for one in effects if one.reason == DISAGREE]
    if names:
        yield (
            f"{DISAGREE} on {', '.join(names)}: the reason may be among the paths that the "
            "emulated CPU takes otherwise, which are listed, or in what the model leaves out"
        )


def _is_more(time: Interval | None, path: float | None, margin: float) -> bool:
    """Return whether times change by far more than instructions do, whose costs differ."""
    if time is None or path is None:
        return False
    return min(abs(time.low), abs(time.high)) > _FAR * abs(path) + margin


def _within(one: Interval, margin: float) -> bool:
    return -margin <= one.low and one.high <= margin


def _beyond(one: Interval, margin: float) -> bool:
    """Return whether no figure of the interval is within the margin."""
    return one.low > margin or one.high < -margin


def _meet(one: Interval, other: Interval) -> bool:
    """Return whether the intervals have a figure in common."""
    return one.low <= other.high and other.low <= one.high
