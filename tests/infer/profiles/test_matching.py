# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions of two kernels are one: nothing is lost, nothing is taken twice, sides mirror."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.infer.profiles.diff import diff_lines
from kdelta.infer.profiles.matching import Inlined, Key, MatchKind, match_functions, match_inlined

ORIGINS = ["kernel", "[nf_nat]", "[ext4]", "[vdso]", "[unknown]", "libc.so.6", "syscalls"]
NAMES = ["f", "g", "f.isra.0", "f.part.0.cold", "g.cold", "g.constprop.1", "[no symbol]", "<b>$(x)"]
KEYS = st.sets(st.tuples(st.sampled_from(ORIGINS), st.sampled_from(NAMES)))
MIRROR = {MatchKind.ONLY_A: MatchKind.ONLY_B, MatchKind.ONLY_B: MatchKind.ONLY_A}


@given(KEYS, KEYS)
def test_each_function_is_in_one_match(a: set[Key], b: set[Key]) -> None:
    matches = match_functions(a, b)
    assert Counter(key for match in matches for key in match.a) == Counter(a)
    assert Counter(key for match in matches for key in match.b) == Counter(b)
    for match in matches:
        assert match.a or match.b
        assert (match.how is MatchKind.ONLY_A) == (not match.b)
        assert (match.how is MatchKind.ONLY_B) == (not match.a)


@given(KEYS, KEYS)
def test_sides_may_be_swapped(a: set[Key], b: set[Key]) -> None:
    there = {(m.a, m.b, m.how) for m in match_functions(a, b)}
    back = {(m.b, m.a, MIRROR.get(m.how, m.how)) for m in match_functions(b, a)}
    assert there == back


@given(KEYS)
def test_a_side_matches_itself(keys: set[Key]) -> None:
    for match in match_functions(keys, keys):
        assert match.a == match.b
        assert match.how is MatchKind.SAME


@given(
    st.dictionaries(st.tuples(st.sampled_from(ORIGINS), st.sampled_from(NAMES)), st.fractions(0)),
    st.dictionaries(st.tuples(st.sampled_from(ORIGINS), st.sampled_from(NAMES)), st.fractions(0)),
)
def test_sums_stay(a: dict[Key, Fraction], b: dict[Key, Fraction]) -> None:
    lines = diff_lines(a, b)
    assert sum(line.a for line in lines) == sum(a.values())
    assert sum(line.b for line in lines) == sum(b.values())
    back = {(line.match.name, line.match.b, line.match.a): -line.added for line in diff_lines(b, a)}
    assert {(line.match.name, line.match.a, line.match.b): line.added for line in lines} == back
    assert [line.added for line in lines] == sorted((line.added for line in lines), reverse=True)


@pytest.mark.parametrize(
    ("a", "b", "how", "moved_from"),
    [
        ([("kernel", "f")], [("kernel", "f")], MatchKind.SAME, None),
        ([("kernel", "f")], [("kernel", "f.isra.0")], MatchKind.VARIANT, None),
        ([("kernel", "f.constprop.0")], [("kernel", "f.constprop.1")], MatchKind.VARIANT, None),
        ([("kernel", "f")], [("kernel", "f"), ("kernel", "f.part.0")], MatchKind.VARIANT, None),
        (
            [("kernel", "f.lto_priv.0")],
            [("kernel", "f"), ("kernel", "f.cold")],
            MatchKind.VARIANT,
            None,
        ),
        ([("[nf_nat]", "f")], [("kernel", "f")], MatchKind.MOVED, "[nf_nat]"),
        ([("[a]", "f.isra.0")], [("[b]", "f")], MatchKind.MOVED, "[a]"),
        ([("libc.so.6", "f")], [("libc-2.31.so", "f")], MatchKind.MOVED, "libc.so.6"),
        ([("kernel", "f")], [], MatchKind.ONLY_A, None),
        ([], [("kernel", "f")], MatchKind.ONLY_B, None),
    ],
)
def test_one_match(a: list[Key], b: list[Key], how: MatchKind, moved_from: str | None) -> None:
    (match,) = match_functions(a, b)
    assert (match.name, match.how, match.moved_from) == ("f", how, moved_from)
    assert (match.a, match.b) == (tuple(a), tuple(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        # Two that it may be: neither is taken for the other.
        ([("[a]", "f"), ("[b]", "f")], [("kernel", "f")]),
        ([("kernel", "f")], [("[a]", "f"), ("[b]", "f")]),
        # The kernel's own is no user's.
        ([("kernel", "memcpy")], [("libc.so.6", "memcpy")]),
        ([("kernel", "memcpy")], [("[vdso]", "memcpy")]),
        # What has no name belongs to none.
        ([("a.out", "[no symbol]")], [("b.out", "[no symbol]")]),
        ([("kernel", "f")], [("kernel", "g")]),
    ],
)
def test_no_match(a: list[Key], b: list[Key]) -> None:
    assert {match.how for match in match_functions(a, b)} == {MatchKind.ONLY_A, MatchKind.ONLY_B}


def test_a_partner_is_not_taken_away() -> None:
    """What is in both stays where it is, though a module has gained one of that name."""
    a, b = [("kernel", "f")], [("kernel", "f"), ("[a]", "f")]
    found = {match.origin: match.how for match in match_functions(a, b)}
    assert found == {"kernel": MatchKind.SAME, "[a]": MatchKind.ONLY_B}


HOSTS = st.dictionaries(
    st.tuples(st.sampled_from(ORIGINS), st.sampled_from(NAMES)), st.fractions(10, 20)
)
CHAINS = st.dictionaries(
    st.tuples(st.sampled_from(ORIGINS), st.sampled_from(NAMES)),
    st.dictionaries(
        st.lists(st.sampled_from(["f", "g", "h"]), min_size=1, max_size=3).map(tuple),
        st.fractions(0, 1),
        max_size=3,
    ),
)


@given(HOSTS, HOSTS, CHAINS, CHAINS)
def test_sums_stay_with_what_was_inlined(
    a: dict[Key, Fraction], b: dict[Key, Fraction], ours: Inlined, theirs: Inlined
) -> None:
    lines = diff_lines(a, b, (ours, theirs))
    assert sum(line.a for line in lines) == sum(a.values())
    assert sum(line.b for line in lines) == sum(b.values())
    assert all(line.a >= 0 and line.b >= 0 for line in lines)
    back = diff_lines(b, a, (theirs, ours))
    there = {(line.match.name, line.match.a, line.match.b): line.added for line in lines}
    assert there == {(one.match.name, one.match.b, one.match.a): -one.added for one in back}


def test_what_was_inlined_has_its_partner() -> None:
    a = {("kernel", "f"): Fraction(500), ("kernel", "g.isra.0"): Fraction(1000)}
    b = {("kernel", "f"): Fraction(1400), ("kernel", "h"): Fraction(7)}
    inlined: Inlined = {("kernel", "f"): {("g",): Fraction(900), ("other",): Fraction(100)}}
    lines = {line.match.name: line for line in diff_lines(a, b, ({}, inlined))}
    assert [lines["g"].a, lines["g"].b] == [Fraction(1000), Fraction(900)]
    assert lines["g"].match.how is MatchKind.INLINED
    assert lines["g"].match.hosts == (("kernel", "f"),)
    assert [lines["f"].a, lines["f"].b] == [Fraction(500), Fraction(500)]
    assert lines["f"].match.how is MatchKind.SAME
    assert lines["h"].match.how is MatchKind.ONLY_B
    # What both have alone stays with its host, wherever it is inlined as well.
    both = {("kernel", "f"): Fraction(5), ("kernel", "g"): Fraction(1)}
    matches, ours, theirs = match_inlined(both, both, (inlined, inlined))
    assert ours == theirs == both
    assert {match.how for match in matches} == {MatchKind.SAME}


def test_what_is_inlined_within_an_inlined_function_is_its_own() -> None:
    a = {("kernel", "f"): Fraction(5), ("kernel", "g"): Fraction(10)}
    b = {("kernel", "f"): Fraction(15)}
    inlined: Inlined = {("kernel", "f"): {("g",): Fraction(4), ("g", "deep"): Fraction(6)}}
    lines = {line.match.name: line for line in diff_lines(a, b, ({}, inlined))}
    assert lines["g"].b == 10
    assert "deep" not in lines
