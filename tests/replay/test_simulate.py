# SPDX-License-Identifier: GPL-2.0-or-later
"""The replay against a cache written for clarity, in all geometries and by all ways through it."""

from typing import Any, cast, get_args

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.arrays import U64
from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.model import Cache, Replacement
from kdelta.host.native import build_part
from kdelta.replay.simulate import Kind, PlacedBlocks, PreparedTrace
from kdelta.spec.errors import LabError, UserError

from .traces import (
    INTERRUPTS,
    L1I,
    OTHER,
    OWN,
    Block,
    Found,
    Made,
    caches,
    looping,
    made_traces,
    make_trace,
    naive_branches,
    naive_lines,
    replay,
)

pytestmark = pytest.mark.long


def assert_as_naive(made: Made, cache: Cache, kind: Kind, **how: Any) -> None:
    trace, placed, layouts = made
    naive = naive_branches if kind == "branches" else naive_lines
    found = PreparedTrace(trace, placed).replay(layouts, cache, kind=kind, **how)
    assert found.by_function is not None
    for index, layout in enumerate(layouts):
        expected = naive(trace, placed, layout, cache, warm=how.get("warm", True))
        assert Found(found.total[index].tolist(), found.by_function[index].tolist()) == expected


@pytest.mark.slow
@given(made_traces(), caches, st.booleans(), st.booleans(), st.booleans())
def test_lines_are_those_of_a_plain_cache(
    made: Made, cache: Cache, warm: bool, memo: bool, portable: bool
) -> None:
    assert_as_naive(made, cache, "lines", warm=warm, memo=memo, portable=portable, threads=1)


@given(made_traces(), caches, st.booleans(), st.booleans())
def test_branches_are_those_of_a_plain_table(
    made: Made, cache: Cache, warm: bool, memo: bool
) -> None:
    assert_as_naive(made, cache, "branches", warm=warm, memo=memo, threads=1)


@pytest.mark.slow
def test_the_library_compiles_without_warnings() -> None:
    assert build_part("replay", strict=True).is_file()


@pytest.mark.parametrize("kind", ["lines", "branches"])
@pytest.mark.parametrize("noise", [0, 7])
def test_a_loop_is_simulated_only_while_it_is_new(kind: Kind, noise: int) -> None:
    trace, placed, layouts = looping(700, noise=noise)
    prepared = PreparedTrace(trace, placed)
    with_memo = prepared.replay(layouts, L1I, kind=kind, threads=1)
    work = prepared.work()
    assert work.simulated * 20 < work.units
    without = prepared.replay(layouts, L1I, kind=kind, memo=False, threads=1)
    assert prepared.work().simulated - work.simulated == work.units
    assert with_memo.total.tolist() == without.total.tolist()
    assert with_memo.by_function is not None
    assert without.by_function is not None
    assert with_memo.by_function.tolist() == without.by_function.tolist()
    assert (with_memo.by_function.sum(axis=1) == with_memo.total.sum(axis=1)).all()
    assert with_memo.total[:, OWN].max() > 700
    assert (with_memo.total[:, INTERRUPTS].max() > 0) == bool(noise)


@pytest.mark.parametrize("threads", [2, 3, 16, 400])
def test_threads_do_not_change_the_result(threads: int) -> None:
    trace, placed, layouts = looping(50, noise=3)
    one = replay(trace, placed, layouts, L1I, threads=1)
    many = replay(trace, placed, layouts, L1I, threads=threads)
    assert one.by_function is not None
    assert many.by_function is not None
    assert one.total.tolist() == many.total.tolist()
    assert one.by_function.tolist() == many.by_function.tolist()
    assert len(np.unique(one.total[:, OWN])) > 1


@pytest.mark.parametrize(
    ("items", "calls"), [(1 << 28, 2), (4 * 50 * 18 * 16, 3), (50 * 18 * 16, 9), (1, 9)]
)
def test_of_a_long_trace_few_layouts_are_replayed_at_a_time(
    items: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that Ctrl-C is heard between them."""
    monkeypatch.setattr("kdelta.replay.simulate._ITEMS_A_CALL", items)
    trace, placed, layouts = looping(50)
    prepared = PreparedTrace(trace, placed)
    called: list[int] = []
    monkeypatch.setattr("kdelta.replay.native.check_status", called.append)
    found = prepared.replay(layouts, L1I, threads=1)
    assert len(called) == calls
    assert found.total.tolist() == replay(trace, placed, layouts, L1I).total.tolist()


def test_functions_need_not_be_asked_for() -> None:
    trace, placed, layouts = looping(50, noise=3)
    asked = replay(trace, placed, layouts, L1I)
    unasked = replay(trace, placed, layouts, L1I, by_function=False)
    assert unasked.by_function is None
    assert unasked.total.tolist() == asked.total.tolist()


def test_what_fits_has_no_misses_once_warm() -> None:
    trace, placed, layouts = looping(3)
    large = Cache(sets=64, ways=8, line_bytes=64)
    assert replay(trace, placed, layouts, large).total.sum() == 0
    assert replay(trace, placed, layouts, large, warm=False).total.sum(axis=1).min() > 100
    whole = Cache(sets=1, ways=512, line_bytes=64)
    assert replay(trace, placed, layouts, whole).total.sum() == 0


def test_a_page_is_a_longer_line() -> None:
    trace, placed, layouts = looping(3)
    pages = replay(trace, placed, layouts, Cache(1, 2, 4096), kind="pages")
    assert pages.total.tolist() == replay(trace, placed, layouts, Cache(1, 2, 4096)).total.tolist()
    assert pages.total.sum() > 0


def test_data_is_passed_over() -> None:
    trace, placed, layouts = looping(5)
    items = np.insert(trace.items, 5, DATA | 77)
    starts = trace.starts + (np.arange(len(trace.starts)) > 0).astype(np.uint64)
    with_data = msgspec.structs.replace(trace, items=items, starts=starts)
    assert (
        replay(with_data, placed, layouts, L1I).total.tolist()
        == replay(trace, placed, layouts, L1I).total.tolist()
    )


def test_an_empty_trace_and_no_layouts() -> None:
    trace, placed = make_trace([], [], [])
    assert replay(trace, placed, np.zeros((2, 0), dtype=np.uint64), L1I).total.tolist() == [
        [0, 0, 0],
        [0, 0, 0],
    ]
    trace, placed, layouts = looping(2)
    assert replay(trace, placed, layouts[:0], L1I).total.shape == (0, 3)


def changed(trace: Trace, name: str, at: int, value: int) -> Trace:
    column = getattr(trace, name).copy()
    column[at] = value
    return msgspec.structs.replace(trace, **{name: column})


@pytest.mark.parametrize(
    ("name", "at", "value", "what"),
    [
        ("items", 3, 320, "a block that is not there"),
        ("items", 3, DATA - 1, "a block that is not there"),
        ("sequence", 7, 20, "a piece that is not there"),
        ("contexts", 7, 3, "a context that is not there"),
        ("starts", 2, 1 << 40, "a piece ends before it starts"),
        ("starts", 0, 1, "not its items"),
        ("starts", -1, 319, "not its items"),
        ("sizes", 0, 0, "impossible size"),
        ("sizes", 0, 1 << 20, "impossible size"),
    ],
)
def test_a_damaged_trace_is_refused(name: str, at: int, value: int, what: str) -> None:
    trace, placed, layouts = looping(2)
    with pytest.raises(LabError, match=f"region made is damaged.*{what}"):
        replay(changed(trace, name, at, value), placed, layouts, L1I)


@pytest.mark.parametrize("name", ["sizes", "insns", "sequence", "contexts", "items"])
def test_a_trace_that_was_cut_off_is_refused(name: str) -> None:
    trace, placed, layouts = looping(2)
    cut = msgspec.structs.replace(trace, **{name: getattr(trace, name)[:-1]})
    with pytest.raises(LabError, match="region made is damaged"):
        replay(cut, placed, layouts, L1I)


def test_a_placement_of_another_trace_is_refused() -> None:
    trace, placed, layouts = looping(2)
    short = PlacedBlocks(placed.function[:-1], placed.offset[:-1])
    with pytest.raises(ValueError, match="319 functions and 319 offsets for 320 blocks"):
        replay(trace, short, layouts, L1I)
    far = PlacedBlocks(placed.function, placed.offset + np.uint64(2**64 - 400))
    with pytest.raises(ValueError, match="past the end of all addresses"):
        replay(trace, far, layouts, L1I)
    with pytest.raises(ValueError, match="float64"):
        replay(trace, PlacedBlocks(placed.function, cast(U64, placed.offset * 1.5)), layouts, L1I)


@pytest.mark.parametrize(
    ("layouts", "what"),
    [
        (np.zeros((1, 39), dtype=np.uint64), "39 functions, and the blocks are in 40"),
        (np.zeros(40, dtype=np.uint64), "of shape"),
        (np.zeros((1, 40), dtype=np.int64), "int64"),
        (np.full((1, 40), 2**64 - 100, dtype=np.uint64), "past the end of all addresses"),
    ],
)
def test_layouts_that_do_not_fit_are_refused(layouts: U64, what: str) -> None:
    trace, placed, _ = looping(2)
    with pytest.raises(ValueError, match=what):
        replay(trace, placed, layouts, L1I)


@pytest.mark.parametrize("cache", [Cache(1 << 21, 1, 64), Cache(1, 1 << 13, 64)])
def test_a_cache_beyond_all_bounds_is_refused(cache: Cache) -> None:
    trace, placed, layouts = looping(2)
    with pytest.raises(UserError, match="cannot be replayed"):
        replay(trace, placed, layouts, cache)


@given(made_traces(), caches, st.data(), st.booleans(), st.booleans())
def test_lines_of_several_sizes_share_a_cache(
    made: Made, cache: Cache, data: st.DataObject, warm: bool, portable: bool
) -> None:
    trace, placed, layouts = made
    sizes = data.draw(
        st.lists(
            st.sampled_from([0, 256, 4096, 2 << 20]),
            min_size=layouts.shape[1],
            max_size=layouts.shape[1],
        )
    )
    prepared = PreparedTrace(trace, placed)
    how: dict[str, Any] = {"kind": "pages", "warm": warm, "portable": portable, "threads": 1}
    found = prepared.replay(layouts, cache, line_bytes=np.array(sizes), **how)
    assert found.by_function is not None
    for index, layout in enumerate(layouts):
        expected = naive_lines(trace, placed, layout, cache, warm=warm, line_bytes=sizes)
        assert Found(found.total[index].tolist(), found.by_function[index].tolist()) == expected


@pytest.mark.parametrize(
    ("sizes", "what"),
    [
        (np.full(39, 4096), "39 functions, and the layouts 40"),
        (np.full(40, 4095), "4095, and not a power of two"),
        (np.full(40, 64), "64, and not a power of two"),
        (np.full(40, -4096), "power of two"),
        (np.full(40, 4096.0), "not a vector of numbers"),
    ],
)
def test_sizes_of_lines_that_do_not_fit_are_refused(sizes: Any, what: str) -> None:
    trace, placed, layouts = looping(2)
    prepared = PreparedTrace(trace, placed)
    with pytest.raises(ValueError, match=what):
        prepared.replay(layouts, L1I, kind="pages", line_bytes=sizes)
    with pytest.raises(ValueError, match="branches have no lines"):
        prepared.replay(layouts, L1I, kind="branches", line_bytes=np.full(40, 4096))


EVERY_WAYS = [("lru", ways) for ways in (*range(1, 34), 48, 64, 512)]
SOME_WAYS = [
    (policy, ways) for policy in ("round-robin", "random") for ways in (1, 2, 3, 4, 7, 8, 9, 16, 40)
]


@pytest.mark.parametrize(("replacement", "ways"), [*EVERY_WAYS, *SOME_WAYS])
@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.slow
def test_each_number_of_ways(replacement: Replacement, ways: int, portable: bool) -> None:
    """Reuse at all distances about the number of ways, in two sets."""
    rng = np.random.default_rng(ways)
    blocks = [Block(number % 3, number * 64, 4) for number in range(ways * 3 + 3)]
    near = rng.geometric(1 / (ways + 1), 60 * 20) % len(blocks)
    pieces = [row.tolist() for row in near.reshape(20, 60) * 7 % len(blocks)]
    pieces += rng.permuted(np.tile(np.arange(len(blocks)), (3, 1)), axis=1).tolist()
    executed = [(int(piece), OWN) for piece in rng.integers(0, len(pieces), 40)]
    made = (*make_trace(blocks, pieces, executed), np.zeros((1, 3), dtype=np.uint64))
    cache = Cache(2, ways, 64, replacement)
    assert_as_naive(made, cache, "lines", portable=portable, threads=1)


def test_pages_of_two_sizes_with_one_number_are_two() -> None:
    trace, placed = make_trace([Block(0, 0, 8), Block(1, 0, 8)], [[0, 1]], [(0, OWN)] * 10)
    layouts = np.array([[5 * 0x1000, 5 * 0x200000]], dtype=np.uint64)
    prepared = PreparedTrace(trace, placed)
    sizes = np.array([0x1000, 0x200000])
    for ways, misses in ((1, 20), (2, 0)):
        found = prepared.replay(layouts, Cache(1, ways, 4096), kind="pages", line_bytes=sizes)
        assert found.total.sum() == misses


def test_the_entry_of_an_interrupt_is_no_branch() -> None:
    """Two branches fill the table; a third one, from the loop to the interrupt, would evict one."""
    blocks = [Block(0, 64 * n, 8) for n in range(4)]
    trace, placed = make_trace(blocks, [[0, 1], [2, 3]], [(0, OWN), (1, INTERRUPTS)])
    layouts = np.zeros((1, 1), dtype=np.uint64)
    table = Cache(sets=1, ways=2, line_bytes=1)
    assert replay(trace, placed, layouts, table, kind="branches").total.sum() == 0
    trace, placed = make_trace(blocks, [[0, 1], [2, 3]], [(0, OWN), (1, OTHER)])
    found = replay(trace, placed, layouts, table, kind="branches")
    assert found.total.tolist() == [[1, 0, 2]]


@pytest.mark.parametrize("kind", ["lines", "branches"])
def test_a_loop_comes_to_repeat_itself_under_round_robin(kind: Kind) -> None:
    """And never does where the generator goes on."""
    trace, placed, layouts = looping(300)
    cache = L1I if kind == "lines" else Cache(8, 4, 1)
    for replacement in ("lru", "round-robin", "random"):
        prepared = PreparedTrace(trace, placed)
        other = msgspec.structs.replace(cache, replacement=replacement)
        found = prepared.replay(layouts, other, kind=kind)
        plain = prepared.replay(layouts, other, kind=kind, memo=False, portable=True)
        assert found.total.tolist() == plain.total.tolist()
        work = PreparedTrace(trace, placed)
        work.replay(layouts, other, kind=kind, threads=1)
        assert (work.work().simulated < work.work().units) == (replacement != "random")


@pytest.mark.parametrize(
    ("replacement", "misses"), [("lru", [0, 10, 10]), ("round-robin", [10, 10, 10])]
)
def test_what_is_used_all_the_time_leaves_under_round_robin(
    replacement: Replacement, misses: list[int]
) -> None:
    """Two ways: one line in every other place, and two that take turns. Under LRU it stays."""
    blocks = [Block(function, 0, 8) for function in range(3)]
    trace, placed = make_trace(blocks, [[0, 1, 0, 2]], [(0, OWN)] * 10)
    layouts = np.array([[0, 256, 512]], dtype=np.uint64)
    found = replay(trace, placed, layouts, Cache(4, 2, 64, replacement)).by_function
    assert found is not None
    assert found[0].tolist() == misses


def test_a_random_cache_is_as_good_as_chance() -> None:
    """One line more than there are ways, in a loop: LRU and round robin miss each. Here what leaves
    is any of the four but the one that came; the loop comes to it 1, 2, 3 or 4 steps later, each as
    likely, and so misses every 2.5 steps. A generator that favours a way would show.
    """
    blocks = [Block(function, 0, 8) for function in range(5)]
    trace, placed = make_trace(blocks, [range(5)], [(0, OWN)] * 20_000)
    layouts = np.arange(5, dtype=np.uint64)[np.newaxis] * np.uint64(256)
    misses = {
        policy: replay(trace, placed, layouts, Cache(4, 4, 64, policy)).total.sum() / 20_000
        for policy in get_args(Replacement)
    }
    assert misses["lru"] == misses["round-robin"] == 5
    assert misses["random"] == pytest.approx(5 / 2.5, rel=0.01)


def test_where_nothing_repeats_the_memo_rests() -> None:
    """It looks back on 256 units, each a piece of 300 runs here, and goes on without from the state
    at which it is: here after a unit that it had simulated two units before.
    """
    rng = np.random.default_rng(3)
    blocks = [Block(0, 128 * number, 4) for number in range(600)]
    pieces = [rng.permutation(600)[:300].tolist() for _ in range(254)]
    pieces.append(pieces[253][::-1])
    order = [*range(252), 252, 253, 252, 253, 254, 0, 1, 2, 0, 1]
    trace, placed = make_trace(blocks, pieces, [(piece, OWN) for piece in order])
    layouts = np.zeros((1, 1), dtype=np.uint64)
    prepared = PreparedTrace(trace, placed)
    found = prepared.replay(layouts, L1I, threads=1)
    assert prepared.work().simulated == len(order) - 1
    naive = naive_lines(trace, placed, layouts[0], L1I, warm=True)
    assert found.total.tolist() == [naive.total]


def test_a_memo_that_is_full_begins_again() -> None:
    """The states of so large a table are few before they take too much memory."""
    table = Cache(sets=1 << 15, ways=16, line_bytes=1)
    rng = np.random.default_rng(3)
    blocks = [Block(number % 5, 128 * number, 4) for number in range(600)]
    pieces = [rng.permutation(600)[:300].tolist() for _ in range(40)]
    order = [*range(40), *[39] * 5, *[0] * 5]
    trace, placed = make_trace(blocks, pieces, [(piece, OWN) for piece in order])
    layouts = np.zeros((1, 5), dtype=np.uint64)
    prepared = PreparedTrace(trace, placed)
    found = prepared.replay(layouts, table, kind="branches", warm=False, threads=1)
    assert prepared.work().states > 40
    assert prepared.work().simulated < len(order)
    plain = prepared.replay(layouts, table, kind="branches", warm=False, memo=False, threads=1)
    assert found.by_function is not None
    assert plain.by_function is not None
    assert found.total.tolist() == plain.total.tolist()
    assert found.by_function.tolist() == plain.by_function.tolist()
    assert found.total.sum() > 0
