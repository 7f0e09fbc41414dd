# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorded series of docs/cases/queue: a distribution's patches, told in few builds."""

from pathlib import Path
from typing import Any

import pytest
from reading import read_document

from kdelta.infer.effects.estimate import Adds
from kdelta.studies.search.model import apart, averaged
from tests.recorded.models import effects_of, means_of

RECORD = Path(__file__).parents[2] / "docs/cases/queue/series.json"
PATCHES = 78
MOST_BUILDS = 15


@pytest.fixture(scope="module")
def series() -> Any:
    return read_document(RECORD.read_bytes())


def test_each_patch_has_an_answer_and_a_reason(series: Any) -> None:
    assert len({row.answer.name for row in series.rows}) == PATCHES
    assert {row.answer.outcome for row in series.rows} == {"ruled out", "cleared", "measured"}
    assert [row.answer.name for row in series.rows if not row.why] == []
    ruled_out = [row.answer for row in series.rows if row.answer.outcome == "ruled out"]
    assert not any(answer.effects for answer in ruled_out)


def test_few_builds_tell_it_and_the_proof_is_among_them(series: Any) -> None:
    assert series.failure == ""
    assert [build.label for build in series.builds if build.status != "ok"] == []
    assert 3 <= len(series.builds) <= MOST_BUILDS
    assert series.proof is not None
    assert series.proof.held
    assert series.proof.differing == {}


def test_what_patches_add_is_the_whole(series: Any) -> None:
    assert len([region for region in series.regions if not region.rate]) == 44
    answers = [row.answer for row in series.rows if row.answer.effects]
    for region in series.regions:
        parts = [answer.effects[region.name].value for answer in answers]
        found = sum(parts) + region.remainder.value
        assert found == pytest.approx(region.whole.value, abs=1e-6 * region.before.value)
    assert Adds.LEFT_OVER not in {region.adds for region in means_of(series).regions}


def test_the_region_whose_runs_vary_is_in_no_mean(series: Any) -> None:
    means = means_of(series)
    (one,) = apart(means.regions)
    assert one.name == "vfork-exec"
    assert one.varies.high - one.varies.low > one.varies.value / 100
    assert len(averaged(means.regions)) == 43
    assert means.whole
    assert means.whole.low < 0 < means.whole.high
    assert not any(means.sees(effects_of(row.answer)) for row in series.rows)


def test_no_patch_of_it_costs_a_system_call_anything_beyond_the_spread(series: Any) -> None:
    beyond = [
        (row.answer.name, name)
        for row in series.rows
        for name, effect in row.answer.effects.items()
        if effect.low > 0 or effect.high < 0
    ]
    assert beyond == []
    assert [one.name for one in series.regions if one.whole.low > 0 or one.whole.high < 0] == []


def test_no_place_of_a_machine_is_in_it() -> None:
    text = RECORD.read_text("utf-8")
    assert not any(folder in text for folder in ("/root/", "/tmp/", "/home/", "/work/"))
