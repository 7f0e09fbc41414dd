# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts/proofs recorded in docs is checked by `make proofs`: data, not code."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.recorded)
