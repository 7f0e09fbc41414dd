# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of ablations share: no program is made for the kernels."""

import pytest

from tests.studies.search_lab import without_programs


@pytest.fixture(autouse=True)
def no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    without_programs(monkeypatch)
