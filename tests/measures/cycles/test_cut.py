# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions whose trace was cut off: of made kernels, and of real ones with a small limit."""

import asyncio
from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import pytest

from kdelta.counts.model import Cost
from kdelta.counts.symbols import parse_symbols
from kdelta.counts.trace import Trace
from kdelta.cpus.catalog import load_cpu
from kdelta.infer.effects.effects import Word, compare_runs
from kdelta.lab.lab import Lab, RunResult, traces_of
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.measures.cycles.cut import CutRegion, cut_note, rounded_up
from kdelta.measures.cycles.effects import Traced, cycles_between
from kdelta.measures.cycles.measure import ModelCycles, cycles_of
from kdelta.measures.cycles.placement import PlacedKernel, costs, drawn, place_traces
from kdelta.measures.model import MeasureRequest, RunSide
from kdelta.spec.errors import UserError
from kdelta.spec.limits import ITEMS_A_GIB
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare
from kdelta.studies.gate.request import GateRequest
from kdelta.studies.gate.study import failures_of, judge, run_gate
from kdelta.studies.layout.model import LayoutReport
from kdelta.studies.layout.request import LayoutRequest
from kdelta.studies.layout.study import layout_regions, run_layout
from kdelta.studies.place.model import PlaceReport
from kdelta.studies.place.request import PlaceRequest
from kdelta.studies.place.study import run_place
from tests.machines.bench import NEW, OLD
from tests.replay.made_kernel import kallsyms, text_rows
from tests.studies.placed import KERNEL, LINE, RUN, SIZES, made_trace, small_cpu
from tests.synthetic import own, region, run

ITERATIONS = 10
NAMES = ("all", "half", "none")


def _cut(trace: Trace) -> Trace:
    return msgspec.structs.replace(trace, truncated=True)


def _empty(name: str) -> Trace:
    """What the plugin writes of a region of which not even the first piece fitted."""
    nothing = np.zeros(0, dtype=np.uint32)
    return msgspec.structs.replace(
        made_trace([], [], name),
        addresses=np.zeros(0, dtype=np.uint64),
        sizes=nothing,
        insns=nothing,
        items=nothing,
        starts=np.zeros(1, dtype=np.uint64),
        truncated=True,
    )


def _placed(*names: str) -> PlacedKernel:
    """A kernel that ran regions which were traced in all, by half, or not."""
    traces = {
        "all": made_trace([0, 2] * 10, [0] * 20, "all"),
        "half": _cut(made_trace([0, 2] * 5, [0] * 10, "half")),
        "none": _empty("none"),
    }
    counts = run(*(region(name, {own("alpha"): Cost(20)}, ITERATIONS) for name in names))
    symbols = parse_symbols(kallsyms(text_rows(SIZES, LINE)))
    return place_traces(KERNEL, RUN, counts, tuple(traces[name] for name in names), symbols)


def test_region_that_was_cut_off_is_not_replayed() -> None:
    one = _placed(*NAMES)
    assert [trace.region for trace in one.traces] == ["all"]
    assert [found.name for found in one.cut] == ["half", "none"]
    assert list(costs(one, small_cpu(2), drawn(one, 4, 1))) == ["all"]
    found = layout_regions(one, small_cpu(2), layouts=4, seed=1)
    assert [row.name for row in found] == ["all"]
    assert layout_regions(_placed("none"), small_cpu(2), layouts=4, seed=1) == ()


def test_need_is_by_the_part_that_was_kept() -> None:
    half, none = _placed(*NAMES).cut
    assert half.gib is not None
    assert 2 * 10 / ITEMS_A_GIB < half.gib < 2.4 * 10 / ITEMS_A_GIB
    assert none.gib is None


@pytest.mark.parametrize(
    ("gib", "rounded"), [(0.3, 0.33), (0.1, 0.11), (1.0, 1.1), (2.41, 2.7), (99.0, 109.0)]
)
def test_need_is_rounded_up(gib: float, rounded: float) -> None:
    assert rounded_up(gib) == rounded


def test_note_names_the_option() -> None:
    assert cut_note(CutRegion("fork", 1.3)) == (
        "fork: not replayed: its trace would need 1.3 GiB: --trace-limit 1.3"
    )
    assert "--trace-limit raises" in cut_note(CutRegion("fork"))


def _compared(base: PlacedKernel, other: PlacedKernel) -> Comparison:
    cpu = small_cpu(2)
    sides = [
        Traced((RunResult(RUN, one.counts), RunResult(RUN, one.counts)), one)
        for one in (base, other)
    ]
    cycles = cycles_between(sides[0], sides[1], cpu, layouts=8, margin=0.01, progress=Silent())
    base_side, other_side = (RunSide("made", KERNEL, one.done) for one in sides)
    effects = compare_runs(base_side.counts, other_side.counts)
    assert cycles is not None
    judged = ModelCycles(MeasureRequest(cpu, 8, 0.01), cpu).judgement(cycles)
    return Comparison("made", base_side, other_side, effects, cpu, (judged,))


def test_without_a_whole_trace_a_verdict_is_unresolved_and_not_same() -> None:
    found = _compared(_placed(*NAMES), _placed(*NAMES))
    cycles = cycles_of(found.judged)
    assert cycles is not None
    assert [one.region for one in cycles.effects] == ["all"]
    half, none = cycles.cut
    assert half.gib is not None
    for one, reason in ((half, f"would need {half.gib:g} GiB: --trace-l"), (none, "does not fit")):
        assert one.verdict is not None
        assert one.verdict.word is Word.UNRESOLVED
        assert reason in one.verdict.reason
    assert [note.partition(":")[0] for note in cycles.notes[:2]] == [
        "half",
        "none",
    ]
    judged = {one.region: one for one in judge(found, Fraction(0))}
    for one in (half, none):
        assert one.verdict is not None
        assert judged[f"{one.name} on generic-x86-64"].word is Word.UNRESOLVED
        assert judged[f"{one.name} on generic-x86-64"].reason == one.verdict.reason
    assert list(failures_of(found)) == []


def test_region_that_was_cut_off_in_one_kernel_is_unresolved() -> None:
    symbols = parse_symbols(kallsyms(text_rows(SIZES, LINE)))
    whole_one = _placed("all")
    cut_one = place_traces(KERNEL, RUN, whole_one.counts, (_empty("all"),), symbols)
    found = cycles_of(_compared(whole_one, cut_one).judged)
    assert found is not None
    assert found.effects == ()
    (row,) = found.cut
    assert row.verdict is not None
    assert row.verdict.word is Word.UNRESOLVED


OPERATIONS = ("read-zero-64k", "mmap-munmap", "write-null-64k")
LIMIT = 4_000
"""Items of pieces: all of the other two, and some iterations of mmap-munmap."""

NO_PIECE = 8
"""So many items has no piece."""


def _layout(store: Store, limit: int = LabRequest().trace_limit) -> LayoutReport:
    request = LayoutRequest(
        kernel=OLD,
        cpu=load_cpu("zen2"),
        operations=OPERATIONS,
        layouts=4,
        lab=LabRequest(perturbations=1, trace_limit=limit),
    )
    return asyncio.run(run_layout(request, Lab(store, Silent())))


@pytest.mark.guest
@pytest.mark.slow
def test_a_real_region_that_is_cut_off_has_no_figures_until_the_limit_is_raised(
    tmp_path: Path,
) -> None:
    with Store.open(tmp_path / "cut") as store:
        found = _layout(store, LIMIT)
        assert [row.name for row in found.cut] == ["mmap-munmap"]
        assert [one.name for one in found.regions] == ["read-zero-64k", "write-null-64k"]
        assert (found.cut[0].gib or 0) > LIMIT / ITEMS_A_GIB
        assert any("mmap-munmap was cut at its limit" in text for text in found.warnings)
        assert _layout(store, LIMIT).cut == found.cut
        assert len(store.runs()) == 1
        # A limit that is larger than usual has it traced once more, and then no more.
        for _ in range(2):
            whole = _layout(store, 2 * LabRequest().trace_limit)
            assert whole.cut == ()
            assert [one.name for one in whole.regions] == list(OPERATIONS)
            assert len(store.runs()) == 2
        assert not any(trace.truncated for trace in traces_of(store, store.runs()[0]))


def _place(store: Store, folder: Path, limit: int) -> PlaceReport:
    request = PlaceRequest(
        kernel=OLD,
        cpu=load_cpu("zen2"),
        file=folder / "order.txt",
        operations=OPERATIONS,
        evaluations=0,
        layouts=4,
        lab=LabRequest(perturbations=1, trace_limit=limit),
    )
    return asyncio.run(run_place(request, Lab(store, Silent())))


@pytest.mark.guest
@pytest.mark.slow
def test_an_order_is_for_what_was_traced_of_a_real_kernel(tmp_path: Path) -> None:
    with Store.open(tmp_path / "some") as store:
        found = _place(store, tmp_path, LIMIT)
        assert sorted(one.name for one in found.regions) == ["read-zero-64k", "write-null-64k"]
        assert [one.name for one in found.cut] == ["mmap-munmap"]
    with (
        Store.open(tmp_path / "none") as store,
        pytest.raises(UserError, match="cannot look for an order: "),
    ):
        _place(store, tmp_path, NO_PIECE)


@pytest.mark.guest
@pytest.mark.slow
def test_two_real_kernels_without_a_trace_are_not_the_same(tmp_path: Path) -> None:
    request = CompareRequest(
        base=OLD,
        others=(NEW,),
        operations=("mmap-munmap",),
        cpus=(load_cpu("zen2"),),
        layouts=4,
        lab=LabRequest(perturbations=1, trace_limit=NO_PIECE),
    )
    with Store.open(tmp_path / "store") as store:
        (found,) = asyncio.run(run_compare(request, Lab(store, Silent())))
        cycles = cycles_of(found.judged)
        assert cycles is not None
        assert cycles.effects == ()
        (row,) = cycles.cut
        assert row.name == "mmap-munmap"
        assert row.verdict is not None
        assert row.verdict.word is Word.UNRESOLVED
        answer = asyncio.run(run_gate(GateRequest(compare=request), Lab(store, Silent())))
        assert answer.decision.exit == 125
        assert any("does not fit" in text for text in answer.decision.because)
