# SPDX-License-Identifier: GPL-2.0-or-later
"""Phases of a made kernel's region over layouts."""

import msgspec
import numpy as np
import pytest

from kdelta.counts.model import Cost
from kdelta.counts.symbols import Symbol, parse_symbols
from kdelta.cpus.catalog import load_cpu
from kdelta.cpus.model import CPU, Cache
from kdelta.measures.cycles.placement import PlacedKernel, drawn, place_traces
from kdelta.report.model import ReportedCPU
from kdelta.spec.phase import REST, PhaseRule
from kdelta.studies.documents import document_text
from kdelta.studies.layout.model import LayoutPhase, LayoutRegion
from kdelta.studies.layout.phases import with_phases
from kdelta.studies.layout.study import layout_regions
from tests.replay.made_kernel import START, kallsyms, text_rows, trace_of
from tests.report.example_layout import layout_report
from tests.report.shown import shown
from tests.studies.placed import KERNEL, LINE, RUN, SIZES
from tests.synthetic import interrupts, own, region, run

ROUTER = PhaseRule("router", ("beta",))
SYMBOLS: list[Symbol] = parse_symbols(kallsyms(text_rows(SIZES, LINE)))
ITERATIONS = 10


def placed() -> PlacedKernel:
    """Alpha calls beta, and goes on; once an iteration. Delta is an interrupt's."""
    blocks = [(START, 32), (START + LINE, LINE), (START + 32, 32), (START + 3 * LINE, LINE)]
    trace = trace_of(blocks, [[0, 1, 2], [3]], [0, 1] * ITERATIONS)
    trace = msgspec.structs.replace(
        trace,
        region="loop",
        iterations=ITERATIONS,
        insns=np.array([3, 5, 2, 7], dtype=np.uint32),
        contexts=np.array([0, 1] * ITERATIONS, dtype=np.uint8),
    )
    counts = run(
        region(
            "loop",
            {
                own("alpha"): Cost(5 * ITERATIONS, specials={"lock": 2 * ITERATIONS}),
                own("beta"): Cost(5 * ITERATIONS, specials={"lock": ITERATIONS}),
                own("gone"): Cost(0, specials={"pause": 4 * ITERATIONS}),
                interrupts("delta"): Cost(7 * ITERATIONS),
            },
            ITERATIONS,
        )
    )
    return place_traces(KERNEL, RUN, counts, (trace,), SYMBOLS)


def one_set(ways: int) -> CPU:
    cpu = load_cpu("generic-x86-64")
    return msgspec.structs.replace(cpu, l1i=Cache(1, ways, LINE), itlb=Cache(1, 1, 4096), btb=None)


def result(cpu: CPU, *rules: PhaseRule) -> LayoutRegion:
    one = placed()
    regions = layout_regions(one, cpu, layouts=4, seed=1)
    (found,) = with_phases(one, regions, cpu, drawn(one, 4, 1), rules=rules, symbols=SYMBOLS)
    return found


def by_name(found: LayoutRegion) -> dict[str, LayoutPhase]:
    return {one.name: one for one in found.phases}


def test_a_phase_has_its_own_instructions_and_misses() -> None:
    """Three lines in two ways: beta and delta put each other out in each iteration. Alpha is used
    between, and stays.
    """
    cpu = one_set(2)
    found = by_name(result(cpu, ROUTER))
    assert list(found) == ["router", REST]
    router, rest = found["router"], found[REST]
    assert (router.calls, router.insns) == (1, 5)
    assert (rest.calls, rest.insns) == (0, 3 + 2 + 7)
    assert router.misses["l1i"].as_linked == 1
    assert rest.misses["l1i"].as_linked == 1
    assert by_name(result(one_set(3), ROUTER))["router"].misses["l1i"].most == 0


def test_phases_are_told_under_the_layouts_of_their_region() -> None:
    """Two lines that each belong to one of two sets: beta is alone in its own, or it is not."""
    cpu = msgspec.structs.replace(one_set(1), l1i=Cache(2, 1, LINE))
    one = placed()
    layouts = np.concatenate([one.shipped()[np.newaxis], drawn(one, 4, 1).layouts])
    names = [one.placement.functions[index].name for index in one.executed.tolist()]
    by_function = one.prepared(0).replay(layouts, cpu.l1i).by_function
    assert by_function is not None
    beta = by_function[:, names.index("beta")] / ITERATIONS
    assert beta.tolist().count(beta[0]) < len(beta)
    found = by_name(result(cpu, ROUTER))["router"].misses["l1i"]
    assert found.as_linked == beta[0]
    assert found.mean == pytest.approx(beta[1:].mean())


def test_special_instructions_are_those_of_the_functions_in_it() -> None:
    """Beta's are the router's, alpha's the rest's, and so are those of code without a symbol."""
    cpu = one_set(3)
    found = by_name(result(cpu, ROUTER))
    for name, insns, specials in (("router", 5, {"lock": 1}), (REST, 12, {"lock": 2, "pause": 4})):
        cycles = found[name].cycles.executed
        for end in ("low", "high"):
            of_specials = sum(
                count * getattr(cpu.specials[kind], end) for kind, count in specials.items()
            )
            expected = cpu.cycles_per_insn * insns + of_specials
            assert getattr(cycles, end) == pytest.approx(expected)


def test_a_region_in_which_no_phase_is_called_has_none() -> None:
    assert result(one_set(2), PhaseRule("router", ("gamma",))).phases == ()
    assert result(one_set(2)).phases == ()


def test_phases_are_told() -> None:
    found = result(one_set(2), ROUTER)
    cpu = ReportedCPU("mine", "mine", ("l1i",), (), 800)
    report = msgspec.structs.replace(layout_report(), regions=(found,), cpu=cpu)
    text = shown("layout", report)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert "an iteration, of all tasks and interrupts" in " ".join(text.split())
    (router, cycles) = [line for line in lines if ": router " in line]
    assert router.partition(": router")[2].split() == ["1", "5", "1", "1", "1", "1", "50"]
    low, high = (found.phases[0].cycles.as_linked.low, found.phases[0].cycles.as_linked.high)
    assert cycles.partition(": router")[2].split()[:3] == [f"{low:.2f}", "to", f"{high:.2f}"]
    assert cycles.endswith(f"{800e6 / high:.0f} to {800e6 / low:.0f}")
    assert "at 800 MHz" in text
    (region,) = msgspec.json.decode(document_text(report, "1"))["regions"]
    assert [one["name"] for one in region["phases"]] == ["router", REST]
    without = msgspec.structs.replace(cpu, clock_mhz=None)
    assert "a second" not in shown("layout", msgspec.structs.replace(report, cpu=without))
    plain = msgspec.structs.replace(found, phases=())
    report = msgspec.structs.replace(report, regions=(plain,))
    assert "Phases" not in shown("layout", report)
