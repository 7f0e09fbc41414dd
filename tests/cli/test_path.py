# SPDX-License-Identifier: GPL-2.0-or-later
"""Folders of PATH that are not absolute have no programs for kdelta."""

import os
from pathlib import Path

import pytest

from kdelta.cli.main import ended
from tests.kernels.git_trees import commit, write_tree


@pytest.mark.parametrize("path", [".:{}", "..:{}:"])
@pytest.mark.slow
def test_programs_of_the_working_folder_and_of_a_tree_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    tree = write_tree(tmp_path / "tree")
    commit(tree, "one")
    ran = tmp_path / "ran"
    for folder in (tree, tmp_path):
        for name in ("git", "make", "gcc"):
            (folder / name).write_text(f"#!/bin/sh\n: >'{ran}'\n")
            (folder / name).chmod(0o755)
    monkeypatch.chdir(tree)
    usual = os.environ["PATH"]
    monkeypatch.setenv("PATH", path.format(usual))
    assert ended(["series", str(tree), "HEAD..none"]) == 2
    assert not ran.exists()
    assert os.environ["PATH"] == usual
