# SPDX-License-Identifier: GPL-2.0-or-later
"""No order is below the bound, and in plain cases the bound is what the best order has."""

import itertools

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.counts.trace import Trace
from kdelta.cpus.model import Cache
from kdelta.replay import bound as bound_module
from kdelta.replay.bound import Stretches, least_misses, shares_of_lines
from kdelta.replay.functions import Placement
from kdelta.replay.layouts import as_linked, floating, in_orders
from kdelta.replay.simulate import PreparedTrace
from tests.replay.kernels import Call, lines, placed, region
from tests.replay.made_kernel import START, text_rows, trace_of
from tests.replay.traces import INTERRUPTS, OTHER, OWN

pytestmark = pytest.mark.slow


def bound(trace: Trace, placement: Placement, cache: Cache) -> int:
    return least_misses(trace, placement.placed[0], placement, cache)


def least_of_all_orders(trace: Trace, placement: Placement, cache: Cache) -> int:
    """Of all orders of all functions that can move."""
    movable = [index for index, f in enumerate(placement.functions) if f.movable]
    layouts = in_orders(placement, list(itertools.permutations(movable)))
    replayed = PreparedTrace(trace, placement.placed[0]).replay(layouts, cache, by_function=False)
    return int(replayed.total[:, OWN].min())


def belady(calls: list[int], capacity: int) -> int:
    """Misses of whole lines in a cache that knows the future, filled as well as can be."""
    upcoming = {line: [t for t, call in enumerate(calls) if call == line] for line in set(calls)}
    held = set(sorted(upcoming, key=lambda line: upcoming[line][0])[:capacity])
    misses = 0
    for call in calls:
        upcoming[call].pop(0)
        misses += call not in held
        held.add(call)
        if len(held) > capacity:
            held.remove(max(held, key=lambda line: (upcoming[line] or [1 << 30])[0]))
    return misses


@pytest.mark.parametrize(("n", "times"), [(5, 40), (9, 7), (4, 9)])
def test_a_loop_over_lines_is_bounded_by_what_belady_would_have(n: int, times: int) -> None:
    names = [f"f{index}" for index in range(n)]
    rows = lines(**dict.fromkeys(names, 1))
    blocks = [(START + 64 * index, 64) for index in range(n)]
    # From the last to the first, so that none falls into the next.
    order = list(range(n))[::-1]
    trace = trace_of(blocks, [[index] for index in range(n)], order * times)
    cache = Cache(1, 4, 64)
    assert bound(trace, placed(rows, trace), cache) == belady(order * times, 4)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 7), min_size=1, max_size=60))
def test_any_calls_of_lines_are_bounded_by_what_belady_would_have(calls: list[int]) -> None:
    rows = lines(**dict.fromkeys([f"f{index}" for index in range(16)], 1))
    # Every other function, so that none falls into the next.
    blocks = [(START + 128 * index, 64) for index in range(8)]
    trace = trace_of(blocks, [[index] for index in range(8)], calls)
    assert bound(trace, placed(rows, trace), Cache(1, 3, 64)) == belady(calls, 3)


def test_what_fits_has_no_bound() -> None:
    rows = lines(alpha=2, cold=1, beta=2)
    trace = region(rows, ["alpha", "beta"], times=50, left=0)
    assert bound(trace, placed(rows, trace), Cache(2, 2, 64)) == 0
    # While a function runs, the bound lets more be there than fits; from one to the next half.
    assert bound(trace, placed(rows, trace), Cache(1, 2, 64)) == 2 * 50


@pytest.mark.slow
def test_what_others_bring_back_costs_the_region_nothing() -> None:
    rows = lines(a=1, x=1, b=1, y=1, c=1)
    own: list[Call] = ["a", "b", "c"]
    other: list[Call] = [(name, INTERRUPTS) for name in "abc"]
    cache = Cache(1, 1, 64)
    alone = region(rows, own, times=30, left=0)
    assert bound(alone, placed(rows, alone), cache) == belady([0, 1, 2] * 30, 1) == 60
    calls = [own[0], other[1], own[1], other[2], own[2], other[0]]
    mixed = region(rows, calls, times=30, left=0)
    placement = placed(rows, mixed)
    assert least_of_all_orders(mixed, placement, cache) == 0
    assert bound(mixed, placement, cache) == 0


@st.composite
def regions(draw: st.DrawFn) -> tuple[Placement, Trace]:
    """Regions of up to five functions of any size, in pieces, of all contexts."""
    sizes = draw(st.lists(st.integers(8, 200), min_size=2, max_size=5))
    named = {f"f{index}": size for index, size in enumerate(sizes)}
    # What lies in the head stays, and what follows it may share its line.
    head = {"startup_64": draw(st.integers(3, 90))} if draw(st.booleans()) else {}
    rows = text_rows(head | named, draw(st.sampled_from([1, 16])))
    starts = {name: at for at, _, name in rows}
    blocks = []
    for name, size in {**head, **named, "do_syscall_64": 64}.items():
        for _ in range(draw(st.integers(1, 3))):
            first = draw(st.integers(0, max(0, size - 4)))
            blocks.append((starts[name] + first, draw(st.integers(1, size - 2 - first))))
    piece = st.lists(st.integers(0, len(blocks) - 1), min_size=1, max_size=4)
    pieces = draw(st.lists(piece, min_size=1, max_size=5))
    executed = st.tuples(
        st.integers(0, len(pieces) - 1), st.sampled_from([OWN, OWN, OWN, INTERRUPTS, OTHER])
    )
    sequence = draw(st.lists(executed, min_size=1, max_size=12)) * draw(st.integers(1, 9))
    trace = trace_of(blocks, pieces, [piece for piece, _ in sequence])
    contexts = np.array([context for _, context in sequence], dtype=np.uint8)
    trace = msgspec.structs.replace(trace, contexts=contexts)
    return placed(rows, trace), trace


caches = st.builds(
    Cache, st.sampled_from([1, 2, 4]), st.integers(1, 3), st.sampled_from([16, 32, 64, 128])
)


@given(regions(), caches, st.sampled_from([2, 10_000]))
def test_no_order_is_below_the_bound(
    made: tuple[Placement, Trace], cache: Cache, windows: int
) -> None:
    placement, trace = made
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bound_module, "_WINDOWS", windows)
        least = bound(trace, placement, cache)
    assert least <= least_of_all_orders(trace, placement, cache)


def test_what_others_use_next_is_not_kept_for_them() -> None:
    """As linked, a has a set for itself, and the interrupt's x and y the other one."""
    rows = lines(a=1, x=1, cold=1, y=1)
    calls: list[Call] = ["a", *[("y", INTERRUPTS), ("x", INTERRUPTS)] * 2]
    trace = region(rows, calls, times=20, left=0)
    cache = Cache(2, 1, 64)
    assert bound(trace, placed(rows, trace), cache) == 0


def test_work_of_others_is_never_in_one_window_with_the_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = lines(a=1, x=1, b=1, y=1, c=1)
    calls: list[Call] = ["a", ("b", INTERRUPTS), ("c", INTERRUPTS)]
    trace = region(rows, calls, times=32, left=0)
    monkeypatch.setattr(bound_module, "_WINDOWS", 32)
    assert bound(trace, placed(rows, trace), Cache(1, 1, 64)) == 0


@given(regions(), st.sampled_from([16, 32, 64]), st.integers(0, 9))
def test_no_line_holds_shares_of_more_than_one(
    made: tuple[Placement, Trace], line_bytes: int, seed: int
) -> None:
    placement, trace = made
    first = trace.addresses.view(np.int64)
    last = first + trace.sizes.astype(np.int64)
    linked = np.unique(np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)]))
    by_byte = Stretches(linked, linked + 1)
    shares = shares_of_lines(by_byte, placement.placed[0].function, placement, line_bytes)
    movable = [index for index, f in enumerate(placement.functions) if f.movable]
    order = np.random.default_rng(seed).permutation(movable)
    starts = as_linked(placement).view(np.int64)
    owner = np.searchsorted(starts[:-1], linked, side="right") - 1
    moved = in_orders(placement, [order.tolist()])[0].view(np.int64) - starts
    line = (linked + moved[owner]) // line_bytes
    _, held = np.unique(line, return_inverse=True)
    assert np.bincount(held, weights=shares).max() <= 1 + 1e-9


def test_what_lies_behind_an_order_may_share_its_first_line_with_any_of_it() -> None:
    """As linked, it begins a line; behind other orders, at any multiple of 16 in one."""
    rows = text_rows(dict.fromkeys(["alpha", "beta", "gamma", "delta"], 16))
    behind = next(address for address, _, name in rows if name == "do_syscall_64")
    trace = trace_of([(behind, 4)], [[0]], [0])
    placement = placed(rows, trace)
    assert floating(placement) == [(behind, behind + placement.functions[4].bytes, 16)]
    first = trace.addresses.view(np.int64)
    code = Stretches.of(first, first + 4)
    shares = shares_of_lines(code, placement.placed[0].function, placement, 64)
    assert behind % 64 == 0
    assert shares.tolist() == pytest.approx([4 / 52])


def test_a_sparse_function_takes_its_own_lines() -> None:
    """4 bytes of each of its lines are executed. Only the last may have anything else in it."""
    rows = lines(alpha=3, beta=1)
    # The last of these is in do_syscall_64, which stays where nothing else is.
    at = [START, START + 64, START + 128, START + 256]
    trace = trace_of([(address, 4) for address in at], [[0, 1, 2, 3]], [0])
    placement = placed(rows, trace)
    first = trace.addresses.view(np.int64)
    shares = shares_of_lines(
        Stretches.of(first, first + 4), placement.placed[0].function, placement, 64
    )
    assert shares.tolist() == [1, 1, 4 / 64, 1]
    # With functions at multiples of 16, a line can begin at each of these.
    rows = text_rows({"alpha": 176, "beta": 48})
    trace = trace_of([(START + at, 4) for at in (0, 64, 68, 96, 144)], [[0, 1, 2, 3, 4]], [0])
    placement = placed(rows, trace)
    first = trace.addresses.view(np.int64)
    shares = shares_of_lines(
        Stretches.of(first, first + 4), placement.placed[0].function, placement, 64
    )
    # With the first, 48 bytes before the function; with the last, 47 from its last 15 on.
    assert shares == pytest.approx([4 / 52, 4 / 12, 4 / 12, 4 / 12, 4 / 51])


def test_a_long_trace_is_bounded_by_the_sum_of_its_segments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = lines(**dict.fromkeys([f"f{index}" for index in range(10)], 1))
    blocks = [(START + 128 * index, 64) for index in range(5)]
    trace = trace_of(blocks, [[index] for index in range(5)], list(range(5)) * 40)
    placement = placed(rows, trace)
    whole = bound(trace, placement, Cache(1, 3, 64))
    monkeypatch.setattr(bound_module, "_SEGMENT", 21)
    # Each segment begins with a full cache, as the whole does.
    calls = list(range(5)) * 40
    parts = [belady(calls[at : at + 21], 3) for at in range(0, 200, 21)]
    assert bound(trace, placement, Cache(1, 3, 64)) == sum(parts) < whole
    monkeypatch.setattr(bound_module, "_WINDOWS", 50)
    assert 0 < bound(trace, placement, Cache(1, 1, 64)) < belady(calls, 1)
