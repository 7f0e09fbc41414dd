# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets in reports: tables that fit, figures that are the model's, and what is not in them."""

from fractions import Fraction

import msgspec
import pytest

from kdelta.counts.model import Packets, RunCounts
from kdelta.infer.cycles.placement_model import PlacementEffect
from kdelta.infer.effects.packets import PhaseCost, packet_effects
from kdelta.report.model import ReportedCPU
from kdelta.report.packets import NOT_IN_IT, OF_THE_MODEL, model_rates
from kdelta.studies.compare.model import CompareReport, comparison
from kdelta.studies.documents import document_text
from tests.report.decoded import decoded
from tests.report.example import base_counts, other_counts, run_report
from tests.report.example_cycles import cycles_of, with_cycles
from tests.report.shown import shown
from tests.report.test_text import compare_text, fits_a_mail

PER_ITERATION = 2
FRAME_BYTES = 125
CPU = ReportedCPU("cortex-a9", "a core", ("l1i",), (), clock_mhz=800.0)


def with_packets(counts: RunCounts, *names: str) -> RunCounts:
    """These regions have two packets an iteration, of 125 bytes."""
    regions = [
        msgspec.structs.replace(one, packets=Packets(count, FRAME_BYTES * count))
        if one.name in names
        else one
        for one in counts.regions
        for count in [PER_ITERATION * one.iteration_count]
    ]
    return RunCounts(tuple(regions), counts.warnings)


def phases(insns: int) -> dict[str, tuple[PhaseCost, ...]]:
    parts = (
        PhaseCost("router", 200, Fraction(insns, 3), {"l1i": 1.25}),
        PhaseCost("rest", 0, Fraction(insns), {"l1i": 5.0}),
    )
    return {"getppid": parts}


def report(*, clock: bool = True) -> CompareReport:
    """The example with packets in three regions, one of which is not traced."""
    plain = with_cycles()
    names = ("getppid", "open-close", "a-name-that-is-longer-than-its-column")
    base = [with_packets(base_counts(shake), *names) for shake in (0, 1, 2)]
    other = [with_packets(other_counts(shake), *names) for shake in (0, 1, 2)]
    compared = msgspec.structs.replace(
        plain.others[0],
        packets=packet_effects(base, other),
        phases={"base": phases(1000), "other": phases(1300)},
    )
    assert plain.cpu
    cpu = msgspec.structs.replace(plain.cpu, clock_mhz=800.0 if clock else None)
    return msgspec.structs.replace(plain, others=(compared,), cpu=cpu)


def effect(name: str) -> PlacementEffect:
    return cycles_of(report()).placements[name]


def test_a_comparison_fits_a_mail_and_says_what_is_not_in_it() -> None:
    text = compare_text(report())
    fits_a_mail(text)
    flat = " ".join(text.split())
    assert NOT_IN_IT in flat
    assert "no cache maintenance for its DMA" in NOT_IN_IT
    assert OF_THE_MODEL in flat


def test_a_row_of_the_table() -> None:
    flat = " ".join(compare_text(report()).split())
    # 23,700 + 10,000 own, 400,001 of interrupts and 5,000 of others, by 200 packets; and so on.
    assert "getppid slower 2193.50 2243 +49.50 +2.26% +-0.02 200 125" in flat


def test_the_phases_of_a_region_have_rows() -> None:
    flat = " ".join(compare_text(report()).split())
    assert "333.33 433.33 +100 +30.0% " in flat
    assert "1000 1300 +300 +30.0% " in flat
    assert "L1I misses, base" in flat


def test_rates_are_the_clock_by_the_cycles() -> None:
    packets = next(one for one in report().others[0].packets if one.region == "open-close")
    rates = model_rates(packets, effect("open-close"), CPU)
    for who, rate in rates.items():
        hidden = getattr(effect("open-close").hidden, who).as_linked / PER_ITERATION
        exposed = getattr(effect("open-close").exposed, who).as_linked / PER_ITERATION
        assert rate.cycles == (hidden, exposed)
        assert rate.packets_per_second == pytest.approx((800e6 / hidden, 800e6 / exposed))
        megabits = tuple(each * FRAME_BYTES * 8 / 1e6 for each in rate.packets_per_second or ())
        assert rate.megabits_per_second == pytest.approx(megabits)
        misses = getattr(effect("open-close").misses["l1i"], who).as_linked
        assert rate.misses["l1i"] == pytest.approx(misses / PER_ITERATION)


def test_without_a_clock_there_are_no_rates() -> None:
    text = " ".join(compare_text(report(clock=False)).split())
    assert "A packet by the model of zen3, misses hidden to exposed" in text
    assert "packets/s" not in text
    text = " ".join(compare_text(report()).split())
    assert "A packet by the model of zen3 at 800 MHz" in text


def test_without_a_cpu_there_is_no_model() -> None:
    text = compare_text(msgspec.structs.replace(report(), cpu=None))
    assert "Instructions a packet, of all tasks and interrupts" in text
    assert "by the model" not in text


def test_without_packets_nothing_is_reported() -> None:
    assert "packet" not in compare_text(with_cycles())


def test_as_json() -> None:
    document = decoded(document_text(comparison([report()]), "0.1.0"))
    found = document["machines"][0]["others"][0]["packets"]
    assert [one["region"] for one in found] == [
        "getppid",
        "open-close",
        "a-name-that-is-longer-than-its-column",
    ]
    first = found[0]
    assert first["insns"]["base"]["value"] == 2193.505
    assert first["verdict"]["word"] == "slower"
    assert first["frame_bytes"]["other"]["value"] == FRAME_BYTES
    phases = document["machines"][0]["others"][0]["phases"]
    assert [one["phase"] for one in phases["other"]["getppid"]] == ["router", "rest"]
    assert phases["base"]["getppid"][0]["misses"] == {"l1i": 1.25}
    assert "open-close" not in phases["base"]


def test_a_run() -> None:
    plain = run_report()
    assert plain.counts
    counts = with_packets(plain.counts, "getppid")
    found = msgspec.structs.replace(plain, counts=counts)
    text = shown("run", found)
    fits_a_mail(text)
    lines = text.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("forwarded"))
    insns = counts.regions[0].packet_insns()
    assert insns
    assert text.splitlines()[at + 1].split()[:2] == ["getppid", "200"]
    assert NOT_IN_IT in " ".join(text.split())
    regions = decoded(document_text(found, "0.1.0"))["counts"]["regions"]
    told = regions[0]["packets"]
    assert (told["count"], told["frame_bytes"]) == (200, 200 * FRAME_BYTES)
    assert regions[1]["packets"] is None
