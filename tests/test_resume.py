# SPDX-License-Identifier: GPL-2.0-or-later
"""A run that is resumed leaves out what passed, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels.git_trees import git
from tests.resume import tree_of_checkout

CONFTEST = """
import pathlib
import tests.resume as resume
resume.ROOT = pathlib.Path(__file__).parent
pytest_addoption = lambda parser: parser.addoption("--resume", action="store_true")
pytest_configure = resume.use_resume
"""
TESTS = """
import pytest
def test_passes(): pass
def test_fails(): assert 0
@pytest.mark.skip
def test_skipped(): pass
@pytest.fixture
def ends_badly():
    yield
    assert 0
def test_teardown_fails(ends_badly): pass
"""


def resumed(folder: Path, *words: str) -> str:
    root = Path(__file__).parents[1]
    argv = [sys.executable, "-m", "pytest", "-q", "--resume", "-p", "no:cacheprovider", *words]
    done = subprocess.run(
        argv, cwd=folder, env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.splitlines()[-1]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    for name, text in (
        ("conftest.py", CONFTEST), ("test_a.py", TESTS), (".gitignore", "/build\n__pycache__\n"),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "a")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("-n", "2")])
def test_resume_leaves_out_what_passed(checkout: Path, words: tuple[str, ...]) -> None:
    first, second = (resumed(checkout, *words) for _ in range(2))
    assert "1 failed, 2 passed, 1 skipped, 1 error" in first
    assert "1 failed, 1 passed, 1 skipped" in second
    assert "2 passed" not in second


def test_resume_begins_again_after_a_change(checkout: Path) -> None:
    before = tree_of_checkout(checkout)
    assert tree_of_checkout(checkout) == before
    (checkout / "new").write_text("")
    assert tree_of_checkout(checkout) != before
    assert git(checkout, "status", "--porcelain").strip() == "?? new"
