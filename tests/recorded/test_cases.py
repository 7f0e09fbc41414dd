# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorded ablations of docs/cases: few builds gave the answer of one unit at a time."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from reading import read_document

from kdelta.infer.effects.estimate import Adds
from kdelta.studies.search.model import apart, averaged
from tests.recorded.models import effects_of, means_of

OPTIONS = Path(__file__).parents[2] / "docs/cases/options"
DISTRIBUTION = OPTIONS.with_name("distribution")
RELEVANT = 0.001
"""Of a region's cost in A: what the search looks for, and what is reported of it here."""


def recorded(name: str, folder: Path = OPTIONS) -> Any:
    return read_document((folder / name).read_bytes())


@pytest.fixture(scope="module")
def single() -> Any:
    return recorded("one-at-a-time.json")


@pytest.fixture(scope="module")
def few() -> Any:
    return recorded("ablation.json")


def effects(found: Any, unit: Any) -> Iterator[tuple[str, Any, float]]:
    """Each region's effect, and its cost in A."""
    costs = {region.name: region.before.value for region in found.regions if not region.rate}
    for name, effect in unit.effects.items():
        if name in costs:
            yield name, effect, costs[name]


def matters(effect: Any, cost: float) -> bool:
    beyond_spread = effect.low > 0 or effect.high < 0
    return bool(beyond_spread and abs(effect.value) > RELEVANT * cost)


def test_each_unit_was_measured_alone(single: Any) -> None:
    assert len(single.option_groups) >= 14
    assert {unit.outcome for unit in single.option_groups} == {"measured"}
    assert [unit.name for unit in single.option_groups if not unit.how.startswith("alone")] == []


def test_no_unit_with_an_effect_was_ruled_out(single: Any, few: Any) -> None:
    ruled_out = {unit.name for unit in few.option_groups if unit.outcome in {"dead", "identical"}}
    assert ruled_out
    for unit in single.option_groups:
        found = [name for name, effect, cost in effects(single, unit) if matters(effect, cost)]
        assert unit.name not in ruled_out or not found


def test_no_mean_is_told_without_its_interval(single: Any, few: Any) -> None:
    for found in (single, few):
        means = means_of(found)
        assert len(averaged(means.regions)) == 52
        assert means.adds is Adds.LEFT_OVER, "units interact"
        names = [one.name for one in apart(means.regions)]
        assert names == ["thread-create-join", "unix-round-trip"]
    means = means_of(few)
    seen = {unit.name for unit in few.option_groups if means.sees(effects_of(unit))}
    assert {"SLUB_DEBUG_ON", "CC_OPTIMIZE_FOR_SIZE", "STACKPROTECTOR"} <= seen
    assert seen.isdisjoint({"MAGIC_SYSRQ", "KALLSYMS_ALL", "IOSCHED_BFQ", "PAGE_POISONING"})


def test_few_builds_and_the_proof_held(single: Any, few: Any) -> None:
    assert few.proof is not None
    assert few.proof.held
    assert len(few.builds) <= len(few.option_groups) + 3
    assert len(few.builds) < len(single.builds)
    assert {unit.name for unit in few.option_groups} == {unit.name for unit in single.option_groups}


def test_the_same_answer(single: Any, few: Any) -> None:
    known = {unit.name: unit for unit in few.option_groups}
    differing = []
    for unit in single.option_groups:
        for name, effect, cost in effects(single, unit):
            other = known[unit.name].effects.get(name)
            value, far = (other.value, other.high - other.value) if other else (0.0, 0.0)
            apart = abs(value - effect.value) - far - (effect.high - effect.value)
            if apart > 10 * RELEVANT * cost:
                differing.append((unit.name, name, effect.value, value))
    assert differing == []


def test_sums(few: Any) -> None:
    for region in few.regions:
        whole = Fraction(region.whole.value) - Fraction(region.explained.value)
        assert float(whole) == pytest.approx(region.remainder.value, abs=1e-6 * region.before.value)


@pytest.mark.parametrize(("name", "kernels"), [("ablation.json", 8), ("settled.json", 12)])
def test_a_distributions_configs_in_few_kernels(name: str, kernels: int) -> None:
    found = recorded(name, DISTRIBUTION)
    assert found.proof is not None
    assert found.proof.held
    assert len(found.builds) == kernels
    assert {one.status for one in found.builds} == {"ok"}
    assert found.options == 86
    assert [u.name for u in found.option_groups if u.outcome == "identical"] == [
        "XZ_DEC_MICROLZMA", "KERNEL_LZ4", "MHP_DEFAULT_ONLINE_TYPE_OFFLINE",
    ]  # fmt: skip


def test_what_the_code_said_is_so_alone() -> None:
    """One of the kernels that settle has nothing flipped but the unit that does most: by code it is
    the same, but for what the code's report says is left over.
    """
    few, settled = (recorded(name, DISTRIBUTION) for name in ("ablation.json", "settled.json"))
    by_code, alone = (
        next(unit for unit in found.option_groups if unit.name == "X86_KERNEL_IBT")
        for found in (few, settled)
    )
    assert by_code.how.startswith("by function")
    assert alone.how == "alone from A"
    left = {region.name: abs(region.remainder.value) for region in few.regions}
    found = list(effects(settled, alone))
    assert len(found) == 44
    differing = [
        (name, effect.value, by_code.effects[name].value)
        for name, effect, cost in found
        if abs(effect.value - by_code.effects[name].value)
        > left[name] + (effect.high - effect.low) / 2 + RELEVANT * cost
    ]
    assert differing == []
