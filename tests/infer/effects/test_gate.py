# SPDX-License-Identifier: GPL-2.0-or-later
"""Exit codes from verdicts."""

from hypothesis import given
from hypothesis import strategies as st

from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.gate import BOUNDED, Decision, Exit, Judged, decide_gate

words = st.lists(st.sampled_from(Word))


def judged(*found: Word) -> list[Judged]:
    return [Judged(f"region{number}", word) for number, word in enumerate(found)]


def test_what_is_not_slower_is_good() -> None:
    good = judged(Word.SAME, Word.FASTER, Word.PLACEMENT_ONLY, Word.NOT_SLOWER)
    assert decide_gate(good) == Decision(Exit.NOT_SLOWER, ())


def test_one_slower_region_is_bad_whatever_the_others_are() -> None:
    found = judged(Word.FASTER, Word.UNRESOLVED, Word.SLOWER, Word.NOT_COMPARABLE)
    assert decide_gate(found) == Decision(Exit.SLOWER, ("region2",))


def test_what_nothing_knows_is_skipped_with_its_reason() -> None:
    found = [Judged("fork", Word.UNRESOLVED, "few layouts"), Judged("mmap", Word.NOT_COMPARABLE)]
    assert decide_gate([*judged(Word.SAME), *found]) == Decision(
        Exit.CANNOT_TELL, ("fork: few layouts", "mmap: not comparable")
    )
    assert decide_gate([]) == Decision(Exit.CANNOT_TELL, ("nothing was measured",))


def test_unresolved_with_its_upper_bound_within_the_margin_is_good() -> None:
    bounded = Judged("fork", Word.UNRESOLVED, "few layouts", bounded=True)
    assert decide_gate([bounded]) == Decision(Exit.NOT_SLOWER, ())
    assert bounded.words == BOUNDED


def test_a_bound_makes_neither_slower_nor_not_comparable_good() -> None:
    for word, code in ((Word.SLOWER, Exit.SLOWER), (Word.NOT_COMPARABLE, Exit.CANNOT_TELL)):
        one = Judged("fork", word, bounded=True)
        assert decide_gate([one]).exit is code
        assert one.words == word


def test_a_kernel_that_does_not_build_is_skipped_even_where_something_is_slower() -> None:
    failed = ["build-failed: kernel/fork.c"]
    assert decide_gate(judged(Word.SLOWER), failed) == Decision(Exit.CANNOT_TELL, tuple(failed))


def test_the_codes_are_what_git_bisect_run_takes_them_for() -> None:
    assert {word.name: word.value for word in Exit} == {
        "NOT_SLOWER": 0,
        "SLOWER": 1,
        "CANNOT_TELL": 125,
        "BROKEN": 255,
    }


@given(words)
def test_only_a_slower_region_is_ever_bad(found: list[Word]) -> None:
    decision = decide_gate(judged(*found))
    assert (decision.exit is Exit.SLOWER) == (Word.SLOWER in found)
    assert decision.exit is not Exit.BROKEN
    assert (decision.because == ()) == (decision.exit is Exit.NOT_SLOWER)
