#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Searches that commands recorded: few builds gave the answer of one option group at a time, and a
distribution's patches were told in few builds.

    scripts/proofs/searches.py

checks the documents of docs/cases/options, distribution and queue; docs/cases/README.md has the
`kdelta ablate` and `kdelta series` that made them.
"""

import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, TypeVar

import msgspec
from campaign import CASES, failures, near
from reading import read_document

from kdelta.infer.effects.estimate import Adds, Estimate
from kdelta.infer.search.search_model import RegionSum
from kdelta.studies.search.model import AblatedRegion, Means, apart, averaged

RELEVANT = 0.001
"""Of a region's cost in A: what the search looks for, and what is reported of it here."""
PATCHES, MOST_BUILDS = 78, 15
Model = TypeVar("Model")


def document(name: str) -> Any:
    """Return a recorded document."""
    return read_document((CASES / f"{name}.json").read_bytes())


def model(part: Any, kind: type[Model]) -> Model:
    """Return a part of a document as a value of the type that it was written from."""
    return msgspec.convert(
        msgspec.to_builtins(part), kind, dec_hook=lambda _kind, value: Fraction(value)
    )


def effects_of(part: Any) -> dict[str, Estimate]:
    """Return what a part of a search does, by region."""
    return model(part.effects, dict[str, Estimate])


def means_of(found: Any) -> Means:
    """Return the means over the regions of a search."""
    known = model(found.mean, RegionSum) if found.mean else None
    return Means(model(found.regions, tuple[AblatedRegion, ...]), known)


def effects(found: Any, unit: Any) -> Iterator[tuple[str, Any, float]]:
    """Yield each region's effect, and its cost in A."""
    costs = {region.name: region.before.value for region in found.regions if not region.rate}
    for name, effect in unit.effects.items():
        if name in costs:
            yield name, effect, costs[name]


def check_no_group_with_an_effect_was_ruled_out() -> None:
    """Check that each group was measured alone once, and what was ruled out without."""
    single, few = document("options/one-at-a-time"), document("options/ablation")
    assert len(single.option_groups) >= 14
    assert {unit.outcome for unit in single.option_groups} == {"measured"}
    assert all(unit.how.startswith("alone") for unit in single.option_groups)
    ruled_out = {unit.name for unit in few.option_groups if unit.outcome in {"dead", "identical"}}
    assert ruled_out
    for unit in single.option_groups:
        for name, effect, cost in effects(single, unit) if unit.name in ruled_out else ():
            is_beyond = effect.low > 0 or effect.high < 0
            assert not (is_beyond and abs(effect.value) > RELEVANT * cost), (unit.name, name)


def check_no_mean_is_without_its_interval() -> None:
    """Check the means of both ablations, and which groups have an effect that is seen."""
    for name in ("one-at-a-time", "ablation"):
        means = means_of(document(f"options/{name}"))
        assert len(averaged(means.regions)) == 52
        assert means.adds is Adds.LEFT_OVER, "units interact"
        names = [one.name for one in apart(means.regions)]
        assert names == ["thread-create-join", "unix-round-trip"]
    few = document("options/ablation")
    means = means_of(few)
    seen = {unit.name for unit in few.option_groups if means.sees(effects_of(unit))}
    assert {"SLUB_DEBUG_ON", "CC_OPTIMIZE_FOR_SIZE", "STACKPROTECTOR"} <= seen
    assert seen.isdisjoint({"MAGIC_SYSRQ", "KALLSYMS_ALL", "IOSCHED_BFQ", "PAGE_POISONING"})


def check_few_builds_give_the_same_answer() -> None:
    """Check the proof, the number of builds, each effect and the sums."""
    single, few = document("options/one-at-a-time"), document("options/ablation")
    assert few.proof is not None
    assert few.proof.held
    assert len(few.builds) <= len(few.option_groups) + 3
    assert len(few.builds) < len(single.builds)
    known = {unit.name: unit for unit in few.option_groups}
    assert known.keys() == {unit.name for unit in single.option_groups}
    for unit in single.option_groups:
        for name, effect, cost in effects(single, unit):
            other = known[unit.name].effects.get(name)
            value, far = (other.value, other.high - other.value) if other else (0.0, 0.0)
            off = abs(value - effect.value) - far - (effect.high - effect.value)
            assert off <= 10 * RELEVANT * cost, (unit.name, name, effect.value, value)
    for region in few.regions:
        whole = float(Fraction(region.whole.value) - Fraction(region.explained.value))
        assert near(whole, region.remainder.value, by=1e-6 * region.before.value)


def check_configs_of_a_distribution_in_few_kernels() -> None:
    """Check how many kernels both answers took, and what was excluded."""
    for name, kernels in (("ablation", 8), ("settled", 12)):
        found = document(f"distribution/{name}")
        assert found.proof is not None
        assert found.proof.held
        assert len(found.builds) == kernels
        assert {one.status for one in found.builds} == {"ok"}
        assert found.options == 86
        assert [u.name for u in found.option_groups if u.outcome == "identical"] == [
            *("XZ_DEC_MICROLZMA", "KERNEL_LZ4", "MHP_DEFAULT_ONLINE_TYPE_OFFLINE")
        ]


def check_what_the_code_showed_is_so_alone() -> None:
    """Check the group that does most: one of the kernels that settle has it flipped alone. By code
    it is the same, but for what the code's report says is left over.
    """
    few, settled = document("distribution/ablation"), document("distribution/settled")
    by_code, alone = (
        next(unit for unit in found.option_groups if unit.name == "X86_KERNEL_IBT")
        for found in (few, settled)
    )
    assert by_code.how.startswith("by function")
    assert alone.how == "alone from A"
    left = {region.name: abs(region.remainder.value) for region in few.regions}
    found = list(effects(settled, alone))
    assert len(found) == 44
    for name, effect, cost in found:
        most = left[name] + (effect.high - effect.low) / 2 + RELEVANT * cost
        assert abs(effect.value - by_code.effects[name].value) <= most, name


def check_each_patch_has_an_answer_and_a_reason() -> None:
    """Check the answers of the series, its builds and its proof."""
    series = document("queue/series")
    assert len({row.answer.name for row in series.rows}) == PATCHES
    assert {row.answer.outcome for row in series.rows} == {"ruled out", "cleared", "measured"}
    assert [row.answer.name for row in series.rows if not row.why] == []
    ruled_out = [row.answer for row in series.rows if row.answer.outcome == "ruled out"]
    assert not any(answer.effects for answer in ruled_out)
    assert series.failure == ""
    assert [build.label for build in series.builds if build.status != "ok"] == []
    assert 3 <= len(series.builds) <= MOST_BUILDS
    assert series.proof is not None
    assert series.proof.held
    assert series.proof.differing == {}


def check_what_patches_add_is_the_whole() -> None:
    """Check the sums of the series."""
    series = document("queue/series")
    assert len([region for region in series.regions if not region.rate]) == 44
    answers = [row.answer for row in series.rows if row.answer.effects]
    for region in series.regions:
        parts = [answer.effects[region.name].value for answer in answers]
        found = sum(parts) + region.remainder.value
        assert near(found, region.whole.value, by=1e-6 * region.before.value)
    assert Adds.LEFT_OVER not in {region.adds for region in means_of(series).regions}


def check_the_region_whose_runs_vary_is_in_no_mean() -> None:
    """Check the means of the series."""
    series = document("queue/series")
    means = means_of(series)
    (one,) = apart(means.regions)
    assert one.name == "vfork-exec"
    assert one.varies.high - one.varies.low > one.varies.value / 100
    assert len(averaged(means.regions)) == 43
    assert means.whole
    assert means.whole.low < 0 < means.whole.high
    assert not any(means.sees(effects_of(row.answer)) for row in series.rows)


def check_no_patch_costs_a_system_call_anything_beyond_the_spread() -> None:
    """Check that each effect of the series may be zero, and that no place of a machine is in it."""
    series = document("queue/series")
    for row in series.rows:
        for name, effect in row.answer.effects.items():
            assert effect.low <= 0 <= effect.high, (row.answer.name, name)
    assert all(one.whole.low <= 0 <= one.whole.high for one in series.regions)
    text = (CASES / "queue/series.json").read_text()
    assert not any(folder in text for folder in ("/root/", "/tmp/", "/home/", "/work/"))


if __name__ == "__main__":
    sys.exit(failures(sys.modules[__name__]))
