# SPDX-License-Identifier: GPL-2.0-or-later
"""Rooms have ceilings: what scripts/check-sizes says of a repository of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels.git_trees import git

SCRIPT = Path(__file__).parents[2] / "scripts/check-sizes"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of two rooms, with ceilings that are those of its files."""
    for name, lines in (("src/kdelta/lab/lab.py", 4), ("docs/design.md", 3), ("docs/a.json", 9)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n" * lines)
    (tmp_path / "scripts").mkdir()
    ceilings(tmp_path, lab=4, docs=3)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", "-A")
    git(tmp_path, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "base")
    return tmp_path


def ceilings(repository: Path, *, lab: int, docs: int, raised: str = "") -> None:
    """Write the file."""
    reasons = f'"{raised}"' if raised else ""
    text = f'raised = [{reasons}]\n\n[ceilings]\n"src/lab" = {lab}\ndocs = {docs}\n'
    (repository / "scripts/sizes.toml").write_text(text)


def said(repository: Path, *options: str) -> str:
    """Return what the script prints; empty where it finds nothing."""
    words = [sys.executable, str(SCRIPT), *options]
    done = subprocess.run(words, cwd=repository, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert bool(done.stdout) is bool(done.returncode)
    return done.stdout


def test_rooms_at_their_ceilings_pass(repository: Path) -> None:
    assert said(repository) == ""


def test_room_that_grew(repository: Path) -> None:
    (repository / "src/kdelta/lab/lab.py").write_text("x\n" * 6)
    assert said(repository) == "src/lab: 6 lines, of at most 4: make it smaller\n"
    ceilings(repository, lab=6, docs=3)
    wanted = 'src/lab: its ceiling was raised: add "src/lab to 6: WHY" to raised\n'
    assert said(repository) == wanted
    ceilings(repository, lab=6, docs=3, raised="src/lab to 5: runs on two machines")
    assert "was raised" in said(repository)
    ceilings(repository, lab=6, docs=3, raised="src/lab to 6: runs on two machines")
    assert said(repository) == ""


def test_room_that_is_smaller_has_its_ceiling_lowered(repository: Path) -> None:
    (repository / "docs/design.md").write_text("x\n")
    assert said(repository).endswith("its ceiling is 3: scripts/check-sizes --lower\n")
    assert said(repository, "--lower") == ""
    assert "docs = 1\n" in (repository / "scripts/sizes.toml").read_text()


def test_new_room_needs_a_ceiling(repository: Path) -> None:
    new = repository / "native/a.c"
    new.parent.mkdir()
    new.write_text("x\n")
    git(repository, "add", "-A")
    assert said(repository) == "native: 1 lines, and it has no ceiling: add one\n"
