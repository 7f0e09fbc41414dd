# SPDX-License-Identifier: GPL-2.0-or-later
"""What a gate answers, in one line."""

from collections import Counter
from collections.abc import Sequence

from kdelta.infer.effects.gate import Decision, Exit, Judged
from kdelta.report.lines import ascii_only

_NAMED = 5
ANSWERS = {
    Exit.NOT_SLOWER: "not slower",
    Exit.SLOWER: "slower",
    Exit.CANNOT_TELL: "cannot tell",
}
"""What an exit code says, in words."""


def gate_line(decision: Decision, judged: Sequence[Judged]) -> str:
    """The answer, and why."""
    why = list(decision.because[:_NAMED])
    if len(decision.because) > _NAMED:
        why.append(f"and {len(decision.because) - _NAMED} more")
    if decision.exit is Exit.NOT_SLOWER:
        words = Counter(one.words for one in judged)
        why = [f"{count} {word}" for word, count in sorted(words.items())]
    return ascii_only(f"{ANSWERS[decision.exit]}: {', '.join(why)}".replace("\n", " ")) + "\n"
