# SPDX-License-Identifier: GPL-2.0-or-later
"""The front end in replay: against a slow one written for clarity, and what any has to do."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.counts.arrays import U64
from kdelta.counts.trace import (
    JUMP_CALL,
    JUMP_CONDITIONAL,
    JUMP_DIRECT,
    JUMP_INDIRECT,
    JUMP_NONE,
    JUMP_RETURN,
    JUMP_SYSTEM,
    Trace,
)
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.front_end import FrontEnd, Predictor, RunAhead
from kdelta.cpus.model import CPU, Cache
from kdelta.replay.front_end.replay import EVENTS, MECHANISMS, Events, PreparedFrontEnd
from kdelta.replay.simulate import PlacedBlocks, PreparedTrace
from kdelta.spec.errors import LabError, UserError

from .frontend_reference import reference
from .traces import INTERRUPTS, L1I, OWN, Block, made_traces, make_trace, replacements

pytestmark = pytest.mark.slow

ZEN4 = load_cpu("zen4")
BIG = Predictor(base_entries=4096, entries=1024, tag_bits=12, histories=(4, 8, 16, 32, 64, 128))
FULL = FrontEnd(
    conditional=BIG,
    indirect=Predictor(512, 256, 12, (4, 16)),
    returns=16,
    btb=(Cache(64, 4, 1), Cache(512, 8, 1)),
    fetch_bytes=32,
    op_cache=Cache(64, 8, 64),
    next_line=True,
    run_ahead=RunAhead(windows=24, window_cycles=1, second_btb_cycles=2),
    miss_cycles=14,
)


def cpu_of(front: FrontEnd | None, **changes: Any) -> CPU:
    return msgspec.structs.replace(ZEN4, **{"l1i": L1I, **changes}, front_end=front)


def with_jumps(trace: Trace, jumps: Sequence[int]) -> Trace:
    return msgspec.structs.replace(trace, jumps=np.array(jumps, dtype=np.uint8))


def predictors(most_tables: int) -> st.SearchStrategy[Predictor | None]:
    lengths = st.sets(st.integers(1, 40), max_size=most_tables)
    made = st.builds(
        Predictor,
        base_entries=st.sampled_from([1, 2, 16]),
        entries=st.sampled_from([1, 2, 8, 64]),
        tag_bits=st.sampled_from([1, 3, 16]),
        histories=lengths.map(lambda found: tuple(sorted(found))),
    )
    return st.one_of(st.none(), made, made, made)


def small_caches(line: int) -> st.SearchStrategy[Cache]:
    sets, ways = st.sampled_from([1, 2, 8]), st.integers(1, 5)
    return st.builds(Cache, sets, ways, st.just(line), replacements)


fronts = st.builds(
    FrontEnd,
    conditional=predictors(12),
    indirect=predictors(4),
    returns=st.sampled_from([0, 1, 3, 16]),
    btb=st.lists(small_caches(1), max_size=2).map(tuple),
    fetch_bytes=st.sampled_from([None, 16, 32, 64]),
    op_cache=st.one_of(st.none(), small_caches(32)),
    next_line=st.booleans(),
    run_ahead=st.one_of(
        st.none(),
        st.builds(
            RunAhead,
            st.integers(1, 5),
            st.sampled_from([0, 0.5, 1, 3]),
            st.integers(0, 9),
            st.sampled_from([0, 0.3, 1, 2]),
        ),
    ),
    miss_cycles=st.sampled_from([0, 1.3, 14]),
    cycles_per_insn=st.sampled_from([0.25, 0.3, 2]),
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Trace, PlacedBlocks, U64, CPU]:
    trace, placed, layouts = draw(made_traces())
    n_blocks = len(trace.addresses)
    jumps = draw(st.lists(st.integers(0, JUMP_SYSTEM), min_size=n_blocks, max_size=n_blocks))
    if draw(st.booleans()):  # user code
        layouts = layouts & np.uint64(0xFFFFFFFF)
    small = draw(st.one_of(st.none(), st.just(Cache(1, 2, 4096))))
    cpu = cpu_of(
        draw(fronts),
        l1i=draw(small_caches(draw(st.sampled_from([16, 64])))),
        itlb=Cache(1, 2, 1 << 14),
        itlb_small=small,
    )
    return with_jumps(trace, jumps), placed, layouts, cpu


@given(cases())
def test_it_counts_as_the_reference_does(case: tuple[Trace, PlacedBlocks, U64, CPU]) -> None:
    trace, placed, layouts, cpu = case
    prepared = PreparedFrontEnd(trace, placed)
    ways = [
        prepared.replay(layouts, cpu, by_function=True, threads=threads, portable=portable)
        for threads, portable in ((1, False), (1, True), (3, False))
    ]
    for found in ways[1:]:
        assert np.array_equal(found.total, ways[0].total)
        assert found.by_function is not None
        assert ways[0].by_function is not None
        assert np.array_equal(found.by_function, ways[0].by_function)
    assert cpu.front_end is not None
    small = (layouts[0] < np.uint64(1 << 63)).tolist()
    assert ways[0].by_function is not None
    for layout, total, by_function in zip(layouts, ways[0].total, ways[0].by_function, strict=True):
        slow = reference(trace, placed, layout, cpu, small)
        named = dict(zip(EVENTS, total.tolist(), strict=True))
        assert named == dict(zip(EVENTS, slow.total.tolist(), strict=True))
        assert np.array_equal(by_function, slow.by_function)
        assert (by_function.sum(axis=1) == total.sum(axis=1)).all()


@given(cases())
@settings(max_examples=40, deadline=None)
def test_without_everything_the_plain_misses_are_left(
    case: tuple[Trace, PlacedBlocks, U64, CPU],
) -> None:
    trace, placed, layouts, cpu = case
    prepared = PreparedFrontEnd(trace, placed)
    bare = prepared.replay(layouts, cpu, without=frozenset(MECHANISMS))
    plain = PreparedTrace(trace, placed).replay(layouts, cpu.l1i)
    at = EVENTS.index("l1i")
    assert np.array_equal(bare.total[:, at], plain.total)
    assert not np.delete(bare.total, at, axis=1).any()
    whole = prepared.replay(layouts, cpu)
    assert np.array_equal(whole.total[:, at], plain.total)


def found_in(
    made: tuple[Trace, PlacedBlocks], jumps: Sequence[int], cpu: CPU, **how: Any
) -> Events:
    trace, placed = made
    layout = np.array([[0x10000 * (f + 1) for f in range(int(placed.function.max()) + 1)]])
    return PreparedFrontEnd(with_jumps(trace, jumps), placed).replay(
        how.pop("layouts", layout.astype(np.uint64)), cpu, **how
    )


def fixed_loop(times: int, passes: int) -> tuple[Trace, PlacedBlocks]:
    """A loop of so many times, in a loop: block 0 goes back to itself, block 1 to block 0."""
    blocks = [Block(0, 0, 16), Block(0, 16, 16)]
    return make_trace(blocks, [[0] * times + [1]], [(0, OWN)] * passes)


JUMPS_OF_LOOP = (JUMP_CONDITIONAL, JUMP_DIRECT)


def test_a_loop_of_fixed_length_is_predicted_by_a_history_that_is_longer() -> None:
    long = found_in(fixed_loop(10, 300), JUMPS_OF_LOOP, cpu_of(FULL))
    assert int(long.of("conditional")[0]) <= 4  # where one pass begins after the other
    short = msgspec.structs.replace(FULL, conditional=Predictor(4096, 1024, 12, (2, 4)))
    missed = found_in(fixed_loop(10, 300), JUMPS_OF_LOOP, cpu_of(short))
    assert int(missed.of("conditional")[0]) >= 299


def test_what_is_random_is_mispredicted_half_the_time() -> None:
    rng = np.random.default_rng(7)
    blocks = [Block(0, 0, 16), Block(0, 16, 16), Block(0, 64, 16)]
    pieces = [[0, 1], [0, 2]]
    executed = [(int(way), OWN) for way in rng.integers(0, 2, 20_000)]
    jumps = (JUMP_CONDITIONAL, JUMP_DIRECT, JUMP_DIRECT)
    found = found_in(make_trace(blocks, pieces, executed), jumps, cpu_of(FULL))
    assert 0.4 < int(found.of("conditional")[0]) / 20_000 < 0.6
    off = {"without": frozenset({"conditional"})}
    assert (
        int(
            found_in(make_trace(blocks, pieces, executed), jumps, cpu_of(FULL), **off).of(
                "conditional"
            )[0]
        )
        == 0
    )


def nested_calls(depth: int) -> tuple[tuple[Trace, PlacedBlocks], list[int]]:
    """Each function calls the next, to that depth, and all return."""
    blocks = [block for f in range(depth + 1) for block in (Block(f, 0, 16), Block(f, 16, 16))]
    down = [2 * f for f in range(depth + 1)]
    up = [2 * f + 1 for f in range(depth, -1, -1)]
    jumps = [JUMP_CALL, JUMP_RETURN] * depth + [JUMP_NONE, JUMP_RETURN]
    jumps[1] = JUMP_DIRECT  # the outermost goes round
    return make_trace(blocks, [[*down, *up]], [(0, OWN)] * 20), jumps


@pytest.mark.parametrize(("depth", "wrong"), [(16, 0), (17, 1), (20, 4)])
def test_a_stack_of_returns_overflows(depth: int, wrong: int) -> None:
    made, jumps = nested_calls(depth)
    found = found_in(made, jumps, cpu_of(FULL))
    assert int(found.of("return")[0]) == 20 * wrong


def test_a_btb_of_one_set_holds_as_many_branches_as_it_has_ways() -> None:
    # After the last branch of a pass nothing follows: that is none. So of five branches four are
    # there when a pass begins, and from then on each is put out before it comes again.
    for n, missed in ((4, 0), (5, 10 * 5 - 1 - 4)):
        blocks = [Block(0, 64 * i, 16) for i in range(n)]
        made = make_trace(blocks, [list(range(n))], [(0, OWN)] * 10)
        front = FrontEnd(btb=(Cache(1, 4, 1),))
        found = found_in(made, [JUMP_DIRECT] * n, cpu_of(front))
        assert int(found.of("btb")[0]) == missed
        two = msgspec.structs.replace(front, btb=(Cache(1, 4, 1), Cache(1, 8, 1)))
        second = found_in(made, [JUMP_DIRECT] * n, cpu_of(two))
        assert int(second.of("btb")[0]) == 0
        assert int(second.of("btb-first")[0]) == missed


def test_branches_share_counters_by_their_addresses() -> None:
    """One always taken, one never: where both have one counter, they are in each other's way."""
    blocks = [Block(0, 0, 16), Block(1, 0, 16), Block(1, 16, 16)]
    made = make_trace(blocks, [[0, 1, 2]], [(0, OWN)] * 200)
    front = FrontEnd(conditional=Predictor(2, 1, 1, ()))
    layouts = np.array([[0x1000, 0x2000 + 16 * i] for i in range(32)], dtype=np.uint64)
    jumps = (JUMP_CONDITIONAL, JUMP_CONDITIONAL, JUMP_DIRECT)
    found = found_in(made, jumps, cpu_of(front), layouts=layouts).of("conditional")
    assert set(found.tolist()) <= {0, *range(150, 401)}
    assert 0 < int((found > 0).sum()) < 32


def test_an_indirect_jump_is_told_by_its_past() -> None:
    """Two targets in turn, and what led there differs."""
    blocks = [Block(0, 0, 16), Block(0, 64, 16), Block(0, 128, 16)]
    made = make_trace(blocks, [[0, 1, 0, 2]], [(0, OWN)] * 100)
    jumps = (JUMP_INDIRECT, JUMP_DIRECT, JUMP_DIRECT)
    assert int(found_in(made, jumps, cpu_of(FULL)).of("indirect")[0]) <= 4
    last = msgspec.structs.replace(FULL, indirect=Predictor(512, 1, 1, ()))
    assert int(found_in(made, jumps, cpu_of(last)).of("indirect")[0]) > 190


def wandering(*, known: bool) -> tuple[tuple[Trace, PlacedBlocks], list[int]]:
    """100 functions of 8 lines each, one after the other, in the same order or in any."""
    rng = np.random.default_rng(3)
    blocks = [Block(f, 0, 512) for f in range(100)]
    order = [int(f) for f in (rng.permutation(100) if known else rng.integers(0, 100, 3000))]
    made = make_trace(
        blocks, [[f] for f in range(100)], [(f, OWN) for f in order * (30 if known else 1)]
    )
    return made, [JUMP_INDIRECT] * 100


def test_running_ahead_hides_misses_where_branches_are_predicted() -> None:
    for known, least, most in ((True, 0, 0.02), (False, 0.1, 0.9)):
        made, jumps = wandering(known=known)
        layouts = np.array([[0x10000 + 520 * f for f in range(100)]], dtype=np.uint64)
        found = found_in(made, jumps, cpu_of(FULL), layouts=layouts)
        exposed, misses = (int(found.of(event)[0]) for event in ("l1i-exposed", "l1i"))
        assert misses > 10_000
        assert least <= exposed / (14 * misses) <= most


def test_without_running_ahead_each_miss_costs_its_latency() -> None:
    made, jumps = wandering(known=True)
    off = frozenset({"run-ahead", "next-line"})
    found = found_in(made, jumps, cpu_of(FULL), without=off)
    assert int(found.of("l1i-exposed")[0]) == 14 * int(found.of("l1i")[0]) > 0
    shorter = found_in(made, jumps, cpu_of(FULL), without=frozenset({"run-ahead"}))
    assert shorter.of("l1i-exposed")[0] < found.of("l1i-exposed")[0]
    assert shorter.of("l1i")[0] == found.of("l1i")[0]


def test_windows_are_fetched_once_in_straight_code() -> None:
    """40 bytes from 0x10018: windows of 32 bytes at 0 and 32, whatever jumps are not taken."""
    blocks = [Block(0, 24, 20), Block(0, 44, 20), Block(1, 0, 1)]
    made = make_trace(blocks, [[0, 1, 2]], [(0, OWN)] * 5)
    jumps = (JUMP_CONDITIONAL, JUMP_DIRECT, JUMP_DIRECT)
    assert int(found_in(made, jumps, cpu_of(FULL)).of("fetch-windows")[0]) == 5 * 3


def test_an_interrupt_is_no_branch() -> None:
    """It enters between a conditional jump and where that goes, which is told when it is over."""
    blocks = [Block(0, 0, 16), Block(0, 64, 16), Block(1, 0, 16)]
    executed = [(0, OWN), (2, INTERRUPTS), (1, OWN), (0, OWN), (1, OWN)] * 50
    made = make_trace(blocks, [[0], [1], [2]], executed)
    found = found_in(made, (JUMP_CONDITIONAL, JUMP_DIRECT, JUMP_SYSTEM), cpu_of(FULL))
    assert not found.of("conditional").any()
    assert not found.of("btb").any()


def test_an_exception_is_no_target_of_a_jump() -> None:
    blocks = [Block(0, 0, 16), Block(0, 16, 16), Block(1, 0, 16)]
    pieces = [[0, 1], [0, 2]]
    executed = [(0, OWN)] * 9 + [(1, OWN)]
    made = make_trace(blocks, pieces, executed * 20)
    # Block 0 never jumps; now and then a fault leaves it.
    jumps = (JUMP_NONE, JUMP_DIRECT, JUMP_SYSTEM)
    found = found_in(made, jumps, cpu_of(FULL))
    assert not found.of("btb").any()


def test_a_trace_of_an_older_run_is_refused() -> None:
    trace, placed = make_trace([Block(0, 0, 4)], [[0]], [(0, OWN)])
    with pytest.raises(LabError, match="does not say how its blocks end"):
        PreparedFrontEnd(trace, placed)


def test_what_cannot_be_replayed_is_refused() -> None:
    trace, placed = make_trace([Block(0, 0, 4)], [[0]], [(0, OWN)])
    prepared = PreparedFrontEnd(with_jumps(trace, [0]), placed)
    layouts = np.array([[0x1000]], dtype=np.uint64)
    with pytest.raises(UserError, match="nothing is known of the front end"):
        prepared.replay(layouts, cpu_of(None))
    with pytest.raises(ValueError, match="no mechanism is called 'speed'"):
        prepared.replay(layouts, cpu_of(FULL), without=frozenset({"speed"}))
    past = np.full_like(layouts, 2**64 - 2)
    for wrong in (layouts.astype(np.int64), layouts[:, :0], past):
        with pytest.raises(ValueError, match="layout"):
            prepared.replay(cast(U64, wrong), cpu_of(FULL))
    for changes in (
        {"conditional": Predictor(2, 2, 1, tuple(range(1, 14)))},
        {"indirect": Predictor(2, 2, 1, (1, 2, 3, 4, 5))},
        {"conditional": Predictor(2, 2, 1, (1001,))},
        {"conditional": Predictor(3, 2, 1, (1,))},
        {"conditional": Predictor(2, 2, 17, (1,))},
        {"returns": 257},
        {"run_ahead": RunAhead(257, 1, 0)},
    ):
        with pytest.raises(ValueError, match=r"predictor|front end"):
            prepared.replay(layouts, cpu_of(msgspec.structs.replace(FULL, **changes)))


def test_nothing_executed_and_no_layouts() -> None:
    trace, placed = make_trace([], [], [])
    found = PreparedFrontEnd(with_jumps(trace, []), placed).replay(
        np.zeros((2, 0), dtype=np.uint64), cpu_of(FULL)
    )
    assert found.total.shape == (2, len(EVENTS), 3)
    assert not found.total.any()
