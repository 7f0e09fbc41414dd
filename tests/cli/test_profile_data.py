# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta profile --data`, and how it is refused where it cannot be had."""

from pathlib import Path

import pytest

from kdelta.cli import main as cli
from tests.cli.captured import Captured, failed, stored
from tests.report.example import base_counts


def test_data_are_of_a_cpu(own_data: Path, capsys: Captured) -> None:
    run = stored(own_data, base_counts(0))
    failed(["profile", run.id, "--data"], ["none is named", "--cycles"], capsys)


@pytest.mark.parametrize("column", ["l1d", "l2d", "dtlb"])
@pytest.mark.parametrize("option", ["--sort", "--column"])
def test_columns_of_data_need_data(
    option: str, column: str, own_data: Path, capsys: Captured
) -> None:
    run = stored(own_data, base_counts(0))
    argv = ["profile", run.id, "--cpu", "zen4", option, column]
    failed(argv, [f"{column} is what accesses to data miss", "add --data"], capsys)


def test_the_option_is_in_the_help(capsys: Captured) -> None:
    assert cli.ended(["profile", "--help"]) == 0
    assert "--data" in capsys.readouterr().out
