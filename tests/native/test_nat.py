# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload `nat`: that its program compiles for each architecture, and what it says it has."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from kdelta.host.gcc import Compiler
from kdelta.spec.errors import LabError
from kdelta.workloads.catalog import build_workload, find_workload
from tests.native.disassembly import marks

pytestmark = pytest.mark.long

NAT = find_workload("nat")
OPERATIONS = [operation.name for operation in NAT.operations]


@pytest.fixture(scope="session")
def nat() -> Path:
    return build_workload(NAT, by=Compiler("x86_64"), strict=True)


def execute(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [str(program), *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["arm", "arm64", "riscv64"])
def test_it_compiles_without_a_warning(arch: str) -> None:
    try:
        assert build_workload(NAT, by=Compiler(arch), strict=True).is_file()
    except LabError as error:
        if "is missing" not in error.message:
            raise
        pytest.skip(error.message)


def test_the_description_names_what_the_program_has(nat: Path) -> None:
    assert execute(nat, "--list").stdout.split() == OPERATIONS


def test_there_is_one_place_for_each_mark(nat: Path) -> None:
    found = Counter(marks(nat))
    assert [found[kind] for kind in ("begin", "iter", "end")] == [1, 1, 1]


@pytest.mark.parametrize(
    "words", [("udp",), ("--settle",), ("--settle", "x"), ("--what",), ("--flows", "3")]
)
def test_wrong_words_are_a_usage_error(nat: Path, words: tuple[str, ...]) -> None:
    done = execute(nat, *words)
    assert done.returncode == 2
    assert "usage: nat" in done.stderr
