# SPDX-License-Identifier: GPL-2.0-or-later
"""What a CPU's front end does in a region is a part of what the region costs."""

import msgspec
import numpy as np
import pytest

from kdelta.counts.trace import JUMP_CONDITIONAL, JUMP_DIRECT, JUMP_NONE, JUMP_RETURN, Trace
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import CPU, FRONT_END_KINDS, WAITS, MissKind, MissPrice
from kdelta.infer.cycles.ensembles import Ensemble, RegionCost
from kdelta.replay.front_end.replay import EVENTS, PreparedFrontEnd
from kdelta.replay.simulate import PlacedBlocks
from kdelta.studies.documents import document_text
from kdelta.studies.forms import html as page
from kdelta.studies.forms import mail
from kdelta.studies.layout.study import layout_regions, notes_on
from kdelta.studies.tracing import front_end
from kdelta.studies.tracing.front_end import alike, layouts_in_reach, own_events, priced_events
from tests.replay.made_kernel import START, trace_of
from tests.report.example_layout import layout_report
from tests.report.html.pages import stored
from tests.report.shown import shown as printed
from tests.studies.placed import made as kernel
from tests.studies.placed import made_trace as placement_trace

N_LAYOUTS = 20
CPU_TIMED: CPU = msgspec.structs.replace(
    load_cpu("zen4"),
    misses={**load_cpu("zen4").misses, "l1i-exposed": MissPrice(0.5, 1, True)},
)


def made() -> tuple[Trace, PlacedBlocks]:
    """Blocks of two functions, of which one ends by chance; executed a hundred times."""
    blocks = [(START, 16), (START + 16, 16), (START + 4096, 16), (START + 4112, 16)]
    ways = np.random.default_rng(7).integers(0, 2, 100)
    trace = trace_of(blocks, [[0, 2, 3], [0, 1, 2, 3]], [int(way) for way in ways])
    jumps = np.array([JUMP_CONDITIONAL, JUMP_DIRECT, JUMP_NONE, JUMP_RETURN], dtype=np.uint8)
    trace = msgspec.structs.replace(
        trace, jumps=jumps, contexts=np.zeros(len(ways), dtype=np.uint8), iterations=10
    )
    function = np.array([0, 0, 1, 1], dtype=np.uint32)
    return trace, PlacedBlocks(function, np.array([0, 16, 0, 16], dtype=np.uint64))


def layouts() -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """Both functions somewhere."""
    lines = np.random.default_rng(3).integers(0, 1 << 12, (N_LAYOUTS, 2), dtype=np.uint64)
    return np.uint64(START) + lines * np.uint64(64)


def test_what_has_a_price_is_counted() -> None:
    kinds = {"conditional", "indirect", "return", "btb-first", "btb"}
    assert set(priced_events(load_cpu("zen4"))) == kinds
    assert set(priced_events(CPU_TIMED)) == kinds | {"l1i-exposed"}
    assert priced_events(load_cpu("generic-x86-64")) == ()
    assert set(priced_events(load_cpu("cortex-a9"))) == kinds - {"btb-first"}


@pytest.mark.parametrize("cpu", [load_cpu("zen4"), CPU_TIMED, load_cpu("cortex-a9")])
def test_it_is_the_replays_own_work_an_iteration(cpu: CPU) -> None:
    trace, placed = made()
    found = own_events(trace, placed, layouts(), cpu, 10)
    every = PreparedFrontEnd(trace, placed).replay(layouts(), cpu)
    assert set(found) == set(priced_events(cpu))
    for kind, row in found.items():
        assert row.tolist() == (every.total[:, EVENTS.index(kind), 0] / 10).tolist()
    assert found["conditional"].any()  # random outcomes cannot be predicted


def test_without_it_nothing_of_it_is_counted_or_said() -> None:
    trace, placed = made()
    cpu = CPU_TIMED.without_front_end
    assert own_events(trace, placed, layouts(), cpu, 10) == {}
    assert front_end.note_on_front_end(cpu, {"loop": [("l1i",)]}) == []
    loop = placement_trace([0, 1] * 10, [0, 0] * 10)
    jumps = np.full(len(loop.addresses), JUMP_CONDITIONAL, np.uint8)
    one = kernel(msgspec.structs.replace(loop, jumps=jumps))
    shown: list[str] = []
    for model in (CPU_TIMED, cpu):
        regions = layout_regions(one, model, layouts=4, seed=1)
        notes = notes_on(model, one, counted={kind for found in regions for kind in found.misses})
        report = msgspec.structs.replace(
            layout_report(), regions=regions, notes=notes, cut=(), unlike=()
        )
        told = stored("layout", report)
        shown += [printed("layout", report) + document_text(report, "0") + mail(told) + page(told)]
    kinds = [kind for kind in FRONT_END_KINDS if kind != "return"]  # a word of the page's script
    words = (*kinds, "front end", "left exposed", "leave exposed", "fetch windows")
    assert [word for word in words if word in shown[1]] == []
    assert {"conditional", "l1i-exposed"} <= {word for word in words if word in shown[0]}


def test_waits_are_counted_where_they_have_a_price() -> None:
    trace, placed = made()
    spr = load_cpu("sapphire-rapids")
    cpu = msgspec.structs.replace(spr, misses={WAITS: MissPrice(0.3, 0.9, True)})
    found = own_events(trace, placed, layouts(), cpu, 10)
    every = PreparedFrontEnd(trace, placed).replay(layouts(), spr)
    assert set(found) == {WAITS}
    assert found[WAITS].tolist() == (every.total[:, EVENTS.index(WAITS), 0] / 10).tolist()
    assert found[WAITS].all()


def priced(*kinds: MissKind) -> CPU:
    """A CPU with prices of these."""
    misses = dict.fromkeys(kinds, MissPrice(1, 2, True))
    return msgspec.structs.replace(load_cpu("zen4"), misses=misses)


def test_a_trace_that_does_not_log_how_blocks_end_has_none() -> None:
    trace, placed = made()
    older = msgspec.structs.replace(trace, jumps=None)
    assert own_events(older, placed, layouts(), CPU_TIMED, 10) == {}


def test_a_long_region_is_replayed_in_fewer_layouts() -> None:
    most = front_end.BRANCHES // 2
    assert layouts_in_reach(1000, 129) == 129
    assert layouts_in_reach(most // 20, 129) == 20
    assert layouts_in_reach(most // 15, 129) == 0
    assert layouts_in_reach(most // 15, 8) == 8  # more were not asked for
    assert layouts_in_reach(0, 5) == 5


def test_both_kernels_have_the_same_layouts_and_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, placed = made()
    branches = PreparedFrontEnd(trace, placed).branches
    monkeypatch.setattr(front_end, "BRANCHES", 2 * branches * 17)
    events = own_events(trace, placed, layouts(), CPU_TIMED, 10)
    assert {len(row) for row in events.values()} == {17}
    plain = {"l1i": np.arange(20.0), "btb": np.arange(20.0)}
    both = front_end.with_events(plain, events)
    assert {len(row) for row in both.values()} == {17}
    assert both["btb"].tolist() == events["btb"].tolist()

    def cost(misses: dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]) -> RegionCost:
        n = len(misses["l1i"]) - 1
        rows = {kind: row[1:] for kind, row in misses.items()}
        shipped = {kind: float(row[0]) for kind, row in misses.items()}
        return RegionCost({}, Ensemble(tuple(range(n)), rows), shipped)

    fewer = {kind: row[:9] for kind, row in both.items()}
    one, other = alike(cost(both), cost(fewer))
    assert one.ensemble.draws == other.ensemble.draws == tuple(range(8))
    assert one.shipped.keys() == other.shipped.keys() == both.keys()
    one, other = alike(cost(both), cost(plain))
    assert one.shipped.keys() == other.shipped.keys() == {"l1i"}
    notes = front_end.note_on_front_end(
        CPU_TIMED, {"loop": (one.shipped, other.shipped), "all": (cost(both).shipped,)}
    )
    assert len(notes) == 1
    assert "front end: not replayed of loop, of which a trace is too long" in notes[0]
