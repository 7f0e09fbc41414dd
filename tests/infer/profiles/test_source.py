# SPDX-License-Identifier: GPL-2.0-or-later
"""What source lines cost: all is somebody's line, in one run and in the difference of two."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.source_lines import Frame, SourceLines
from kdelta.infer.profiles.profile import Selection
from kdelta.infer.profiles.source import (
    SourceLine,
    by_line,
    executed_addresses,
    inlined_in,
    line_changes,
)
from tests.profiles import FUNCTION_BYTES, profile_of

OWN = Selection()
PROFILE = profile_of({("work:main",): 10, ("work:main", "f"): 5, ("g",): 7, ("irq",): 2},
                     contexts={("irq",): 1})  # fmt: skip
LINES = SourceLines(
    {
        ("kernel", 2 * FUNCTION_BYTES): (
            Frame("inner", "lib/inner.h", 3),
            Frame("middle", "lib/f.c", 8),
            Frame("f", "lib/f.c", 20),
        ),
        ("kernel", 3 * FUNCTION_BYTES): (Frame("g", "lib/f.c", 30),),
    }
)


def test_each_instruction_is_of_its_innermost_line() -> None:
    assert by_line([PROFILE, PROFILE], OWN, LINES) == {
        SourceLine("work", "", 0, "main"): 20,
        SourceLine("kernel", "lib/inner.h", 3, "inner"): 10,
        SourceLine("kernel", "lib/f.c", 30, "g"): 14,
    }
    everything = Selection(contexts=("own", "interrupts", "other"))
    assert by_line([PROFILE], everything, LINES)[SourceLine("kernel", "", 0, "irq")] == 2


def test_which_addresses_are_asked_for() -> None:
    assert executed_addresses([PROFILE], OWN) == {
        "work": {FUNCTION_BYTES},
        "kernel": {2 * FUNCTION_BYTES, 3 * FUNCTION_BYTES},
    }


def test_what_was_inlined() -> None:
    assert inlined_in([PROFILE], OWN, LINES) == {("kernel", "f"): {("middle", "inner"): 5}}


FILES = st.sampled_from(["", "a.c", "b.h"])
SIDES = st.dictionaries(
    st.builds(
        lambda file, line, function: SourceLine("kernel", file, line if file else 0, function),
        FILES,
        st.integers(1, 6),
        st.sampled_from(["f", "g", "f.isra.0"]),
    ),
    st.integers(1, 100),
)
TEXTS = st.one_of(st.none(), st.lists(st.sampled_from("xyz"), min_size=6, max_size=6))


@given(SIDES, SIDES, TEXTS, TEXTS)
def test_sums_stay(
    a: dict[SourceLine, int],
    b: dict[SourceLine, int],
    ours: list[str] | None,
    theirs: list[str] | None,
) -> None:
    changes = line_changes(a, b, lambda _o, _f: ours, lambda _o, _f: theirs)
    assert sum(one.a for one in changes) == sum(a.values())
    assert sum(one.b for one in changes) == sum(b.values())
    back = line_changes(b, a, lambda _o, _f: theirs, lambda _o, _f: ours)
    # Lines that may be one of several are matched from either side, so only the whole mirrors.
    assert sum(one.added for one in changes) == -sum(one.added for one in back)
    assert [one.added for one in changes] == sorted((o.added for o in changes), reverse=True)


def test_lines_that_moved_are_the_same_lines() -> None:
    def old(_origin: str, _file: str) -> Sequence[str]:
        return ["int f(void)", "{", "  one();", "  two();", "}"]

    def new(_origin: str, _file: str) -> Sequence[str]:
        return ["/* said */", "int f(void)", "{", "  one();", "  more();", "  two();", "}"]

    def line(number: int, function: str = "f") -> SourceLine:
        return SourceLine("kernel", "a.c", number, function)

    a = {line(3): 10, line(4): 20}
    b = {line(4): 10, line(5): 30, line(6, "f.isra.0"): 21}
    found = [(one.added, one.text) for one in line_changes(a, b, old, new)]
    assert found == [(30, "more();"), (1, "two();"), (0, "one();")]
    # Without the text, numbers are all that is known.
    sides = [(one.a, one.b) for one in line_changes(a, b)]
    assert sides == [(0, 30), (0, 21), (10, 0), (20, 10)]


def test_a_line_that_is_gone() -> None:
    a = {SourceLine("kernel", "a.c", 2, "f"): 5, SourceLine("kernel", "", 0, "g"): 1}
    (kept, gone) = line_changes(a, {SourceLine("kernel", "", 0, "g"): 1})
    assert (gone.a_line, gone.b_line, gone.added) == (SourceLine("kernel", "a.c", 2, "f"), None, -5)
    assert kept.added == 0
