# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload `pairs` on the host, where its marks are NOPs."""

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from kdelta.workloads.catalog import find_workload

from .disassembly import marks

PAIRS = find_workload("pairs")
NAMES = [operation.name for operation in PAIRS.operations]

two_cpus = pytest.mark.skipif(
    not {0, 1} <= os.sched_getaffinity(0), reason="needs the CPUs 0 and 1 of this host"
)


def execute(program: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    argv = [program, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def test_the_description_names_what_the_program_has(pairs: Path) -> None:
    assert execute(pairs, "--list").stdout.split() == NAMES


@two_cpus
@pytest.mark.parametrize("name", NAMES)
def test_each_pair_runs(pairs: Path, tmp_path: Path, name: str) -> None:
    done = execute(pairs, "--clock", "--scale", "1", "--dir", tmp_path, name)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@two_cpus
@pytest.mark.slow
def test_all_pairs_run_after_one_another(pairs: Path, tmp_path: Path) -> None:
    done = execute(pairs, "--scale", "10", "--dir", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_one_cpu_is_refused(pairs: Path, tmp_path: Path) -> None:
    cpu = str(min(os.sched_getaffinity(0)))
    done = execute(Path("taskset"), "-c", cpu, pairs, "--dir", tmp_path, NAMES[0])
    assert done.returncode == 2
    assert "pairs needs two CPUs" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_there_is_one_place_for_each_mark(pairs: Path) -> None:
    """So that CPU 0 alone marks iterations."""
    found = Counter(marks(pairs))
    assert [found[kind] for kind in ("begin", "iter", "end")] == [1, 1, 1]
    assert found["join"]  # the compiler may copy it
    assert found["message"]


@two_cpus
def test_an_unknown_pair_is_a_usage_error(pairs: Path, tmp_path: Path) -> None:
    done = execute(pairs, "--dir", tmp_path, NAMES[0], "stat-no-file")
    assert done.returncode == 2
    assert "does not know" in done.stderr


@pytest.mark.parametrize("arguments", [("--frobnicate",), ("--scale",)])
def test_an_unknown_option_is_a_usage_error(pairs: Path, arguments: tuple[str, ...]) -> None:
    assert execute(pairs, *arguments).returncode == 2


@two_cpus
def test_a_folder_that_is_missing_is_an_error(pairs: Path, tmp_path: Path) -> None:
    done = execute(pairs, "--dir", tmp_path / "missing", NAMES[0])
    assert done.returncode == 1
    assert "No such file" in done.stderr
