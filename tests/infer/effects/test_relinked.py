# SPDX-License-Identifier: GPL-2.0-or-later
"""The same code relinked has no verdict of its own on its path."""

import pytest

from kdelta.infer.effects.chance import MOVED, of_relinked
from kdelta.infer.effects.effects import Word, compare_runs
from tests.synthetic import interrupts, own, region, run


@pytest.mark.parametrize("change", [7, -7])
def test_a_path_that_addresses_moved_is_placement_only(change: int) -> None:
    runs = [
        run(
            region("moved", {own("bsearch"): 100 + by, interrupts("tick"): 50 + by}, 10),
            region("still", {own("f"): 100}, 10),
        )
        for by in (0, change)
    ]
    plain = compare_runs([runs[0]] * 2, [runs[1]] * 2)
    assert plain.operations[0].verdict.word is (Word.SLOWER if change > 0 else Word.FASTER)
    found = of_relinked(plain, ("moved", "still"))
    moved, still = found.operations
    assert (moved.verdict.word, moved.verdict.reason) == (Word.PLACEMENT_ONLY, MOVED)
    assert still.verdict.word is Word.SAME
    assert still.verdict.within == 0
    assert moved.costs == plain.operations[0].costs
    assert {row.verdict.word for row in found.background} <= {Word.PLACEMENT_ONLY, Word.SAME}


def test_other_code_keeps_its_verdicts() -> None:
    runs = [
        run(region("a", {own("f"): 100 + by}, 10), region("b", {own("f"): 100 + by}, 10))
        for by in (0, 7)
    ]
    plain = compare_runs([runs[0]] * 2, [runs[1]] * 2)
    assert of_relinked(plain, ()) is plain
    words = [one.verdict.word for one in of_relinked(plain, ("b",)).operations]
    assert words == [Word.SLOWER, Word.PLACEMENT_ONLY]
