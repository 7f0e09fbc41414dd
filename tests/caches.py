# SPDX-License-Identifier: GPL-2.0-or-later
"""Caches of a test's own."""

from pathlib import Path

import pytest

from kdelta.host import manifest
from kdelta.host.dirs import cache_dir


def use_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes an empty folder the cache, with nothing in it but the pin that the present one has."""
    (folder / "qemu").symlink_to(cache_dir("qemu").resolve())
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(folder))


def forget_checks() -> None:
    """Has folders of the cache compared again, as another process would."""
    manifest.must_be_undamaged.cache_clear()
