# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of series share: an empty queue for the fake tree, a store, and no guests."""

from pathlib import Path

import pytest

from kdelta.store.store import Store
from tests.kernels.trees import fake_tree
from tests.studies.search_lab import without_programs
from tests.studies.series.patches import Queue, SeriesLab


@pytest.fixture
def queue(own_cache: Path, tmp_path: Path) -> Queue:
    assert own_cache.is_dir()
    return Queue(fake_tree(tmp_path), tmp_path / "queue")


@pytest.fixture
def lab(store: Store, monkeypatch: pytest.MonkeyPatch) -> SeriesLab:
    without_programs(monkeypatch)
    return SeriesLab(store)
