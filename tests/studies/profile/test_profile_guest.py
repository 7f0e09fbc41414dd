# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of a real kernel: sums, calls, lines and instructions of a program of one's own."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from kdelta.counts.model import merged_regions
from kdelta.host.native import native_folder
from kdelta.infer.profiles.profile import Selection
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest, Program
from kdelta.lab.work import Work
from kdelta.store.store import Store
from kdelta.studies.diff.study import DiffRequest, run_diff
from kdelta.studies.profile.model import ProfileReport
from kdelta.studies.profile.study import ProfileRequest, kernel_profile
from kdelta.studies.profile.views import Views
from tests.machines.bench import OLD
from tests.report.shown import shown

pytestmark = pytest.mark.guest

PASSES = 50
PROGRAM = f"""
#include "kdelta.h"
#include <unistd.h>
static inline __attribute__((always_inline)) int twice(int a) {{ return 2 * a + 1; }}
__attribute__((noinline)) int inner(int a)
{{
    asm volatile("nop");
    return twice(a);
}}
__attribute__((noinline)) int outer(int a)
{{
    return inner(a) + (int)getppid();
}}
int main(int argc, char **argv)
{{
    kdelta_begin("mine");
    for (int i = 0; i < {PASSES}; i++) {{
        argc += outer(i);
        kdelta_iter();
    }}
    kdelta_end();
    return argc == 0;
}}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    source, made = tmp_path / "mine.c", tmp_path / "mine"
    source.write_text(PROGRAM)
    include = native_folder() / "include"
    argv = ["gcc", "-g", "-O1", f"-I{include}", "-o", str(made), str(source)]
    subprocess.run(argv, check=True)
    return made


def profiled(store: Store, program: Path) -> ProfileReport:
    views = Views(calls=True, callers=("inner",), source=True, annotate=("inner",))
    lab = LabRequest(perturbations=1)
    request = ProfileRequest(regions=("mine",), views=views, lab=lab)
    asked = Work(program=Program((str(program),), find=False))
    found = asyncio.run(kernel_profile(OLD, asked, request, Lab(store, Silent())))
    assert isinstance(found, ProfileReport)
    return found


@pytest.mark.slow
def test_a_program_of_ones_own(tmp_path: Path, program: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        report = profiled(store, program)
        counts = merged_regions(store.counts(report.run.run))["mine"]
        diff = asyncio.run(
            run_diff(
                report.run.run,
                report.run.run,
                DiffRequest(regions=("mine",), views=Views(calls=True)),
                Lab(store, Silent()),
            )
        )
    whole = counts.cost("own").insns
    lines = {line.name: line for line in report.regions[0].chosen(Selection())}
    assert sum(line.cost.insns for line in lines.values()) == whole
    outer, inner = lines["outer"], lines["inner"]
    assert (outer.calls, inner.calls) == (PASSES, PASSES)
    assert outer.inclusive
    assert inner.inclusive
    assert inner.inclusive == inner.cost.insns
    assert outer.inclusive > outer.cost.insns + inner.inclusive
    views = report.views
    assert views.tree
    assert views.tree.total == whole
    assert sum(views.tree.inclusive[root] for root in views.tree.roots()) == whole
    ((key, callers),) = views.callers
    assert key == ("mine", "inner")
    assert [name for _, name in callers.key[:2]] == ["inner", "outer"]
    assert views.lines
    assert sum(line.insns for line in views.lines) == whole
    mine = {line.source.function: line.insns for line in views.lines if line.source.file}
    assert mine["twice"] >= PASSES
    (annotated,) = views.annotated
    assert {insn.count for insn in annotated.insns} == {PASSES}
    assert [insn.text for insn in annotated.insns].count("nop") >= 1
    assert "calls, from the top" in shown("profile", report)
    assert [line for line in diff.lines if line.added] == []
