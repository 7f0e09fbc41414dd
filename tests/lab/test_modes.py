# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in the kernel's mode: what goes along, what is refused, and what a kernel says to it."""

import asyncio
import subprocess
from pathlib import Path

import msgspec
import pytest

from kdelta.guests.job import Job
from kdelta.guests.kernel_mode import CALL_CACHE, LIBRARY
from kdelta.host.gcc import Compiler
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab
from kdelta.lab.plan import RunPlan, in_mode, linked_in
from kdelta.lab.program import program_work
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest, Program
from kdelta.lab.run_facts import mode_of
from kdelta.lab.work import workload_work
from kdelta.spec.errors import UserError
from kdelta.spec.run import MODES, MachineOptions, Mode, RunStatus
from kdelta.store.store import Store
from kdelta.studies.run.request import RunRequest
from kdelta.studies.run.study import run_command
from kdelta.workloads.catalog import build_workload, find_workload
from tests.machines.bench import OLD

pytestmark = pytest.mark.long

X86 = Kernel("0" * 64, "tree:/linux", "vmlinux", "x86_64", "6.12")
ARM = msgspec.structs.replace(X86, arch="arm")
SYSCALLS = find_workload("syscalls")


def work_in(mode: Mode, *command: str) -> RunPlan:
    return program_work(Program(command), X86, LabRequest(mode=mode))


def test_user_mode_changes_nothing() -> None:
    job = Job(("/a",))
    assert in_mode(job, "user", X86, MachineOptions()) is job
    assert in_mode(job, "user", ARM, MachineOptions()) is job


def test_the_same_program_in_kernel_mode_is_another_job() -> None:
    user = workload_work(SYSCALLS, ("getppid",), X86)
    kernel = workload_work(SYSCALLS, ("getppid",), X86, asked=LabRequest(mode="kernel"))
    assert kernel.job == msgspec.structs.replace(user.job, mode="kernel")
    assert kernel.identity != user.identity
    assert kernel.binaries == user.binaries


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "told"), [("kernel-direct", "direct"), ("kernel-skip", "skip")])
def test_a_workload_that_calls_directly_is_linked_with_the_library(mode: Mode, told: str) -> None:
    user = workload_work(SYSCALLS, ("getppid",), X86)
    direct = workload_work(SYSCALLS, ("getppid",), X86, asked=LabRequest(mode=mode))
    env = {"LD_PRELOAD": LIBRARY, "KDELTA_CALL": told, "KDELTA_CALL_CACHE": CALL_CACHE}
    assert dict(direct.job.env) == env
    assert {file.guest: file.mode for file in direct.job.files} == {
        SYSCALLS.program: 0o755,
        LIBRARY: 0o755,
    }
    assert direct.binaries["syscalls"] != user.binaries["syscalls"]
    assert set(direct.binaries) == {"syscalls", "kernel_mode.so"}
    assert user.job.files == ()


def test_what_a_workload_starts_calls_as_it_does() -> None:
    """A compile's own programs: the workload makes their environment, and its execve() adds to it
    (tests/native has it done).
    """
    kbuild = find_workload("kbuild")
    programs = {
        mode: build_workload(kbuild, by=Compiler("x86_64"), more=linked_in(mode, X86))
        for mode in MODES
    }
    wrapped = {mode: b"__wrap_execve" in path.read_bytes() for mode, path in programs.items()}
    assert wrapped == {"user": False, "kernel": False, "kernel-direct": True, "kernel-skip": True}
    assert programs["user"] == programs["kernel"]


def test_a_dynamic_command_is_given_the_library() -> None:
    work = work_in("kernel-skip", "true")
    assert dict(work.job.env)["LD_PRELOAD"] == LIBRARY
    assert "kernel_mode.so" in work.binaries
    plain = work_in("kernel", "true")
    assert "LD_PRELOAD" not in dict(plain.job.env)


@pytest.mark.parametrize("mode", MODES[1:])
def test_other_architectures_have_no_kernel_mode(mode: Mode) -> None:
    with pytest.raises(UserError, match=f"--mode {mode} on tree:/linux, a kernel for arm"):
        workload_work(SYSCALLS, (), ARM, asked=LabRequest(mode=mode))


def compiled(folder: Path, *flags: str) -> Path:
    source, program = folder / "program.c", folder / "program"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", *flags, "-o", program, source], check=True)
    return program


@pytest.mark.parametrize("flag", ["-static", "-static-pie"])
def test_a_static_command_cannot_be_made_to_call_directly(tmp_path: Path, flag: str) -> None:
    program = compiled(tmp_path, flag)
    for mode in ("kernel-direct", "kernel-skip"):
        with pytest.raises(UserError, match="is linked statically") as raised:
            work_in(mode, str(program))
        assert "--mode kernel " in raised.value.hint
    assert work_in("kernel", str(program)).job.mode == "kernel"


def test_a_32_bit_program_is_refused_before_a_guest_boots(tmp_path: Path) -> None:
    program = compiled(tmp_path)
    content = bytearray(program.read_bytes())
    content[4], content[18] = 1, 3  # EI_CLASS and e_machine: ELFCLASS32 and EM_386
    program.write_bytes(bytes(content))
    with pytest.raises(UserError, match=r"for another machine \(386, 32 bit\)"):
        work_in("kernel", str(program))


@pytest.mark.guest
@pytest.mark.slow
def test_a_kernel_without_kernel_mode_says_so(tmp_path: Path) -> None:
    lab = LabRequest(perturbations=1, mode="kernel")
    asked = RunRequest(kernel=OLD, program=Program(("true",), find=False), lab=lab)
    with Store.open(tmp_path / "store") as store:
        (done,) = asyncio.run(run_command(asked, Lab(store, Silent())))
    assert done.run.status is RunStatus.WORKLOAD_FAILED
    assert done.run.detail == (
        "mode kernel: this kernel has no kernel mode: +kernel-mode builds one that has it"
    )
    assert mode_of(done.run) == "kernel"
