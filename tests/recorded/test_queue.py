# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorded series of docs/cases/queue: a distribution's patches, told in few builds."""

from pathlib import Path
from typing import Any

import pytest
from reading import read_document

RECORD = Path(__file__).parents[2] / "docs/cases/queue/series.json"
PATCHES = 78
MOST_BUILDS = 15


@pytest.fixture(scope="module")
def series() -> Any:
    return read_document(RECORD.read_bytes())


def test_each_patch_has_an_answer_and_a_reason(series: Any) -> None:
    assert len({patch.name for patch in series.patches}) == PATCHES
    assert {patch.fate for patch in series.patches} == {"ruled out", "cleared", "measured"}
    assert [patch.name for patch in series.patches if not patch.why] == []
    assert [
        patch.name for patch in series.patches if patch.fate == "ruled out" and patch.effects
    ] == []


def test_few_builds_tell_it_and_the_proof_is_among_them(series: Any) -> None:
    assert series.failure == ""
    assert [build.label for build in series.builds if build.status != "ok"] == []
    assert 3 <= len(series.builds) <= MOST_BUILDS
    assert series.proof is not None
    assert series.proof.held
    assert series.proof.differing == {}


def test_what_patches_add_is_the_whole(series: Any) -> None:
    assert len([region for region in series.regions if not region.rate]) == 44
    for region in series.regions:
        parts = [patch.effects[region.name].value for patch in series.patches if patch.effects]
        found = sum(parts) + region.remainder.value
        assert found == pytest.approx(region.whole.value, abs=1e-6 * region.before.value)
        assert region.sums != "does not add up"
        narrow = region.remainder.high - region.remainder.low <= 0.002 * region.before.value
        assert region.adds_up is (region.sums == "adds up") is narrow


def test_the_region_whose_runs_vary_is_in_no_mean(series: Any) -> None:
    apart = [region for region in series.regions if region.steady is False and not region.rate]
    assert [region.name for region in apart] == ["vfork-exec"]
    assert apart[0].varies is not None
    assert apart[0].varies.high - apart[0].varies.low > 0.01 * apart[0].varies.value
    assert series.means is not None
    assert series.means.regions == 43
    assert series.means.whole.low < 0 < series.means.whole.high
    assert not any(patch.seen for patch in series.patches)


def test_no_patch_of_it_costs_a_system_call_anything_beyond_the_spread(series: Any) -> None:
    beyond = [
        (patch.name, name)
        for patch in series.patches
        for name, effect in patch.effects.items()
        if effect.low > 0 or effect.high < 0
    ]
    assert beyond == []
    assert [one.name for one in series.regions if one.whole.low > 0 or one.whole.high < 0] == []


def test_no_place_of_a_machine_is_in_it() -> None:
    text = RECORD.read_text("utf-8")
    assert not any(folder in text for folder in ("/root/", "/tmp/", "/home/", "/work/"))
