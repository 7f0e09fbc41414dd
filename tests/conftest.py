# SPDX-License-Identifier: GPL-2.0-or-later
"""What all tests share: they never touch the user's store, and can fake the host's programs."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes is a matter of the host's load, and of no test.
settings.register_profile("kdelta", deadline=None)
settings.load_profile("kdelta")

FakeProgram = Callable[[str, str], Path]


def wait_for(path: Path) -> str:
    """A shell command that ends when `path` appears, or after a minute: a test that fails must not
    leave a loop behind.
    """
    return f"timeout 60 sh -c 'while [ ! -e {path} ]; do sleep 0.01; done' || true"


@pytest.fixture(autouse=True)
def own_data(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the test's own, and none of the user's CPU files."""
    folder = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("KDELTA_DATA_DIR", str(folder))
    monkeypatch.setenv("KDELTA_CONFIG_DIR", str(folder / "config"))
    return folder


@pytest.fixture
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, empty. Without it a test shares the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def fake_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeProgram:
    """Puts a script on the PATH, before all others, and gives its path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def make(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(script)
        path.chmod(0o755)
        return path

    return make
