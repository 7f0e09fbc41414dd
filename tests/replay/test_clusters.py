# SPDX-License-Identifier: GPL-2.0-or-later
"""Who calls whom in a trace, and the orders that rules of thumb make of it."""

import msgspec
import numpy as np
import pytest

from kdelta.replay.functions import Placement
from kdelta.replay.transitions import Transitions, by_density, by_first_use, c3, transitions
from kdelta.replay.units import units_of
from tests.replay.kernels import lines, placed, region
from tests.replay.made_kernel import START, text_rows, trace_of
from tests.replay.traces import INTERRUPTS, OWN

Edges = dict[tuple[str, str], float]


def graph_of(calls: Edges, insns: dict[str, float]) -> tuple[Transitions, list[str]]:
    """A graph of calls by name, units in the order of `insns`."""
    names = list(insns)
    return Transitions(
        sources=np.array([names.index(source) for source, _ in calls], dtype=np.int64),
        targets=np.array([names.index(target) for _, target in calls], dtype=np.int64),
        calls=np.array(list(calls.values()), dtype=np.float64),
        others=np.zeros(len(calls)),
        insns=np.array(list(insns.values()), dtype=np.float64),
        first_use=np.arange(len(names)),
    ), names


def c3_names(calls: Edges, insns: dict[str, float], sizes: list[int], limit: int = 4096) -> str:
    graph, names = graph_of(calls, insns)
    return "".join(names[unit] for unit in c3(graph, np.array(sizes), limit))


def found_edges(graph: Transitions, placement: Placement) -> tuple[Edges, Edges]:
    """Calls and other transitions by the names of the units."""
    names = [name[0] for name in units_of(placement).names]
    calls, others = {}, {}
    for source, target, called, other in zip(
        graph.sources, graph.targets, graph.calls, graph.others, strict=True
    ):
        pair = names[source], names[target]
        calls.update({pair: float(called)} if called else {})
        others.update({pair: float(other)} if other else {})
    return calls, others


def test_a_callee_follows_its_most_frequent_caller() -> None:
    calls = {("a", "x"): 10.0, ("b", "x"): 30.0, ("b", "y"): 20.0}
    insns = {"a": 5.0, "b": 40.0, "x": 90.0, "y": 50.0}
    assert c3_names(calls, insns, [100] * 4) == "bxya"
    assert c3_names(dict(reversed(calls.items())), insns, [100] * 4) == "bxya"


def test_the_hottest_callee_comes_first() -> None:
    calls = {("a", "x"): 1.0, ("a", "y"): 9.0}
    assert c3_names(calls, {"x": 10.0, "y": 99.0, "a": 1.0}, [16] * 3) == "ayx"
    assert c3_names(calls, {"x": 99.0, "y": 10.0, "a": 1.0}, [16] * 3) == "axy"


def test_clusters_do_not_outgrow_a_page() -> None:
    calls = {("a", "b"): 10.0, ("b", "c"): 10.0}
    insns = {"a": 10.0, "b": 30.0, "c": 20.0}
    # b joins a; a and b together are too large for c, which is denser.
    assert c3_names(calls, insns, [2000, 2000, 200]) == "cab"
    assert c3_names(calls, insns, [2000, 2000, 96]) == "abc"
    assert c3_names(calls, insns, [2000, 2000, 200], limit=8192) == "abc"


def test_whole_clusters_are_appended_and_the_densest_comes_first() -> None:
    calls = {("d", "e"): 5.0, ("a", "b"): 9.0, ("c", "a"): 1.0}
    insns = {"a": 10.0, "b": 100.0, "c": 1.0, "d": 400.0, "e": 1.0}
    # b to a, then a with b to c; d with e is denser than c with a and b.
    assert c3_names(calls, insns, [100] * 5) == "decab"


def test_a_cycle_of_calls_ends() -> None:
    calls = {("a", "b"): 3.0, ("b", "a"): 3.0, ("a", "a"): 9.0}
    assert sorted(c3_names(calls, {"a": 2.0, "b": 1.0}, [16, 16])) == ["a", "b"]


def test_functions_that_nothing_calls_stay_alone() -> None:
    assert c3_names({}, {"a": 1.0, "b": 3.0, "c": 2.0}, [16, 16, 4]) == "cba"


def test_density_and_first_use() -> None:
    graph, _ = graph_of({}, {"a": 1.0, "b": 9.0, "c": 4.0})
    assert by_density(graph, np.array([1, 9, 2])).tolist() == [2, 0, 1]
    used = msgspec.structs.replace(graph, first_use=np.array([2, 0]))
    assert by_first_use(used, 3).tolist() == [2, 0, 1]


def test_calls_are_told_from_returns() -> None:
    rows = text_rows({"alpha": 64, "beta": 64, "gamma": 64})
    # alpha calls beta, beta returns into alpha, alpha jumps to gamma's start.
    blocks = [(START, 8), (START + 64, 20), (START + 8, 4), (START + 128, 4)]
    trace = trace_of(blocks, [[0, 1, 2], [3]], [0, 1] * 5)
    placement = placed(rows, trace)
    graph = transitions([trace], placement, units_of(placement).of_function, [2.0])
    calls, others = found_edges(graph, placement)
    assert calls == {("alpha", "beta"): 10, ("alpha", "gamma"): 10, ("gamma", "alpha"): 8}
    assert others == {("beta", "alpha"): 10}
    assert graph.insns.tolist() == [20, 10, 10]
    assert graph.first_use.tolist() == [0, 1, 2]


def test_a_thunk_is_not_the_caller() -> None:
    rows = text_rows({"alpha": 64, "__x86_indirect_thunk_rax": 64, "gamma": 64})
    trace = trace_of([(START, 8), (START + 64, 8), (START + 128, 8)], [[0, 1], [2], [1]], [0, 1, 2])
    placement = placed(rows, trace)
    graph = transitions([trace], placement, units_of(placement).of_function, [1.0])
    assert found_edges(graph, placement) == ({("alpha", "gamma"): 1}, {})


def test_an_interrupt_calls_nothing_and_nothing_calls_it() -> None:
    rows = lines(alpha=1, beta=1, gamma=1)
    trace = region(rows, [("alpha", OWN), ("beta", INTERRUPTS), ("gamma", INTERRUPTS)], times=3)
    placement = placed(rows, trace)
    graph = transitions([trace], placement, units_of(placement).of_function, [1.0])
    assert found_edges(graph, placement) == ({("beta", "gamma"): 3}, {})


def test_regions_add_up_by_weight_and_the_weightiest_is_used_first() -> None:
    rows = lines(alpha=1, beta=1, gamma=1)
    traces = [region(rows, ["alpha", "beta"]), region(rows, ["gamma", "beta", "alpha"])]
    placement = placed(rows, *traces)
    graph = transitions(traces, placement, units_of(placement).of_function, [0.5, 4.0])
    calls, _ = found_edges(graph, placement)
    assert calls == {("alpha", "beta"): 0.5, ("gamma", "beta"): 4, ("beta", "alpha"): 4}
    assert graph.first_use.tolist() == [2, 1, 0]
    assert graph.insns == pytest.approx([4.5, 4.5, 4])


def test_a_trace_of_one_block_has_no_transitions() -> None:
    rows = lines(alpha=1)
    trace = region(rows, ["alpha"])
    placement = placed(rows, trace)
    graph = transitions([trace], placement, units_of(placement).of_function, [1.0])
    assert (len(graph.calls), graph.first_use.tolist()) == (0, [0])
