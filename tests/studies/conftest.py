# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of studies share: an empty store, and an ablation of the fake tree."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.host.dirs import data_dir
from kdelta.store.store import Store
from kdelta.studies.ablate.request import AblateRequest
from tests.kernels.trees import fake_tree

SLOW = """CONFIG_DEBUG_KERNEL=y
CONFIG_DEBUG_LIST=y
CONFIG_DEBUG_LOCK=y
CONFIG_ZERO_PAGES=y
CONFIG_OLD_DRIVER=y
CONFIG_OPTIMIZE_FOR_SIZE=y
"""
FAST = "# CONFIG_DEBUG_KERNEL is not set\nCONFIG_OPTIMIZE_FOR_SPEED=y\n"


@pytest.fixture
def ablate_request(own_cache: Path, tmp_path: Path) -> AblateRequest:
    assert own_cache.is_dir()
    (tmp_path / "slow_defconfig").write_text(SLOW)
    (tmp_path / "fast_defconfig").write_text(FAST)
    return AblateRequest(
        tree=f"tree:{fake_tree(tmp_path)}",
        before=str(tmp_path / "slow_defconfig"),
        after=str(tmp_path / "fast_defconfig"),
    )


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open(data_dir()) as opened:
        yield opened
