# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of commands share."""

from pathlib import Path

import pytest

from tests.cli.studies import Studies


@pytest.fixture
def studies(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Studies:
    assert own_cache.is_dir()
    return Studies(monkeypatch)
