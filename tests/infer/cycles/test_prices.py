# SPDX-License-Identifier: GPL-2.0-or-later
"""Prices from a CPU, amounts from counts, and that they fit each other."""

from fractions import Fraction

from kdelta.counts.model import Cost, RunCounts
from kdelta.cpus.model import CPU, Cache, MissPrice, Price, Qemu
from kdelta.infer.cycles.cycles import executed_estimates
from kdelta.infer.cycles.ensembles import Interval, RegionCost
from kdelta.infer.cycles.placement import placement_effects
from kdelta.infer.cycles.placement_model import ComparedRegion
from kdelta.infer.cycles.prices import prices_of
from tests.synthetic import interrupts, own, region, run

CORE = CPU(
    name="core",
    title="A core",
    arch="x86_64",
    frontend="coupled",
    l1i=Cache(64, 8, 64),
    l1d=Cache(64, 8, 64),
    l2=Cache(1024, 8, 64),
    l2_shared=False,
    itlb=Cache(1, 8, 4096),
    itlb_small=None,
    btb=None,
    cycles_per_insn=0.5,
    string_bytes_per_cycle=Price(16, 32),
    misses={"l1i": MissPrice(8, 12, calibrated=True), "itlb": MissPrice(0, 30, calibrated=False)},
    specials={"lock": Price(10, 20)},
    qemu=Qemu(),
    paths=(),
    sources={},
)


def test_all_that_has_a_price_is_weighed_by_it() -> None:
    def kernel(cost: Cost) -> list[RunCounts]:
        return [run(region("op", {own("f"): cost, interrupts("tick"): 77}, iterations=10))] * 3

    before = Cost(insns=1000, string_bytes=640, specials={"lock": 10, "pause": 30})
    after = Cost(insns=1400, string_bytes=1280, specials={"lock": 40, "pause": 90})
    base, other = (executed_estimates(kernel(cost))["op"] for cost in (before, after))
    assert {name: one.value for name, one in base.items()} == {
        "insns": Fraction(100),
        "string_bytes": Fraction(64),
        "lock": Fraction(1),
        "pause": Fraction(3),
    }
    (found,) = placement_effects(
        [ComparedRegion("op", RegionCost(base), RegionCost(other))], prices_of(CORE)
    )
    # 40 instructions, 64 bytes at 16 to 32 a cycle, 3 locked instructions; a pause has no price.
    assert found.cycles == Interval(20 + 2 + 30, 20 + 4 + 60)


def test_the_prices_of_misses_are_the_cpus() -> None:
    assert prices_of(CORE).misses == CORE.misses
