# SPDX-License-Identifier: GPL-2.0-or-later
"""Regions whose trace was cut off: of made kernels, and of real ones with a small limit."""

import asyncio
from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import pytest

from kdelta.counts.model import Cost
from kdelta.counts.simulated import SimulatedMisses, encode_simulated
from kdelta.counts.symbols import parse_symbols
from kdelta.counts.trace import Trace
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import Cache
from kdelta.guests.job import Job
from kdelta.infer.effects.effects import Word, compare
from kdelta.kernels.model import Kernel
from kdelta.report.cut import CutMisses
from kdelta.spec.errors import UserError
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, RunSide, run_compare
from kdelta.studies.gate.request import GateRequest
from kdelta.studies.gate.study import failures_of, judge, run_gate
from kdelta.studies.lab.attachments import misses_name, misses_of
from kdelta.studies.lab.lab import Lab, RunPlan, RunResult, traces_of
from kdelta.studies.lab.progress import Silent
from kdelta.studies.lab.request import LabRequest
from kdelta.studies.layout.model import LayoutReport
from kdelta.studies.layout.request import LayoutRequest
from kdelta.studies.layout.study import layout_regions, run_layout
from kdelta.studies.place.model import PlaceReport
from kdelta.studies.place.request import PlaceRequest
from kdelta.studies.place.study import run_place
from kdelta.studies.tracing.cycles import Traced, cycles_between
from kdelta.studies.tracing.placement import CountedMisses, PlacedKernel, costs, drawn, place_traces
from kdelta.studies.tracing.whole import counted_whole, cut_misses, cut_regions, not_counted
from tests.machines.bench import NEW, OLD
from tests.replay.made_kernel import kallsyms, text_rows
from tests.studies.fake_lab import FakeLab
from tests.studies.placed import KERNEL, LINE, RUN, SIZES, made_trace, small_cpu
from tests.synthetic import own, region, run

ITERATIONS = 10
NAMES = ("all", "half", "none")
NOT_COUNTED = CountedMisses()
OTHER = msgspec.structs.replace(KERNEL, identity="other")


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


def _placed(*names: str, counted: CountedMisses = NOT_COUNTED) -> PlacedKernel:
    """A kernel that ran regions which were traced in all, by half, or not."""
    traces = {
        "all": made_trace([0, 2] * 10, [0] * 20, "all"),
        "half": _cut(made_trace([0, 2] * 5, [0] * 10, "half")),
        "none": _empty("none"),
    }
    counts = run(*(region(name, {own("alpha"): Cost(20)}, ITERATIONS) for name in names))
    symbols = parse_symbols(kallsyms(text_rows(SIZES, LINE)))
    one = place_traces(KERNEL, RUN, counts, tuple(traces[name] for name in names), symbols)
    return msgspec.structs.replace(one, counted=counted)


def test_what_was_cut_off_and_what_has_no_trace_at_all() -> None:
    one = _placed(*NAMES)
    assert [trace.region for trace in one.traces] == ["all", "half"]
    assert one.untraced == ("none",)
    assert one.truncated == ("half", "none")
    assert [one.part(0), one.part(1)] == [1, 0.5]
    assert list(costs(one, small_cpu(2), drawn(one, 4, 1))) == ["all", "half"]
    assert [found.name for found in layout_regions(one, small_cpu(2), layouts=4, seed=1)] == [
        "all",
        "half",
    ]


def test_a_kernel_that_has_no_trace_at_all_has_no_figures() -> None:
    one = _placed("none")
    assert one.traces == ()
    assert layout_regions(one, small_cpu(2), layouts=4, seed=1) == ()
    assert cut_misses(one, {}) == {"none": CutMisses(0.0, None, None)}


def test_the_first_part_stands_besides_the_whole() -> None:
    one = _placed(*NAMES, counted=CountedMisses({"all": 2.0, "half": 3.5, "none": 4.5}))
    found = cut_misses(one, {"all": 2.0, "half": 2.0})
    assert found == {"half": CutMisses(0.5, 2.0, 3.5), "none": CutMisses(0.0, None, 4.5)}
    assert [row.kernels for row in cut_regions(one, {"half": 2.0})] == [
        {"kernel": found["half"]},
        {"kernel": found["none"]},
    ]
    assert not_counted(one) == ()


def _compared(base: PlacedKernel, other: PlacedKernel) -> Comparison:
    cpu = small_cpu(2)
    sides = [
        Traced((RunResult(RUN, one.counts), RunResult(RUN, one.counts)), one)
        for one in (base, other)
    ]
    cycles = cycles_between(sides[0], sides[1], cpu, layouts=8, margin=0.01, progress=Silent())
    base_side, other_side = (RunSide("made", KERNEL, one.done) for one in sides)
    effects = compare(base_side.counts, other_side.counts)
    return Comparison("made", base_side, other_side, effects, cpu, cycles)


def test_without_a_trace_a_verdict_is_unresolved_and_not_same() -> None:
    counted = CountedMisses({"half": 3.5, "none": 4.5})
    found = _compared(_placed(*NAMES, counted=counted), _placed(*NAMES))
    assert found.cycles is not None
    assert [one.region for one in found.cycles.effects] == ["all", "half"]
    half, none = found.cycles.cut
    assert half.kernels == {"base": CutMisses(0.5, 2.0, 3.5), "other": CutMisses(0.5, 2.0, None)}
    assert half.verdict is None
    assert none.kernels["base"] == CutMisses(0.0, None, 4.5)
    assert none.verdict is not None
    assert none.verdict.word is Word.UNRESOLVED
    assert none.verdict.reason.startswith("its trace did not fit in base and other")
    assert list(found.cycles.codes) == list(NAMES)
    assert [note.partition(":")[0] for note in found.cycles.notes[:2]] == ["half", "none"]

    judged = {one.region: one for one in judge(found, Fraction(0))}
    assert judged["none on generic-x86-64"].word is Word.UNRESOLVED
    assert judged["none on generic-x86-64"].reason == none.verdict.reason
    assert judged["half on generic-x86-64"].word is Word.SAME
    assert list(failures_of(found)) == []


def test_a_region_that_only_one_kernel_has_no_trace_of() -> None:
    symbols = parse_symbols(kallsyms(text_rows(SIZES, LINE)))
    whole_one = _placed("all")
    cut_one = place_traces(KERNEL, RUN, whole_one.counts, (_empty("all"),), symbols)
    found = _compared(whole_one, cut_one).cycles
    assert found is not None
    assert found.effects == ()
    (row,) = found.cut
    assert list(row.kernels) == ["other"]
    assert row.verdict is not None
    assert "did not fit in other," in row.verdict.reason


def _made_run(store: Store, status: RunStatus, cache: Cache) -> RunResult:
    counts = run(region("half", {own("alpha"): 20}, ITERATIONS))
    misses = (SimulatedMisses("half", cache, (35, 7, 1), {0: (35, 7, 1)}),)
    key = NewRun(f"key {status}", "made", "made", "6.0", {}, "made", "", 0)
    ended = store.finish_run(
        store.start_run(key),
        status,
        detail="the guest hung\nand more",
        attachments={misses_name(cache): encode_simulated(misses)},
    )
    return RunResult(ended, counts if status is RunStatus.OK else None)


class SimulatedRuns(FakeLab):
    """Runs that simulate a cache; those of the other kernel hang."""

    def run(self, kernel: Kernel, _work: RunPlan, _index: int) -> RunResult:
        status = RunStatus.TIMED_OUT if kernel is OTHER else RunStatus.OK
        assert self.request.simulate
        return _made_run(self.store, status, self.request.simulate)


def test_misses_are_counted_in_a_run_of_their_own(tmp_path: Path) -> None:
    cache = small_cpu(4).l1i
    traced = LabRequest(trace=True, data_lines=True, rerun=True, perturbations=3)
    with Store.open(tmp_path) as store:
        lab = SimulatedRuns(store, traced)
        plan = RunPlan("made", "", Job(argv=()), {})

        def counted(n: int) -> list[CountedMisses]:
            return asyncio.run(counted_whole(lab, cache, [KERNEL, OTHER][:n], [plan] * n))

        assert counted(0) == []
        assert lab.made == []
        good, bad = counted(2)
    assert good == CountedMisses({"half": 3.5})
    assert bad == CountedMisses({}, "timed-out: the guest hung")
    assert [one.request for one in lab.made] == [LabRequest(perturbations=1, simulate=cache)] * 2
    (note,) = not_counted(_placed("half", counted=bad), "base")
    assert note.endswith("base: timed-out: the guest hung")


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
def test_a_real_region_that_is_cut_off_is_counted_whole(tmp_path: Path) -> None:
    """The replay of the whole trace begins as its pass ends, the counted run as what was before
    left the cache: a line each at most.
    """
    cache = load_cpu("zen2").l1i
    with Store.open(tmp_path / "whole") as store:
        all_of_it = _layout(store)
        assert len(store.runs()) == 1
    with Store.open(tmp_path / "cut") as store:
        found = _layout(store, LIMIT)
        assert [row.name for row in found.cut] == ["mmap-munmap"]
        row = found.cut[0].kernels["kernel"]
        shipped = {one.name: one.misses["l1i"].shipped for one in all_of_it.regions}
        cut = {one.name: one.misses["l1i"].shipped for one in found.regions}
        assert [one.truncated for one in found.regions] == [False, True, False]
        assert {name: cut[name] for name in ("read-zero-64k", "write-null-64k")} == {
            name: shipped[name] for name in ("read-zero-64k", "write-null-64k")
        }
        assert row.first == cut["mmap-munmap"] != shipped["mmap-munmap"]
        assert 0 < row.part < 0.1
        assert row.whole is not None
        iterations = all_of_it.regions[1].iterations
        assert abs(row.whole - shipped["mmap-munmap"]) * iterations <= cache.entries

        # The last run has what both recorded, and answers for both.
        assert len(store.runs()) == 2
        again = _layout(store, LIMIT)
        assert len(store.runs()) == 2
        assert (again.regions, again.cut) == (found.regions, found.cut)
        assert again.warnings == found.warnings
        assert any("mmap-munmap was cut at its limit" in text for text in again.warnings)
        last = store.runs()[0]
        assert len(traces_of(store, last)) == len(misses_of(store, last, cache)) == 3


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
        regions = {one.name: one for one in found.regions}
        assert sorted(regions) == sorted(OPERATIONS)
        row = next(one for one in found.cut if one.name == "mmap-munmap")
        assert row.kernels["kernel"].first == regions[row.name].misses["l1i"].shipped
        assert (row.kernels["kernel"].whole or 0) > 50
    with (
        Store.open(tmp_path / "none") as store,
        pytest.raises(UserError, match="nothing fitted into a trace of"),
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
        assert found.cycles is not None
        assert found.cycles.effects == ()
        (row,) = found.cycles.cut
        assert row.name == "mmap-munmap"
        assert row.verdict is not None
        assert row.verdict.word is Word.UNRESOLVED
        assert list(row.kernels) == ["base", "other"]
        assert all((one.whole or 0) > 50 for one in row.kernels.values())
        answer = asyncio.run(run_gate(GateRequest(compare=request), Lab(store, Silent())))
        assert answer.decision.exit == 125
        assert any("did not fit" in text for text in answer.decision.because)
        (note,) = answer.notes
        assert note.startswith("on zen2, mmap-munmap: its trace was cut off: in base nothing")
