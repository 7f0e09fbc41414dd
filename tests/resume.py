# SPDX-License-Identifier: GPL-2.0-or-later
"""`--resume`: a run of many minutes goes on where it was ended.

build/passed has a file for each state of the checkout, with the tests that passed in it; they are
left out the next time.
"""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_FILE = "KDELTA_TEST_PASSED"
"""Names the file to the workers of xdist."""


def tree_of_checkout(root: Path) -> str:
    """Return the hash of the tree that a commit of all files of the checkout would have."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "GIT_INDEX_FILE": f"{folder}/index"}
        for words in (["read-tree", "HEAD"], ["add", "--all"]):
            subprocess.run(["git", *words], cwd=root, env=env, check=True)
        command = ["git", "write-tree"]
        done = subprocess.run(
            command, cwd=root, env=env, check=True, capture_output=True, text=True
        )
    return done.stdout.strip()


class Resume:
    """The tests that passed, in a file of a line each."""

    def __init__(self, file: Path, *, notes: bool) -> None:
        self._file, self._notes = file, notes
        self._passed = set(file.read_text().splitlines()) if file.exists() else set()
        self._failed: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what passed."""
        done = [item for item in items if item.nodeid in self._passed]
        if done:
            config.hook.pytest_deselected(items=done)
            items[:] = [item for item in items if item.nodeid not in self._passed]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test whose every phase passed; one that was skipped is tried again."""
        if not report.passed:
            self._failed.add(report.nodeid)
        elif self._notes and report.when == "teardown" and report.nodeid not in self._failed:
            with self._file.open("a") as file:
                file.write(f"{report.nodeid}\n")


def use_resume(config: pytest.Config) -> None:
    """Register the above if it was asked for; of several processes the first one notes."""
    if not config.getoption("--resume"):
        return
    if is_worker := _FILE in os.environ:
        file = Path(os.environ[_FILE])
    else:
        file = ROOT / "build/passed" / tree_of_checkout(ROOT)
        file.parent.mkdir(parents=True, exist_ok=True)
        os.environ[_FILE] = str(file)
    config.pluginmanager.register(Resume(file, notes=not is_worker))
