# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU that replaces at random or in turn: its own figures, and next to them those of LRU."""

import re

import msgspec
import pytest

from kdelta.cpus.model import CPU, Cache, Replacement
from kdelta.infer.cycles.ensembles import RegionCost
from kdelta.infer.cycles.placement_model import CycleVerdict, PlacementEffect
from kdelta.infer.effects.effects import Word
from kdelta.lab.progress import Silent
from kdelta.measures.cycles.effects import Cycles, Traced, cycles_between, notes_on_replacement
from kdelta.measures.cycles.placement import PlacedKernel, costs
from kdelta.replay.order import place_in_order
from kdelta.replay.search import WeightedRegion
from kdelta.studies.documents import document_text
from kdelta.studies.layout.study import cache_texts, layout_regions
from kdelta.studies.place.apply import notes_on_policy
from tests.report.example_layout import layout_report
from tests.report.shown import shown
from tests.studies.placed import made, made_trace, small_cpu


def two_ways(replacement: Replacement) -> CPU:
    """One set of two lines."""
    cpu = small_cpu(sets=1)
    l1i = msgspec.structs.replace(cpu.l1i, ways=2, replacement=replacement)
    return msgspec.structs.replace(cpu, l1i=l1i)


def loop() -> PlacedKernel:
    """Three functions in turn: one line more than there are ways."""
    return made(made_trace([0, 1, 2] * 500, [0, 0, 0] * 500))


@pytest.mark.parametrize(("policy", "how"), [("random", "at random"), ("round-robin", "in turn")])
def test_lru_is_besides_what_the_cpu_does(policy: Replacement, how: str) -> None:
    """LRU and round robin miss each line of the loop, at 150 an iteration; at random one of two
    others leaves, which comes after one step or two, so that 2 of 3 are missed. That holds for all
    layouts, so none is better.
    """
    (found,) = layout_regions(loop(), two_ways(policy), layouts=5, seed=1)
    (held,) = found.replacement.values()
    assert list(found.replacement) == ["l1i"]
    assert held.policy == policy
    assert held.own == found.misses["l1i"]
    assert held.lru.as_linked == 150
    assert held.own.as_linked == (150 if policy == "round-robin" else pytest.approx(100, rel=0.05))
    assert held.correlation is None or policy == "random"
    report = msgspec.structs.replace(layout_report(), regions=(found,))
    assert f"L1I misses: this cache replaces {how}; next to it" in " ".join(
        shown("layout", report).split()
    )
    assert f"replaced {how}" in cache_texts(two_ways(policy))[0]
    told = msgspec.json.decode(document_text(report, "1"))["regions"][0]["replacement"]
    assert told["l1i"]["policy"] == policy
    assert told["l1i"]["lru"]["as_linked"] == 150


def test_of_lru_nothing_is_besides_it() -> None:
    (found,) = layout_regions(loop(), two_ways("lru"), layouts=5, seed=1)
    assert found.replacement == {}
    report = msgspec.structs.replace(layout_report(), regions=(found,))
    assert "LRU" not in shown("layout", report)
    assert msgspec.json.decode(document_text(report, "1"))["regions"][0]["replacement"] == {}
    assert "replaced" not in cache_texts(two_ways("lru"))[0]


def between(cpu: CPU, base: PlacedKernel, other: PlacedKernel) -> tuple[Cycles, PlacementEffect]:
    found = cycles_between(
        Traced((), base), Traced((), other), cpu, layouts=4, margin=0.01, progress=Silent()
    )
    assert found is not None
    (effect,) = found.effects
    return found, effect


def test_verdicts_under_lru_are_besides_those_of_the_cpu() -> None:
    same = between(two_ways("random"), loop(), loop())
    assert same[1].misses["l1i"].base.mean == pytest.approx(100, rel=0.05)
    assert same[1].lru is not None
    assert same[1].lru.word is same[1].verdict.word
    (note,) = [note for note in same[0].notes if "replacement" in note]
    assert note.endswith("is not LRU (l1i random); under LRU all verdicts are the same")
    plain = between(two_ways("lru"), loop(), loop())
    assert plain[1].lru is None
    assert not any("replacement" in note for note in plain[0].notes)


def test_a_verdict_that_depends_on_the_policy_is_named() -> None:
    cpu = two_ways("random")
    effect = between(cpu, loop(), loop())[1]
    other = msgspec.structs.replace(effect, region="x", lru=CycleVerdict(Word.SLOWER))
    (note,) = notes_on_replacement(cpu, [effect, other])
    assert note.endswith("under LRU these verdicts are others: x slower")
    assert notes_on_replacement(cpu, []) == []


def test_the_policy_and_lru_are_both_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def spied(*arguments: object, **more: object) -> dict[str, RegionCost]:
        cpu = arguments[1]
        assert isinstance(cpu, CPU)
        asked.append(cpu.l1i.replacement)
        return costs(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("kdelta.measures.cycles.effects.costs", spied)
    one = made(made_trace([0, 1, 2] * 500, [0] * 1500), insns=1500)
    between(two_ways("random"), one, one)
    assert asked == ["random", "random", "lru", "lru"]


def test_an_order_is_told_under_the_policy_too() -> None:
    """In a loop over three lines and two ways of one set no order is better."""
    one, cpu = loop(), two_ways("random")
    result = place_in_order(
        one.placement, [WeightedRegion(one.traces[0])], cpu.least_recent, evaluations=8, layouts=2
    )
    notes = notes_on_policy(one, cpu, result)
    assert notes[0].startswith("replacement on generic-x86-64 is not LRU (l1i random)")
    found = re.fullmatch(
        r"loop: l1i misses replaced random: (\S+) as linked, (\S+) in the order", notes[1]
    )
    assert found is not None
    assert [float(part) for part in found.groups()] == [pytest.approx(100, rel=0.05)] * 2
    assert notes_on_policy(one, cpu.least_recent, result) == []
    apart = msgspec.structs.replace(cpu, l1i=Cache(2, 1, 64, "round-robin"))
    one = made(made_trace([0, 2] * 500, [0] * 1000))
    result = place_in_order(
        one.placement, [WeightedRegion(one.traces[0])], apart.least_recent, evaluations=8
    )
    assert notes_on_policy(one, apart, result)[1] == (
        "loop: l1i misses replaced round-robin: 100.00 as linked, 0.00 in the order"
    )
