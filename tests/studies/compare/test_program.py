# SPDX-License-Identifier: GPL-2.0-or-later
"""A program of the host, compared under two kernels: as a whole, and by its own regions."""

import asyncio
import subprocess
from pathlib import Path

import msgspec
import pytest

from kdelta.host.native import native_folder
from kdelta.infer.effects.effects import compare_runs
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest, Program
from kdelta.store.store import Store
from kdelta.studies.compare.assemble import compare_reports
from kdelta.studies.compare.model import Compared, CompareReport
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare
from tests.machines.bench import NEW, OLD
from tests.report.example import report
from tests.report.test_first_screen import first_screen_of
from tests.studies.run.test_command import MARKED
from tests.synthetic import own, region, run, user

LS = "ls -R /usr/share"


def whole(kernel: int, program: int, output: str = "") -> CompareReport:
    """The report on a whole program that executed so much more under the other kernel."""
    base = {own("vfs_read"): 3000, user("main", "ls"): 1000}
    other = {own("vfs_read"): 3000 + kernel, user("main", "ls"): 1000 + program}
    sides = [
        [run(region("command", costs, iterations=1)) for _ in range(3)] for costs in (base, other)
    ]
    compared = Compared(report().others[0].side, compare_runs(*sides), output=output)
    return msgspec.structs.replace(report(), workload=LS, others=(compared,))


def test_the_first_sentence_has_kernel_and_user_instructions_apart() -> None:
    text = " ".join(first_screen_of([whole(600, 0)]).split())
    assert f"{LS}: slower. Instructions +15.0% (4000 to 4600); " in text
    assert "kernel instructions +20.0% (3000 to 3600); " in text
    assert "user instructions same (1000 to 1000). Largest part: +600 vfs_read." in text


def test_output_that_differs_is_reported_before_any_figure() -> None:
    text = first_screen_of([whole(600, 0, "line 1 of its stdout is 'a' under the base and 'b'")])
    words = " ".join(text.split())
    assert "The program's output differs" in words
    assert words.index("output differs") < words.index("Instructions +15.0%")


def _compared(folder: Path, *command: str) -> tuple[Comparison, CompareReport]:
    request = CompareRequest(
        base=OLD,
        others=(NEW,),
        program=Program(command),
        states=False,
        lab=LabRequest(perturbations=1),
    )
    with Store.open(folder / "store") as store:
        (found,) = asyncio.run(run_compare(request, Lab(store, Silent())))
        (reported,) = compare_reports([found], store)
    return found, reported


@pytest.mark.guest
@pytest.mark.slow
def test_a_static_program_is_compared_by_the_regions_that_it_marks(tmp_path: Path) -> None:
    source, program = tmp_path / "marked.c", tmp_path / "marked"
    source.write_text(MARKED)
    include = native_folder() / "include"
    subprocess.run(["gcc", "-static", "-O2", f"-I{include}", "-o", program, source], check=True)
    found, reported = _compared(tmp_path, str(program))
    assert found.effects
    operation, _ = found.effects.operations
    assert operation.name == "mine"
    assert operation.costs
    assert operation.costs.user_insns.effect.value == 0
    assert operation.costs.kernel_insns.effect.value != 0
    assert reported.workload == str(program)
    assert reported.others[0].output == ""


@pytest.mark.guest
@pytest.mark.slow
def test_output_that_differs_between_kernels_is_found(tmp_path: Path) -> None:
    _, reported = _compared(tmp_path, "uname", "-r")
    assert reported.others[0].output.startswith("line 1 of its stdout is '6.1.")
