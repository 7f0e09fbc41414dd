# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of the kinds of misses."""

import pytest

from kdelta.cpus.misses import MISSES
from kdelta.cpus.model import DATA_MISS_KINDS, MISS_KINDS


def test_every_kind_has_names_and_nothing_else_has() -> None:
    assert tuple(MISSES) == (*MISS_KINDS, *DATA_MISS_KINDS)


@pytest.mark.parametrize("field", ["price", "plural"])
def test_names_of_different_kinds_differ(field: str) -> None:
    names = [getattr(one, field) for one in MISSES.values()]
    assert len(set(names)) == len(MISSES)
