# SPDX-License-Identifier: GPL-2.0-or-later
"""A layout's instructions are those that a comparison counted of the same kernel."""

import json

import pytest

from kdelta.cli import main as cli
from tests.cli.captured import Captured
from tests.machines.bench import OLD


@pytest.mark.guest
@pytest.mark.slow
def test_layout_has_the_instructions_that_were_counted(capsys: Captured) -> None:
    one_run = ("--perturb", "1", "--skip-states")
    assert cli.ended(["compare", OLD, OLD, "-o", "getppid", *one_run, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["machines"][0]["others"][0]["effects"]
    (counted,) = found["operations"]
    words = ["layout", OLD, "-o", "getppid", "--cpu", "zen4", "--layouts", "8", "--json"]
    assert cli.ended(words) == 0
    (region,) = json.loads(capsys.readouterr().out)["regions"]
    assert region["insns"]["value"] == counted["base"]["value"]
    drawn = region["misses"]["l1i"]
    assert 0 <= drawn["least"] <= drawn["median"] <= drawn["most"]
