# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload `syscalls` on the host, where its marks are NOPs."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from kdelta.workloads.catalog import find_workload

from .disassembly import marks

OPERATIONS = [operation.name for operation in find_workload("syscalls").operations]
HIDDEN = ["no-op", "spin-0", "spin-1", "spin-4096", "sleep", "background", "fault-heavy"]
HIDDEN += ["cross-page"]


def execute(program: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    argv = [program, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def test_the_description_names_what_the_program_has(syscalls: Path) -> None:
    assert execute(syscalls, "--list").stdout.split() == OPERATIONS


@pytest.mark.parametrize("operation", [*OPERATIONS, *HIDDEN])
def test_each_operation_runs(syscalls: Path, tmp_path: Path, operation: str) -> None:
    done = execute(syscalls, "--clock", "--scale", "2", "--dir", tmp_path, operation)
    assert (done.returncode, done.stdout) == (0, "")
    assert not done.stderr or (operation == "fork-large" and "left out" in done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_all_operations_run_after_one_another(syscalls: Path, tmp_path: Path) -> None:
    done = execute(syscalls, "--scale", "10", "--dir", tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


def test_there_is_one_place_for_each_mark(syscalls: Path) -> None:
    """So that the constant of an empty region is that of each region."""
    found = Counter(marks(syscalls))
    assert [found[kind] for kind in ("begin", "iter", "end")] == [1, 1, 1]
    assert found["join"]  # the compiler may copy it
    assert found["message"]


def test_a_block_whose_last_instruction_crosses_a_page(syscalls: Path) -> None:
    nm = subprocess.run(["nm", syscalls], capture_output=True, text=True, check=True).stdout
    (line,) = (line for line in nm.splitlines() if line.endswith(" cross_page"))
    assert int(line.split()[0], 16) % 4096 == 4096 - 3 - 3


@pytest.mark.parametrize("name", ["getpid", "spin", "spin-", "spin-x", "spin-1x", "background-2"])
def test_an_unknown_operation_is_a_usage_error(syscalls: Path, tmp_path: Path, name: str) -> None:
    done = execute(syscalls, "--dir", tmp_path, "getppid", name)
    assert done.returncode == 2
    assert "does not know" in done.stderr


@pytest.mark.parametrize("arguments", [("--frobnicate",), ("--scale",)])
def test_an_unknown_option_is_a_usage_error(syscalls: Path, arguments: tuple[str, ...]) -> None:
    assert execute(syscalls, *arguments).returncode == 2


def test_a_failing_call_ends_the_program_with_its_name(syscalls: Path, tmp_path: Path) -> None:
    done = execute(syscalls, "--dir", tmp_path, "spin-4097")
    assert done.returncode == 1
    assert "spin-4097" in done.stderr


def test_a_folder_that_is_missing_is_an_error(syscalls: Path, tmp_path: Path) -> None:
    done = execute(syscalls, "--dir", tmp_path / "missing", "getppid")
    assert done.returncode == 1
    assert "No such file" in done.stderr
