# SPDX-License-Identifier: GPL-2.0-or-later
"""Paths of calls on two sides: sums stay, and what was inlined does not hide what it called."""

from hypothesis import given
from hypothesis import strategies as st

from kdelta.infer.profiles.calls import CallChange, matched_calls, shown_changes
from kdelta.infer.profiles.matching import match_functions
from kdelta.infer.profiles.profile import Selection
from tests.profiles import Stack, profile_of

OWN = Selection()
NAMES = st.sampled_from(["work:main", "f", "f.isra.0", "g", "h", "[m]:k"])
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=5).map(tuple), st.integers(0, 99), min_size=1, max_size=12
)


def changes(a: dict[Stack, int], b: dict[Stack, int]) -> tuple[CallChange, ...]:
    sides = profile_of(a), profile_of(b)
    keys = [[(f.origin, f.name) for f in side.functions] for side in sides]
    return matched_calls(([sides[0]], [sides[1]]), OWN, match_functions(*keys))


def by_path(found: tuple[CallChange, ...]) -> dict[tuple[str, ...], tuple[int, int]]:
    paths: list[tuple[str, ...]] = []
    for one in found:
        above = paths[one.parent] if one.parent >= 0 else ()
        paths.append((*above, one.key[1]))
    return {path: (one.added_own, one.added) for path, one in zip(paths, found, strict=True)}


def test_which_path_brought_it() -> None:
    a: dict[Stack, int] = {("main", "f", "g"): 10, ("main", "h", "g"): 10, ("main",): 1}
    b: dict[Stack, int] = {("main", "f.isra.0", "g"): 10, ("main", "h", "g"): 40, ("main",): 1}
    found = by_path(changes(a, b))
    assert found["work", "main", "h", "g"] == (30, 30)
    assert found["work", "main", "h"] == (0, 30)
    assert found["work", "main", "f"] == (0, 0)
    assert found["work",] == (0, 30)


def test_what_an_inlined_function_called_stays_where_it_is() -> None:
    a: dict[Stack, int] = {("main",): 5, ("main", "gone"): 7, ("main", "gone", "g"): 100}
    b: dict[Stack, int] = {("main",): 12, ("main", "g"): 100}
    found = by_path(changes(a, b))
    assert found == {
        ("work",): (0, 0),
        ("work", "main"): (7, 0),
        ("work", "main", "gone"): (-7, -7),
        ("work", "main", "g"): (0, 0),
    }
    shown = list(shown_changes(changes(a, b), 0.01))
    assert [(one.depth, one.key[1], one.added) for one in shown] == [
        (0, "work", 0),
        (0, "main", 0),
        (0, "gone", -7),
    ]


@given(TREES, TREES)
def test_sums_stay_and_sides_mirror(a: dict[Stack, int], b: dict[Stack, int]) -> None:
    there, back = changes(a, b), changes(b, a)
    assert sum(one.a_own for one in there) == sum(a.values())
    assert sum(one.b_own for one in there) == sum(b.values())
    roots = [one for one in there if one.parent < 0]
    assert sum(one.added for one in roots) == sum(b.values()) - sum(a.values())
    assert by_path(there) == {path: (-own, -whole) for path, (own, whole) in by_path(back).items()}


@given(TREES, TREES, st.floats(0, 1))
def test_what_is_shown_adds_up(a: dict[Stack, int], b: dict[Stack, int], part: float) -> None:
    found = changes(a, b)
    shown = list(shown_changes(found, part))
    if shown and part == 0:
        assert sum(one.added_own for one in shown if not one.cut) == (
            sum(b.values()) - sum(a.values())
        )
    assert all(one.depth >= 0 for one in shown)
    assert len({(i, one.depth, one.key) for i, one in enumerate(shown)}) == len(shown)
