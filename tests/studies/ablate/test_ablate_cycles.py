# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles in an ablation of the fake tree: of which units they are told, and what they are."""

import asyncio
import re
from fractions import Fraction

import msgspec
import pytest
from reading import read_document

from kdelta.counts.model import Cost
from kdelta.counts.symbols import parse_symbols
from kdelta.cpus import load_cpu
from kdelta.infer.effects.effects import Word
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import RunResult
from kdelta.measures.cycles.placement import PlacedKernel, place_traces
from kdelta.measures.model import RunSide
from kdelta.report.measured import placements_in
from kdelta.store.store import Store
from kdelta.studies.ablate.model import AblationReport, GroupOutcome
from kdelta.studies.ablate.request import AblateRequest
from kdelta.studies.ablate.study import run_ablate
from kdelta.studies.documents import document_text
from kdelta.studies.search.measure import MeasuredKernel
from kdelta.studies.search.pairs import kernels_below
from tests.replay.made_kernel import kallsyms, text_rows
from tests.report.shown import shown
from tests.studies.ablated import AblatedLab, config_of, on, plain
from tests.studies.placed import KERNEL, LINE, RUN, SIZES, made_trace
from tests.synthetic import own, region, run

pytestmark = pytest.mark.build

RUNS = 3
LAYOUTS = 8


def placed(kernel: Kernel) -> PlacedKernel:
    """A run in which one function executes what the truth says, and nothing is missed."""
    truth = plain(config_of(kernel))
    assert truth
    regions = [region(name, {own("alpha"): Cost(count)}, 1) for name, count in truth.items()]
    traces = tuple(
        msgspec.structs.replace(made_trace([0], [0], name), iterations=1) for name in truth
    )
    made = msgspec.structs.replace(KERNEL, identity=kernel.identity)
    symbols = parse_symbols(kallsyms(text_rows(SIZES, LINE)))
    return place_traces(made, RUN, run(*regions), traces, symbols)


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The debugging options of each kernel whose traces were asked for, in that order."""
    asked: list[tuple[str, ...]] = []

    def recorded(side: RunSide) -> RunResult:
        assert side.kernel
        made = msgspec.structs.replace(side.done[0].run, id=side.kernel.identity)
        return msgspec.structs.replace(side.done[0], run=made)

    def fake(kernel: Kernel, *_: object) -> PlacedKernel:
        config = config_of(kernel)
        asked.append(tuple(n for n in ("DEBUG_LIST", "ZERO_PAGES") if on(config, n)))
        return placed(kernel)

    monkeypatch.setattr("kdelta.measures.cycles.measure._recorded", recorded)
    monkeypatch.setattr("kdelta.measures.cycles.measure.placed_run", fake)
    return asked


def ablated(request: AblateRequest, store: Store, **more: object) -> AblationReport:
    request = msgspec.structs.replace(request, cpu=load_cpu("zen3"), layouts=LAYOUTS, **more)
    return asyncio.run(run_ablate(request, AblatedLab(store, plain)))


def relative(report: AblationReport, name: str) -> dict[str, float]:
    """By region, in per cent of the kernel without the unit; what is not zero."""
    (unit,) = (one for one in report.option_groups if one.name == name)
    found = {one.region: one.relative for one in placements_in(unit.measured).values()}
    assert found
    assert all(one.low == pytest.approx(one.high) for one in found.values())
    return {region: round(100 * one.low, 6) for region, one in found.items() if one.low}


@pytest.mark.slow
def test_each_unit_that_was_built_alone_has_model_cycles(
    ablate_request: AblateRequest,
    store: Store,
    replayed: list[tuple[str, ...]],
) -> None:
    report = ablated(ablate_request, store, one_by_one=True)
    cycles = placements_in(report.measured)
    assert cycles["open"].verdict.word is Word.FASTER
    # 0.5 cycles an instruction, and nothing else.
    assert cycles["open"].hidden.base.mean == pytest.approx((100 + 30 + 7 + 5) / 2)
    assert cycles["open"].exposed.other.mean == pytest.approx(100 / 2)
    assert cycles["empty"].verdict.word is Word.SAME
    measured = [
        one for one in report.option_groups if one.outcome is GroupOutcome.MEASURED and one.effects
    ]
    assert all(placements_in(unit.measured) and not unit.flipped for unit in measured)
    assert relative(report, "DEBUG_LIST") == {"open": round(-100 * 30 / 142, 6)}
    assert relative(report, "ZERO_PAGES") == {"fault": round(-100 * 100 / 305, 6)}
    # A is placed once, for B and for all that are built on top of it.
    assert replayed.count(("DEBUG_LIST", "ZERO_PAGES")) < len(measured)
    assert replayed[:2] == [("DEBUG_LIST", "ZERO_PAGES"), ()]


@pytest.mark.slow
def test_the_report_has_them_besides_the_path(
    ablate_request: AblateRequest,
    store: Store,
    replayed: list[tuple[str, ...]],
) -> None:
    assert replayed == []
    report = ablated(ablate_request, store, one_by_one=True)
    text = shown("ablate", report)
    assert max(len(line) for line in text.splitlines() if ablate_request.tree not in line) <= 80
    flat = " ".join(text.split())
    mean = float(-100 * Fraction(100, 305) / 3)
    assert f"ZERO_PAGES {mean:+.1f}% exact {mean:+.1f}% 1- 2=" in flat
    assert re.search(r"B - A \S+ exact \S+ 2- 1=", flat)
    assert "l2 misses are not in them" in flat
    assert re.search(r"faster \(2\) open -29.6% ", flat)
    document = read_document(document_text(report, "1"))
    assert document.cpu
    assert document.cpu.without_measured_cost == ["l1i", "itlb"]
    (cycles,) = document.measured
    assert [one.region for one in cycles.effects] == ["open", "fault", "empty"]
    (unit,) = (one for one in document.option_groups if one.name == "DEBUG_LIST")
    (cycles,) = unit.measured
    assert cycles.effects[0].detail.verdict.word == "faster"


@pytest.mark.slow
def test_without_a_cpu_nothing_is_traced(
    ablate_request: AblateRequest,
    store: Store,
    replayed: list[tuple[str, ...]],
) -> None:
    report = asyncio.run(run_ablate(ablate_request, AblatedLab(store, plain)))
    assert replayed == []
    assert report.cpu is None
    assert report.measured == ()
    assert "model cycles" not in shown("ablate", report)


def test_two_kernels_that_differ_by_one_unit() -> None:
    def kernels(*flipped: str) -> dict[frozenset[str], MeasuredKernel]:
        unmeasured = MeasuredKernel("", KERNEL, (), {})
        return {frozenset(one.split()): unmeasured for one in flipped}

    assert kernels_below("a", kernels("", "a", "b", "a b")) == frozenset()
    assert kernels_below("a", kernels("", "a b", "b", "b c", "a b c")) == frozenset("b")
    assert kernels_below("a", kernels("", "a b", "c")) is None
    assert kernels_below("a", kernels("a")) is None
