# SPDX-License-Identifier: GPL-2.0-or-later
"""How a made kernel's packets divide into phases."""

from fractions import Fraction

import msgspec

from kdelta.counts.model import Cost, Packets
from kdelta.counts.symbols import Symbol, parse_symbols
from kdelta.measures.cycles.phases import phase_costs
from kdelta.measures.cycles.placement import PlacedKernel, place_traces
from kdelta.spec.phase import PhaseRule
from tests.replay.made_kernel import START, kallsyms, text_rows, trace_of
from tests.studies.placed import KERNEL, LINE, RUN, small_cpu
from tests.synthetic import own, region, run

PACKETS = 20
ROUTER = PhaseRule("router", ("beta",))
ROWS = text_rows(dict.fromkeys(["alpha", "beta"], 32), LINE)
SYMBOLS: list[Symbol] = parse_symbols(kallsyms(ROWS))


def made(*, packets: int = PACKETS) -> PlacedKernel:
    """Alpha calls beta ten times and goes on in its second block."""
    blocks = [(START, 16), (START + LINE, 16), (START + 16, 16)]
    trace = msgspec.structs.replace(
        trace_of(blocks, [[0], [1], [2]], [0, 1, 2] * 10),
        region="udp",
        iterations=10,
    )
    counted = region("udp", {own("alpha"): Cost(20), own("beta"): Cost(10)}, 10)
    counted = msgspec.structs.replace(counted, packets=Packets(packets, 64 * packets))
    return place_traces(KERNEL, RUN, run(counted), (trace,), SYMBOLS)


def test_instructions_and_misses_of_each_phase_a_packet() -> None:
    """In a cache of one line each call misses, and so does each return."""
    router, rest = phase_costs(made(), [ROUTER], SYMBOLS, small_cpu(sets=1))["udp"]
    assert (router.phase, rest.phase) == ("router", "rest")
    assert (router.calls, rest.calls) == (10, 0)
    assert [router.insns, rest.insns] == [Fraction(10, PACKETS), Fraction(20, PACKETS)]
    assert [router.misses["l1i"], rest.misses["l1i"]] == [0.5, 0.5]
    large = phase_costs(made(), [ROUTER], SYMBOLS, small_cpu(sets=4))["udp"]
    assert [one.misses["l1i"] for one in large] == [0, 0]


def test_what_has_no_phases() -> None:
    assert phase_costs(made(), [], SYMBOLS, small_cpu()) == {}
    assert phase_costs(made(packets=0), [ROUTER], SYMBOLS, small_cpu()) == {}


def test_only_the_symbols_that_are_needed_are_looked_at() -> None:
    """Others, between and behind, change nothing."""
    more: list[Symbol] = [(START + 8 * LINE * n, "t", f"f{n}", "kernel") for n in range(1, 50)]
    found = phase_costs(made(), [ROUTER], [*SYMBOLS, *more], small_cpu())
    assert found == phase_costs(made(), [ROUTER], SYMBOLS, small_cpu())
