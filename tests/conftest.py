# SPDX-License-Identifier: GPL-2.0-or-later
"""What all tests share: their marks, a store that is not the user's, and fakes of programs."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.caches import use_cache
from tests.caller import allow_open_files, forget_caller, ordered
from tests.marks import MARKS, Marks
from tests.resume import use_resume

# How long an example takes depends on the host's load, and is tested nowhere. `make test-fast` asks
# for the quick profile, `make test-all` for the thorough one. All try the same examples in every
# run, so that a change fails for what it did; `make campaign-properties` looks for new ones.
settings.register_profile("quick", deadline=None, max_examples=8, derandomize=True)
settings.register_profile("kdelta", deadline=None, max_examples=15, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=100, derandomize=True)
settings.register_profile("random", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("kdelta")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of tests/resume.py and tests/caller.py."""
    text = "leave out tests that passed in this state of the checkout"
    parser.addoption("--resume", action="store_true", help=text)
    parser.addoption("--order", default="", help="reverse, or any text to draw an order by")


def pytest_configure(config: pytest.Config) -> None:
    """Make the stand-ins for programs that need a mark, and forget what the caller hands on."""
    forget_caller()
    if wrong := allow_open_files():
        pytest.exit(f"cannot run the tests: {wrong}", pytest.ExitCode.USAGE_ERROR)
    folder = tempfile.TemporaryDirectory(prefix="kdelta-marks-")
    config.add_cleanup(folder.cleanup)
    config.stash[MARKS] = Marks(Path(folder.name))
    use_resume(config)


TIMEOUTS_SECONDS = {"campaign": 7200, "build": 1800, "network": 600, "guest": 600, "slow": 600}
"""How long a test may take at most, by its first mark of these; 120 without any (pyproject.toml).
A hang is then a failure with a name, and what it waited for."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each test its time limit, and all the order that is asked for."""
    ordered(items, config.getoption("--order"))
    for item in items:
        names = {mark.name for mark in item.iter_markers()}
        if seconds := next((limit for mark, limit in TIMEOUTS_SECONDS.items() if mark in names), 0):
            item.add_marker(pytest.mark.timeout(seconds))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Names bytes by their argument: packed ones hold the time, and every worker of xdist must
    collect the same names.
    """
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Allows a test, from its first fixture on, what its marks say."""
    item.config.stash[MARKS].start({mark.name for mark in item.iter_markers()})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Fails a test that used what its marks do not allow."""
    yield
    if commands := item.config.stash[MARKS].stop():
        pytest.fail(f"{item.name} lacks a mark for: {'; '.join(commands)}", pytrace=False)


FakeProgram = Callable[[str, str], Path]


def wait_for(path: Path) -> str:
    """A shell command that ends when `path` appears, or after a minute: a test that fails must not
    leave a loop behind.
    """
    return f"timeout 60 sh -c 'while [ ! -e {path} ]; do sleep 0.01; done' || true"


@pytest.fixture(autouse=True)
def own_data(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the test's own, and none of the user's CPU files, defaults and servers. No
    test asks the public snapshot archive.
    """
    folder = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("KDELTA_DATA_DIR", str(folder))
    monkeypatch.setenv("KDELTA_CONFIG_DIR", str(folder / "config"))
    monkeypatch.setenv("KDELTA_SNAPSHOT_URL", "")
    return folder


@pytest.fixture
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, which has nothing but the pin that the user's has. Without it a
    test shares the user's cache.
    """
    folder = tmp_path_factory.mktemp("cache")
    use_cache(folder, monkeypatch)
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


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between two downloads from a mirror that is being renewed; none lasts."""
    made: list[float] = []
    monkeypatch.setattr("kdelta.kernels.packages.apt.sleep", made.append)
    return made
