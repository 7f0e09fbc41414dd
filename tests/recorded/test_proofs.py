# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts/proofs recorded in docs is as each proof says that it must be: its `--check`."""

from collections.abc import Callable

import campaign
import pytest

pytestmark = pytest.mark.long

CHECKS = {
    f"{module.__name__}: {name}": check
    for module in campaign.modules()
    for name, check in campaign.checks(module).items()
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS.keys())
def test_recorded(check: Callable[[], object]) -> None:
    check()
