# SPDX-License-Identifier: GPL-2.0-or-later
"""What a packet costs on both sides."""

from fractions import Fraction

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.model import Packets, RegionCounts, RunCounts
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.packets import PacketEffect, packet_effects
from tests.synthetic import interrupts, other, own, region, run


def forwarded(name: str, insns: int, packets: int, *, aside: int = 0) -> RegionCounts:
    costs = {own("ip_forward"): insns, interrupts("tick"): aside, other("kworker"): aside}
    return msgspec.structs.replace(
        region(name, costs, iterations=10), packets=Packets(packets, 100 * packets)
    )


def only(base: list[RunCounts], others: list[RunCounts]) -> PacketEffect:
    (found,) = packet_effects(base, others)
    return found


def test_means_over_runs() -> None:
    base = [run(forwarded("udp", 1000 + shake, 20)) for shake in (0, 20, 40)]
    found = only(base, [run(forwarded("udp", 2000, 20))] * 3)
    assert [found.insns.base.value, found.insns.other.value] == [51, 100]
    assert [found.insns.base.low, found.insns.base.high] == [50, 52]
    assert found.verdict.word is Word.SLOWER
    assert found.per_iteration.base.value == 2
    assert found.frame_bytes.base.value == 100
    assert found.packets.other.value == 20


def test_interrupts_and_other_tasks_are_in_it() -> None:
    found = only([run(forwarded("udp", 1000, 10))], [run(forwarded("udp", 1000, 10, aside=50))])
    assert found.insns.effect.value == 10
    assert found.verdict.word is Word.UNRESOLVED


def test_kernels_that_need_another_number_of_packets() -> None:
    base, others = run(forwarded("tcp", 1000, 10)), run(forwarded("tcp", 1000, 20))
    found = only([base] * 2, [others] * 2)
    assert found.insns.percent == -50
    assert found.per_iteration.effect.value == 1
    assert found.verdict.word is Word.FASTER


def test_regions_that_are_not_about_packets_everywhere() -> None:
    plain = run(forwarded("udp", 1000, 10), region("getppid", {own("f"): 10}))
    none = run(region("udp", {own("f"): 10}), region("getppid", {own("f"): 10}))
    assert [one.region for one in packet_effects([plain], [plain])] == ["udp"]
    assert packet_effects([plain], [none]) == ()
    assert packet_effects([plain, none], [plain]) == ()
    assert packet_effects([plain], [run(forwarded("tcp", 1, 1))]) == ()
    assert packet_effects([plain], []) == packet_effects([], [plain]) == ()


@given(st.integers(1, 10**9), st.integers(1, 10**6))
def test_one_kernel_has_no_effect_on_itself(insns: int, packets: int) -> None:
    counts = [run(forwarded("udp", insns, packets))] * 3
    found = only(counts, counts)
    assert found.insns.effect.value == 0
    assert found.insns.base.value == Fraction(insns, packets)
    assert found.verdict.word is Word.SAME
    assert found.verdict.within == 0
