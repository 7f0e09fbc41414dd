# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts' words: in which order they are listed, what colour they have; and words in lists."""

from collections import Counter
from collections.abc import Sequence

from kdelta.infer.effects.effects import OPEN, Word
from kdelta.infer.effects.gate import Exit
from kdelta.report.document import Outcome

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
    **dict.fromkeys(OPEN, "unresolved"),
    Word.NOT_SLOWER: "same",
    Word.SAME: "same",
    Word.NOT_COMPARABLE: "same",
}
"""By the verdict's word what colour it has (report/html/static/page.css)."""


OUTCOMES = {
    Word.SLOWER: Outcome.SLOWER,
    Word.FASTER: Outcome.OK,
    Word.SAME: Outcome.OK,
    Word.NOT_SLOWER: Outcome.OK,
    Word.PLACEMENT_ONLY: Outcome.OK,
    **dict.fromkeys(OPEN, Outcome.UNKNOWN),
}
"""What a verdict's word means to somebody who waits for yes or no."""


COUNTED = (
    "instructions that the measured tasks execute, kernel and user; a string operation "
    "(rep movs) is one; interrupts and other tasks are apart"
)
"""What the path of an operation is."""

OTHERS = {"interrupts": "interrupts", "other": "other tasks"}
"""By context whose work is not that of the measured tasks."""

ANSWERS = {
    Exit.NOT_SLOWER: "not slower",
    Exit.SLOWER: "slower",
    Exit.CANNOT_TELL: "cannot tell",
    Exit.BROKEN: "cannot tell",
}
"""What an exit code says."""

PERTURBED = "boot, seed, memory, phase and warm-up"


def tone_of(found: Counter[Word]) -> str:
    """The colour of so many verdicts: of neither where some are slower and some are faster."""
    if found[Word.SLOWER] and found[Word.FASTER]:
        return "mixed"
    return TONES[next((word for word in ORDER[:-2] if found[word]), Word.SAME)]


def counted(count: int, one: str, many: str = "") -> str:
    """So many of something."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def listed(texts: Sequence[str]) -> str:
    """Texts in a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def some(texts: Sequence[str], most: int) -> str:
    """The first texts, and how many more there are, if there are several more."""
    if len(texts) <= most + 1:
        return listed(texts)
    return listed([*texts[:most], f"{len(texts) - most} more"])
