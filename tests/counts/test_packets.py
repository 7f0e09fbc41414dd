# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets of regions: as they are told, summed and divided by."""

from fractions import Fraction

import msgspec
import pytest

from kdelta.counts.model import (
    FalseReportError,
    Packets,
    RunCounts,
    decode_counts,
    encode_counts,
    merged_regions,
    with_packets,
)
from tests.synthetic import interrupts, other, own, region, run, user

COSTS = {own("ip_forward"): 900, user("main"): 50, interrupts("tick"): 30, other("kworker"): 20}


def test_each_region_has_its_own() -> None:
    regions = [region("a", COSTS), region("b", COSTS), region("a", COSTS), region("c", COSTS)]
    found = with_packets(regions, b"a 10 1000\nb 20 3000\na 30 4000\n")
    assert [one.packets for one in found] == [
        Packets(10, 1000),
        Packets(20, 3000),
        Packets(30, 4000),
        None,
    ]


def test_without_a_word_there_are_none() -> None:
    (found,) = with_packets([region("a", COSTS)], b"")
    assert (found.packets, found.packet_insns()) == (None, None)


def test_a_packet_costs_what_everybody_did() -> None:
    (found,) = with_packets([region("a", COSTS)], b"a 300 31800\n")
    assert found.packet_insns() == Fraction(1000, 300)


def test_no_packet_has_no_cost() -> None:
    (found,) = with_packets([region("a", COSTS)], b"a 0 0\n")
    assert found.packet_insns() is None


def test_passes_of_one_name_add_up() -> None:
    found = with_packets([region("a", COSTS), region("a", COSTS)], b"a 10 1000\na 30 4000\n")
    merged = merged_regions(RunCounts(found))["a"]
    assert merged.packets == Packets(40, 5000)
    assert merged.packet_insns() == Fraction(2000, 40)


def test_a_pass_without_packets_leaves_none() -> None:
    found = with_packets([region("a", COSTS), region("a", COSTS)], b"a 10 1000\n")
    assert merged_regions(RunCounts(found))["a"].packets is None


def test_they_are_stored_with_the_counts() -> None:
    counts = RunCounts(with_packets([region("a", COSTS), region("b", COSTS)], b"b 10 1000\n"))
    assert decode_counts(encode_counts(counts)) == counts


def test_counts_that_were_stored_before_there_were_packets() -> None:
    text = msgspec.json.decode(encode_counts(run(region("a", COSTS))))
    text["regions"][0].pop()
    (found,) = decode_counts(msgspec.json.encode(text)).regions
    assert found.packets is None


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (b"a 10\n", "reported packets so: 'a 10'"),
        (b"a ten 10\n", "reported packets so"),
        (b"a 10 -1\n", "reported packets so"),
        (b"b 10 1000\n", "packets of b, which is no region"),
        (b"a 10 1000\na 10 1000\n", "packets of a, which is no region"),
    ],
)
def test_what_is_no_count_of_packets(said: bytes, complaint: str) -> None:
    with pytest.raises(FalseReportError, match=complaint):
        with_packets([region("a", COSTS)], said)
