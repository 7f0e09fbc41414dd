# SPDX-License-Identifier: GPL-2.0-or-later
"""Misses of a made kernel under made layouts, down to what a region costs."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import pytest

from kdelta.counts.model import Cost
from kdelta.counts.symbols import parse_symbols
from kdelta.counts.trace import Trace, encode_traces
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import Cache
from kdelta.lab.lab import MODULE_SYMBOLS, SYMBOLS, TRACES, RunResult
from kdelta.measures.cycles.placement import (
    Drawn,
    caches_of,
    costs,
    drawn,
    drawn_pairs,
    notes_on_l2,
    place_traces,
    placed_run,
    run_symbols,
    was_merged,
)
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun
from kdelta.store.store import Store
from kdelta.studies.place.together import placed_together
from tests.replay.made_kernel import START, kallsyms, text_rows, trace_of
from tests.studies.placed import KERNEL, LINE, RUN, SIZES, made, made_trace, small_cpu, with_data
from tests.synthetic import own, region, run


def _at(alpha: int, beta: int, gamma: int, delta: int) -> Drawn:
    """One layout: the functions at these lines."""
    layout = START + LINE * np.array([[alpha, beta, gamma, delta]], dtype=np.uint64)
    return Drawn(layout, (1,))


def test_misses_are_those_of_own_work_an_iteration() -> None:
    one = made(made_trace([0, 1, 3] * 10, [0, 0, 1] * 10))
    apart = costs(one, small_cpu(), _at(0, 1, 3, 2))["loop"]
    assert apart.shipped == {"l1i": 0.0, "itlb": 0.0}
    assert apart.ensemble.misses["l1i"].tolist() == [0.0]
    both = costs(one, small_cpu(), _at(0, 4, 3, 2))["loop"]
    assert both.ensemble.misses["l1i"].tolist() == [2.0]
    assert both.ensemble.draws == (1,)
    interrupted = costs(one, small_cpu(), _at(0, 1, 3, 4))["loop"]
    assert interrupted.ensemble.misses["l1i"].tolist() == [1.0]
    far = costs(one, small_cpu(), _at(0, 65, 3, 2))["loop"]
    # The interrupt is on alpha's page: it brings it back, at its own cost.
    assert far.ensemble.misses["itlb"].tolist() == [1.0]


def test_what_is_executed_is_an_estimate_over_the_runs_that_are_given() -> None:
    one = made(made_trace([0, 1], [0, 0]), insns=40)
    layouts = _at(0, 1, 2, 3)
    assert costs(one, small_cpu(), layouts)["loop"].amount("insns").value == 4
    more = run(region("loop", {own("alpha"): Cost(60, specials={"lock": 5})}, 10))
    found = costs(one, small_cpu(), layouts, runs=(one.counts, more))["loop"]
    insns = found.amount("insns")
    assert [insns.low, insns.value, insns.high] == [4, 5, 6]
    assert found.amount("lock").value == Fraction(1, 4)


def test_layouts_are_named_by_seed_and_number_however_many_are_drawn() -> None:
    one = made(made_trace([0, 1, 3], [0, 0, 0]))
    few, many = drawn(one, 3, 7), drawn(one, 600, 7)
    assert few.layouts.shape == (3, 4)
    assert many.layouts[:3].tolist() == few.layouts.tolist()
    assert many.draws[:3] == few.draws
    assert len(set(many.draws)) == 600
    assert not set(drawn(one, 3, 8).draws) & set(few.draws)
    assert many.layouts[256:512].tolist() != many.layouts[:256].tolist()


def test_a_kernel_and_itself_cost_the_same_in_each_pair() -> None:
    one = made(made_trace([0, 3] * 10, [0, 0] * 10))
    ours, theirs = drawn_pairs(one, one, 300, 5)
    first, second = (costs(one, small_cpu(2), drawn)["loop"] for drawn in (ours, theirs))
    assert first.ensemble.draws == second.ensemble.draws
    assert first.ensemble.misses["l1i"].tolist() == second.ensemble.misses["l1i"].tolist()
    assert len(set(first.ensemble.misses["l1i"].tolist())) > 1


def test_targets_of_branches_are_replayed_where_the_cpu_says_how_many_it_keeps() -> None:
    cpu = small_cpu()
    assert list(caches_of(cpu)) == ["l1i", "itlb"]
    with_btb = msgspec.structs.replace(cpu, btb=Cache(1, 1, 1))
    one = made(made_trace([0, 2] * 10, [0, 0] * 10))
    # 20 blocks take 19 branches, and the first of a pass finds the last of the pass before.
    assert costs(one, with_btb, _at(0, 1, 2, 3))["loop"].shipped["btb"] == 1.8


def test_misses_of_the_l2_are_counted_by_hand() -> None:
    """Both first levels hold one line, so each access misses there. The L2 has two sets of two
    lines: both lines of data are in set 0, and what else is in it is one too many.
    """
    trace = with_data(made_trace([0] * 10, [0] * 10))
    line = Cache(1, 1, LINE)
    cpu = msgspec.structs.replace(small_cpu(), l1i=line, l1d=line, l2=Cache(2, 2, LINE))
    one = made(trace)
    found = costs(one, cpu, _at(1, 3, 0, 2), data=True)["loop"]
    assert found.shipped == {"l1i": 2.0, "itlb": 0.0, "l2": 3.0, "l2_code": 1.0, "l2_data": 2.0}
    apart = {kind: row.tolist() for kind, row in found.ensemble.misses.items()}
    assert apart == {"l1i": [2], "itlb": [0], "l2": [0], "l2_code": [0], "l2_data": [0]}
    crowded = costs(one, cpu, _at(0, 2, 1, 3), data=True)["loop"].ensemble.misses
    assert [crowded[kind].tolist() for kind in ("l2", "l2_code", "l2_data")] == [[4], [2], [2]]


def test_without_data_there_is_nothing_of_the_l2() -> None:
    traced = made(with_data(made_trace([0] * 10, [0] * 10)))
    assert list(costs(traced, small_cpu(), _at(0, 1, 2, 3))["loop"].shipped) == ["l1i", "itlb"]
    plain = made(made_trace([0], [0]))
    found = costs(plain, small_cpu(), _at(0, 1, 2, 3), data=True)["loop"]
    assert list(found.shipped) == ["l1i", "itlb"]
    unknown = made(msgspec.structs.replace(traced.traces[0], physical=None))
    found = costs(unknown, small_cpu(), _at(0, 1, 2, 3), data=True)["loop"]
    assert list(found.shipped) == ["l1i", "itlb"]
    notes = notes_on_l2(load_cpu("cortex-a72"), ["loop"])
    assert "the same under all layouts" in notes[0]
    assert "not drawn" in notes[1]
    assert [("shares it" in note, "of loop" in note) for note in notes[2:]] == [
        (True, False),
        (False, True),
    ]


def test_pages_are_drawn_in_the_order_as_linked() -> None:
    """Two functions with one between them are on two pages where a border comes between them,
    wherever a random order would put them.
    """
    far = dict.fromkeys(["alpha", "beta", "gamma", *(f"f{number}" for number in range(400))], LINE)
    symbols = parse_symbols(kallsyms(text_rows(far, LINE)))
    counts = run(region("loop", {own("alpha"): Cost(40)}, 10))
    one = place_traces(KERNEL, RUN, counts, (made_trace([0, 2] * 10, [0] * 20),), symbols)
    layouts = drawn(one, 256, 3)
    found = costs(one, small_cpu(), layouts)["loop"].ensemble.misses["itlb"]
    assert set(found.tolist()) == {0.0, 2.0}
    assert 0 < (found > 0).sum() < 24  # in two of 64
    shuffled = msgspec.structs.replace(layouts, orders=())
    assert costs(one, small_cpu(), shuffled)["loop"].ensemble.misses["itlb"].mean() > 1


def test_code_that_is_not_executed_makes_no_misses_of_pages() -> None:
    """It parts two functions by a page in one of the kernels, and so in half of the pairs."""
    names = ["alpha", "beta", "gamma", "delta"]
    kernels = []
    for before_delta in (0, 70 * LINE):
        sizes = dict.fromkeys(names[:3], LINE)
        sizes |= {"dead": before_delta} if before_delta else {}
        symbols = parse_symbols(kallsyms(text_rows({**sizes, "delta": LINE}, LINE)))
        at = [START, START + 2 * LINE + before_delta + LINE]
        trace = trace_of([(address, LINE) for address in at], [[0], [1]], [0, 1] * 10)
        trace = msgspec.structs.replace(trace, region="loop", iterations=10)
        counts = run(region("loop", {own("alpha"): Cost(40)}, 10))
        kernel = msgspec.structs.replace(KERNEL, identity=f"made {before_delta}")
        kernels.append(place_traces(kernel, RUN, counts, (trace,), symbols))
    for a, b in (kernels, reversed(kernels)):
        sides = zip((a, b), drawn_pairs(a, b, 64, 5), strict=True)
        pages = [
            costs(one, small_cpu(), d)["loop"].ensemble.misses["itlb"].tolist() for one, d in sides
        ]
        assert pages[0] == pages[1]
        assert pages[0][1::2] == [2.0] * 32
        assert pages[0][::2].count(0.0) > 24


def _kept(store: Store, attachments: Mapping[str, bytes], region_name: str = "loop") -> RunResult:
    """A run that went well, with what was kept of it."""
    new = NewRun("key " + region_name, "made", "made", "6.0", {}, "made", "", 0)
    counts = run(region(region_name, {own("alpha"): 40}, 10))
    run_id = store.start_run(new)
    ended = store.finish_run(run_id, RunStatus.OK, counts=counts, attachments=attachments)
    return RunResult(ended, counts)


def _attachments(
    trace: Trace, symbols: bytes | None = None, modules: bytes = b""
) -> dict[str, bytes]:
    return {
        TRACES: encode_traces([trace]),
        SYMBOLS: symbols or kallsyms(text_rows(SIZES, LINE)),
        MODULE_SYMBOLS: modules,
    }


def test_a_run_of_the_store_is_placed_without_its_guest(tmp_path: Path) -> None:
    trace = made_trace([0, 1, 3], [0, 0, 1])
    module = kallsyms([], [(0xFFFFFFFFC0000000, "in_module", "nft")])
    with Store.open(tmp_path) as store:
        found = placed_run(KERNEL, _kept(store, _attachments(trace, modules=module)), store)
        assert found.traces == (trace,)
        assert [found.placement.functions[i].name for i in found.executed] == list(SIZES)
        assert [row[2] for row in run_symbols(KERNEL, store, found.run)][-1] == "in_module"


def test_what_was_not_kept_is_reported(tmp_path: Path) -> None:
    kept = _attachments(made_trace([0], [0]))
    with Store.open(tmp_path) as store:
        with pytest.raises(LabError, match="was not traced"):
            placed_run(KERNEL, _kept(store, {}), store)
        with pytest.raises(LabError, match="kept no symbols"):
            placed_run(KERNEL, _kept(store, {TRACES: kept[TRACES]}), store)
        with pytest.raises(LabError, match="a trace cannot be read"):
            placed_run(KERNEL, _kept(store, {**kept, TRACES: kept[TRACES][:-3]}), store)
        with pytest.raises(LabError, match="did not go well"):
            placed_run(KERNEL, RunResult(RUN, None), store)


def test_symbols_without_addresses_are_none(tmp_path: Path) -> None:
    """What /proc/kallsyms says where addresses are hidden."""
    hidden = b"0000000000000000 T _stext\n0000000000000000 T _etext\n"
    trace = made_trace([0], [0])
    with (
        Store.open(tmp_path) as store,
        pytest.raises(UserError, match="do not say where its code is"),
    ):
        placed_run(KERNEL, _kept(store, _attachments(trace, hidden)), store)


def test_traces_of_several_workloads_are_placed_together(tmp_path: Path) -> None:
    traces = [made_trace([0, 1], [0, 0], "first"), made_trace([2, 3], [0, 0], "second")]
    with Store.open(tmp_path) as store:
        done = [_kept(store, _attachments(trace), trace.region) for trace in traces]
        found = placed_together(KERNEL, done, ("one", "two"), store)
        alone = placed_together(KERNEL, done[:1], ("one",), store)
    assert [trace.region for trace in found.traces] == ["one/first", "two/second"]
    assert [one.name for one in found.counts.regions] == ["one/first", "two/second"]
    assert [trace.region for trace in alone.traces] == ["first"]
    assert len(found.places) == 2


@pytest.mark.parametrize(
    ("line", "merged"),
    [
        ("CONFIG_X86_KERNEL_IBT=y", True),
        ("CONFIG_LTO_CLANG=y", True),
        ("# CONFIG_X86_KERNEL_IBT is not set", False),
        ("CONFIG_X86_KERNEL=y", False),
    ],
)
def test_what_has_objects_merged_before_the_link(tmp_path: Path, line: str, merged: bool) -> None:
    config = tmp_path / "config"
    config.write_text(f"CONFIG_SMP=y\n{line}\n")
    assert was_merged(msgspec.structs.replace(KERNEL, config=str(config))) is merged
    assert not was_merged(KERNEL)
