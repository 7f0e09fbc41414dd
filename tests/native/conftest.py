# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs compiled from native/ for its tests, with all warnings as errors."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from kdelta.host.native import COMMON_FLAGS, STATIC_FLAGS, STRICT_FLAGS, native_folder
from kdelta.workloads.catalog import find_workload

HERE = Path(__file__).parent
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def compile_c(output: Path, sources: Sequence[Path], *flags: str) -> Path:
    """`output`, compiled from `sources`; a warning fails the test."""
    includes = [f"-I{native_folder() / folder}" for folder in ("include", "agent")]
    argv = ["gcc", *COMMON_FLAGS, *STRICT_FLAGS, *flags, *includes, "-o", str(output)]
    subprocess.run([*argv, *map(str, sources)], check=True)
    return output


@pytest.fixture(scope="session")
def syscalls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the workload `syscalls`."""
    return _workload("syscalls", tmp_path_factory)


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of the workload `pairs`."""
    return _workload("pairs", tmp_path_factory)


def _workload(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    workload = find_workload(name)
    return compile_c(
        tmp_path_factory.mktemp(name) / name,
        [workload.folder / source for source in workload.sources],
        *STATIC_FLAGS,
        *workload.cflags,
    )


@pytest.fixture(scope="session")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guest's init."""
    sources = sorted((native_folder() / "agent").glob("*.c"))
    return compile_c(tmp_path_factory.mktemp("agent") / "agent", sources, *STATIC_FLAGS)


@pytest.fixture(scope="session")
def parsers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The agent's parsers alone, with sanitizers."""
    folder = native_folder() / "agent"
    return compile_c(
        tmp_path_factory.mktemp("parsers") / "parsers",
        [HERE / "parsers.c", folder / "cpio.c", folder / "job.c"],
        *SANITIZERS,
    )
