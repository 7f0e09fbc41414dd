# SPDX-License-Identifier: GPL-2.0-or-later
"""A fake lab that several files of tests use."""

from pathlib import Path

import pytest

from tests.lab.fake_lab import (
    CostsByName,
    by_chance,
    by_half,
    failing,
    for_real,
    levels,
    never,
    without_guests,
)


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> CostsByName:
    assert own_cache.is_dir()
    without_guests(monkeypatch)
    return CostsByName(
        {
            "base": (never, 0),
            "lucky": (by_chance, 7),
            "half": (by_half, 0),
            "slow": (for_real, 0),
            "broken": (failing, 0),
            "near": (levels(4_500), 0),
            "near too": (levels(4_500), 0),
            "far": (levels(50_000), 0),
            "far too": (levels(50_000), 0),
        }
    )
