# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures and verdicts as a page has them: digits in groups, a real minus, and words in lists."""

import math
from collections import Counter
from fractions import Fraction

from kdelta.infer.effects import Verdict, Word
from kdelta.infer.ensembles import Interval
from kdelta.infer.estimate import Estimate
from kdelta.report import figures

MINUS = "\N{MINUS SIGN}"
THIN = "\N{NARROW NO-BREAK SPACE}"
PLUS_MINUS = "\N{PLUS-MINUS SIGN}"

ORDER = (
    Word.SLOWER,
    Word.FASTER,
    Word.MIXED,
    Word.NOT_STEADY,
    Word.DEPENDS_ON_STATE,
    Word.DEPENDS_ON_SPEED,
    Word.PLACEMENT_ONLY,
    Word.UNRESOLVED,
    Word.NOT_SLOWER,
    Word.SAME,
    Word.NOT_COMPARABLE,
)
"""Of words where they are listed: what asks for a look comes first."""

TONES: dict[str, str] = {
    Word.SLOWER: "slower",
    Word.FASTER: "faster",
    Word.PLACEMENT_ONLY: "placement",
    Word.MIXED: "unresolved",
    Word.NOT_STEADY: "unresolved",
    Word.DEPENDS_ON_STATE: "unresolved",
    Word.DEPENDS_ON_SPEED: "unresolved",
    Word.UNRESOLVED: "unresolved",
    Word.NOT_SLOWER: "same",
    Word.SAME: "same",
    Word.NOT_COMPARABLE: "same",
}
"""By the verdict's word what colour it has (report/html/svg.py)."""

_PLACES = 2


def tone_of(found: Counter[Word]) -> str:
    """The colour of so many verdicts: of neither where some are slower and some are faster."""
    if found[Word.SLOWER] and found[Word.FASTER]:
        return "mixed"
    return TONES[next((word for word in ORDER[:-2] if found[word]), Word.SAME)]


def number(value: Fraction | float) -> str:
    """A figure: whole ones as they are, others with two decimals, without if it is large."""
    return _grouped(Fraction(value))


def signed(value: Fraction | float) -> str:
    """A difference. One that is too small to be seen keeps its sign."""
    exact = Fraction(value)
    if exact == 0:
        return "0"
    text = _grouped(abs(exact))
    return ("+" if exact > 0 else MINUS) + text


def hundredths(value: int) -> str:
    """A difference that was rounded to hundredths."""
    return signed(Fraction(value, figures.SCALE))


def _grouped(value: Fraction) -> str:
    places = 0 if value.denominator == 1 or abs(value) >= figures.WHOLE_FROM else _PLACES
    return f"{float(value):,.{places}f}".replace(",", THIN).replace("-", MINUS)


def percent(value: Fraction | None) -> str:
    """A change in per cent."""
    return figures.percent(value).replace("-", MINUS).replace("%", f"{THIN}%")


def fraction(value: float) -> str:
    """A fraction in per cent; what has no end is "any"."""
    return percent(Fraction(100 * value)) if math.isfinite(value) else "any"


def interval(found: Interval) -> str:
    """An interval of a fraction, in per cent."""
    ends = [fraction(found.low), fraction(found.high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def ends(low: float, high: float) -> str:
    """From one figure to another."""
    texts = [number(round(end, _PLACES)) for end in (low, high)]
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} to {texts[1]}"


def spread(effect: Estimate) -> str:
    """How far an effect may be off."""
    return figures.spread(effect).replace("+-", PLUS_MINUS)


def with_spread(effect: Estimate) -> str:
    """An effect with its interval or the word exact."""
    return f"{signed(effect.value)} ({spread(effect)})"


def verdict_note(verdict: Verdict) -> str:
    """What a verdict's word says, with its reach or its reason."""
    if verdict.word is Word.SAME:
        return "exactly" if verdict.within == 0 else f"within {number(verdict.within or 0)}"
    return verdict.reason


def counted(count: int, one: str, many: str = "") -> str:
    """So many of something."""
    return f"{number(Fraction(count))} {one if count == 1 else many or one + 's'}"


def listed(texts: list[str]) -> str:
    """Texts in a sentence."""
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
