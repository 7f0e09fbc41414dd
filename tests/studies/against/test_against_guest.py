# SPDX-License-Identifier: GPL-2.0-or-later
"""Two real programs under real kernels: their system calls are as many as a tracer counts on the
host, and the answer is an exit code.
"""

import asyncio
import functools
import platform
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from reading import read_document

from kdelta.infer.effects.gate import Exit
from kdelta.infer.profiles.system_calls import KernelCostChange, PartKind
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest, Program
from kdelta.store.store import Store
from kdelta.studies.against.model import AgainstReport
from kdelta.studies.against.study import AgainstRequest, run_against
from kdelta.studies.run.request import RunRequest
from tests.cli.studies import Captured, kdelta
from tests.machines.bench import ARM, ARM64, NEW, OLD, process_folder

pytestmark = pytest.mark.guest

HERE = Path(__file__).parent
X86 = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the tracer counts programs of this host"
)
MADE = {"write": 100, "getppid": 20, "getuid": 10, "munmap": 5, "rt_sigreturn": 4, "kill": 4}
"""What calls.c makes itself, on every architecture; printing is a write more."""


@functools.cache
def _program(writes: int, compiler: str = "gcc") -> Path:
    output = process_folder() / f"calls-{writes}-{compiler}"
    flags = ["-std=gnu11", "-O2", "-Wall", "-Werror", "-static", f"-DWRITES={writes}"]
    subprocess.run([compiler, *flags, "-o", output, HERE / "calls.c"], check=True)
    return output


@functools.cache
def _traced(writes: int) -> Counter[str]:
    """What the tracer counts on this host, by the names of the C library's header."""
    tracer = process_folder() / "count_calls"
    subprocess.run(["gcc", "-O2", "-Wall", "-o", tracer, HERE / "count_calls.c"], check=True)
    said = subprocess.run(
        [tracer, _program(writes)], capture_output=True, text=True, check=True
    ).stderr
    header = subprocess.run(
        ["gcc", "-E", "-dM", "-"], input="#include <asm/unistd.h>\n", capture_output=True,
        text=True, check=True,
    ).stdout  # fmt: skip
    names = {int(n): name for name, n in re.findall(r"#define __NR_(\w+) (\d+)\n", header)}
    rows = [line.split() for line in said.splitlines()]
    return Counter({names[int(number)]: int(count) for number, count in rows})


def _compared(spec: str, old: Path, new: Path, *words: str) -> AgainstReport:
    lab = LabRequest(perturbations=1)
    one, other = (
        RunRequest(kernel=spec, program=Program((str(program), *words)), lab=lab)
        for program in (old, new)
    )
    with Store.open(process_folder() / "against-store") as store:
        return asyncio.run(run_against(AgainstRequest(old=one, new=other), Lab(store, Silent())))


def _calls(report: AgainstReport) -> dict[str, KernelCostChange]:
    (region,) = report.regions
    return {one.name: one for one in region.parts if one.kind is PartKind.SYSTEM_CALL}


@pytest.mark.slow
@X86
@pytest.mark.parametrize("spec", [OLD, NEW])
def test_calls_are_as_many_as_a_tracer_counts(spec: str) -> None:
    report = _compared(spec, _program(100), _program(200))
    calls = _calls(report)
    assert {name: one.old_count for name, one in calls.items()} == _traced(100)
    assert {name: one.new_count for name, one in calls.items()} == _traced(200)
    # These cost the same each time, whatever was done before.
    write = calls.pop("write")
    assert write.added > 0
    assert write.added % 100 == 0
    assert not any(calls[name].added for name in ("getppid", "getuid", "fcntl", "kill"))
    (region,) = report.regions
    (entry,) = (one for one in region.parts if one.kind is PartKind.ENTRY)
    assert entry.added > 0
    (started,) = (one for one in region.parts if one.kind is PartKind.NEW_TASK)
    assert started.old_count == 2
    # One run of each has no spread, so there is no verdict, but memory and output are known.
    assert report.decision.exit is Exit.CANNOT_TELL
    assert report.output == ()
    assert report.old.peak_kib
    assert report.old.peak_kib > 1024  # the child's page of 1 MiB


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "compiler"),
    [(ARM64, "aarch64-linux-gnu-gcc"), (ARM, "arm-linux-gnueabihf-gcc")],
)
def test_calls_on_other_architectures(spec: str, compiler: str) -> None:
    report = _compared(spec, _program(100, compiler), _program(200, compiler))
    calls = _calls(report)
    # ARM has a call of its own for the return from a handler that asked for no more than a number.
    names = {"rt_sigreturn": "sigreturn"} if spec == ARM else {}
    for name, count in MADE.items():
        assert calls[names.get(name, name)].old_count == count + (name == "write"), name
    assert calls["write"].new_count == 201
    assert calls["execve"].old_count == 2
    assert calls["exit_group"].old_count == 3
    assert calls["write"].added > 0


@pytest.mark.slow
@X86
def test_the_answer_is_an_exit_code(capsys: Captured, tmp_path: Path) -> None:
    old, new = str(_program(100)), str(_program(20_000))
    assert kdelta("run", OLD, "--against", old, "--", new) == Exit.SLOWER
    text = capsys.readouterr().out
    assert text.partition("\n")[2].startswith("calls-20000-gcc is slower than calls-100-gcc: ")
    assert re.search(r"\nwrite +101 +20001 +\+19900 ", text)
    page = tmp_path / "page.html"
    more = ("--margin", "100000", "--html", str(page), "--json")
    assert kdelta("run", OLD, "--against", old, *more, "--", new) == Exit.NOT_SLOWER
    document = read_document(capsys.readouterr().out)
    assert document.decision.exit == 0
    assert "System calls" in page.read_text()
    # What the programs print differs: that comes before any figure.
    assert kdelta("run", OLD, "--against", f"{old} a", "--", old, "b") in set(Exit)
    text = capsys.readouterr().out
    assert text.partition("\n")[2].startswith(
        "The two programs print different output (standard output), so they"
    )
    # A program that fails has no verdict.
    assert kdelta("run", OLD, "--against", f"{old} fail", "--", new) == Exit.CANNOT_TELL
    assert "old: workload-failed: exit 3" in " ".join(capsys.readouterr().out.split())


@X86
def test_a_program_of_another_machine_is_refused(capsys: Captured, tmp_path: Path) -> None:
    content = bytearray(_program(100).read_bytes())
    content[18:20] = (183).to_bytes(2, "little")  # e_machine: EM_AARCH64
    other = tmp_path / "other"
    other.write_bytes(content)
    other.chmod(0o755)
    assert kdelta("run", OLD, "--against", str(other), "--", str(_program(100))) == 255
    shown = capsys.readouterr()
    assert "cannot run the old program" in shown.err
    assert "is a program for another machine (AARCH64, 64 bit)" in shown.err
    assert shown.out == ""


@pytest.mark.slow
@X86
def test_two_programs_are_timed_here_as_well(capsys: Captured) -> None:
    """The times are this host's, whatever they are: that they are there is what can be known."""
    words = ("--against", str(_program(10)), "--clock", "this", "--pairs", "2", "--json")
    assert kdelta("run", OLD, *words, "--perturb", "1", "--", str(_program(10))) in {0, 1, 125}
    report = read_document(capsys.readouterr().out)
    (effect,) = report.times.effects
    assert effect.region == "command"
    assert effect.base.low > 10_000
    assert report.judged[-1].region.startswith("command by the clock")
