# SPDX-License-Identifier: GPL-2.0-or-later
"""What crossing costs: which arms are run and how, what is missing, and one real crossing."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kdelta.infer.cycles.crossing import VARIANTS
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab, RunPlan, RunResult
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest, Program
from kdelta.lab.work import Work
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.run import MachineOptions, RunStatus
from kdelta.store.model import NewRun
from kdelta.store.store import Store
from kdelta.studies.crossing.model import CrossingReport
from kdelta.studies.crossing.study import CrossingRequest, both_kernels, run_crossing
from tests.lab.fake_lab import FakeLab
from tests.report.example_crossing import counts
from tests.report.shown import shown

STOCK = Kernel("a" * 64, "tree:/linux", "vmlinux", "x86_64", "6.12")
CHANGED = msgspec.structs.replace(STOCK, identity="c" * 64, spec="tree:/linux +kernel-mode")
VULNERABILITIES = (
    b"meltdown: Not affected\nspectre_v1: Vulnerable: no swapgs barriers\n"
    b"spectre_v2: Mitigation: Retpolines\n"
)


class CrossedKernels(FakeLab):
    """Kernels and runs that are made up."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: dict[str, Kernel | NoKernel] = {"stock": STOCK, "changed": CHANGED}
        self.failing = ""
        self.honest = True

    def kernel(self, spec: str) -> Kernel | NoKernel:
        return self.kernels[spec]

    def ran(self) -> list[tuple[str, str, str, str]]:
        assert all(one.request.mode == one.work.job.mode for one in self.made)
        return [
            (one.kernel.spec, one.request.machine.append, one.work.job.mode,
             one.request.machine.cpu)
            for one in self.made
        ]  # fmt: skip

    def run(self, kernel: Kernel, work: RunPlan, index: int) -> RunResult:
        mode, append = work.job.mode, self.request.machine.append
        off = "mitigations=off" in append
        name = next(arm for arm in VARIANTS if arm == mode) if mode != "user" else None
        arm = name or ("mitigations-off" if off else "stock")
        new = NewRun(
            key=f"{arm} {index}",
            kernel_identity=kernel.identity,
            kernel_spec=kernel.spec,
            kernel_release=kernel.release,
            machine={"name": "tcg", "append": append, **({"mode": mode} if name else {})},
            workload=work.name,
            workload_identity=work.identity,
            perturbation=index,
        )
        failed = arm == self.failing
        made = counts(arm, index) if self.honest else counts("stock")
        run = self.store.finish_run(
            self.store.start_run(new),
            RunStatus.WORKLOAD_FAILED if failed else RunStatus.OK,
            detail="mode kernel: this kernel has no kernel mode" if failed else "",
            counts=None if failed else made,
            console="",
            attachments={"vulnerabilities": VULNERABILITIES},
        )
        return RunResult(run, None if failed else made)


@pytest.fixture
def lab() -> CrossedKernels:
    return CrossedKernels()


def crossed(lab: FakeLab, folder: Path, what: Work | None = None, **more: Any) -> CrossingReport:
    machine = MachineOptions(append="quiet")
    request = CrossingRequest(
        stock="stock",
        with_mode="changed",
        what=what or Work(operations=("getppid",)),
        lab=LabRequest(perturbations=2, machine=machine),
        **more,
    )
    with Store.open(folder / "store") as store:
        return asyncio.run(run_crossing(request, lab.in_store(store)))


def test_each_arm_is_run_as_it_is_called(lab: CrossedKernels, tmp_path: Path) -> None:
    report = crossed(lab, tmp_path)
    off = "quiet mitigations=off"
    assert lab.ran() == [
        ("tree:/linux", "quiet", "user", ""),
        ("tree:/linux", off, "user", ""),
        ("tree:/linux +kernel-mode", off, "kernel", ""),
        ("tree:/linux +kernel-mode", off, "kernel-direct", ""),
        ("tree:/linux +kernel-mode", off, "kernel-skip", ""),
    ]
    assert [arm.name for arm in report.variants] == list(VARIANTS)
    assert report.machine == {"name": "tcg", "append": "quiet"}
    assert report.variants[0].chose == {
        "meltdown": "Not affected",
        "spectre_v1": "Vulnerable: no swapgs barriers",
        "spectre_v2": "Mitigation: Retpolines",
    }
    assert any("not affected by 1 of 3" in note for note in report.notes)
    assert any("does nothing about spectre_v1: " in note for note in report.notes)
    assert report.warnings == ("kernel mode: the guest never became quiet",)
    assert not any("sysret" in note for note in report.notes)


def test_without_the_changed_kernel_the_rest_is_shown(lab: CrossedKernels, tmp_path: Path) -> None:
    why = NoKernel("changed", RunStatus.BUILD_FAILED, "i" * 64, "0001.patch does not apply")
    lab.kernels["changed"] = why
    report = crossed(lab, tmp_path)
    assert [arm.name for arm in report.found.total.variants] == ["stock", "mitigations-off"]
    assert [share.parts for share in report.found.total.shares] == [("mitigations",)]
    assert all(arm.side.failure == why.text for arm in report.variants[2:])
    assert "0001.patch does not apply" in shown("crossing", report)


def test_an_arm_whose_runs_fail_is_reported(lab: CrossedKernels, tmp_path: Path) -> None:
    lab.failing = "kernel"
    report = crossed(lab, tmp_path)
    parts = [share.parts for share in report.found.total.shares]
    assert parts == [("mitigations",), ("crossing", "direct call"), ("entry work",)]
    text = shown("crossing", report)
    assert "kernel mode, perturbation 0: workload-failed" in " ".join(text.split())


def test_a_static_command_has_no_direct_calls(lab: CrossedKernels, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(Path("/bin/true").read_bytes())
    source = tmp_path / "a.c"
    source.write_text("int main(void) { return 0; }\n")
    assert os.system(f"gcc -static -o {program} {source}") == 0
    command = Program((str(program),), find=False)
    report = crossed(lab, tmp_path, Work(program=command))
    assert [made[2] for made in lab.ran()] == ["user", "user", "kernel"]
    assert all("is linked statically" in arm.side.failure for arm in report.variants[3:])


def test_other_architectures_are_refused(lab: CrossedKernels, tmp_path: Path) -> None:
    lab.kernels["stock"] = msgspec.structs.replace(STOCK, arch="arm64")
    with pytest.raises(UserError, match="a kernel for arm64"):
        crossed(lab, tmp_path)
    assert lab.ran() == []


def test_an_operation_that_is_unknown(lab: CrossedKernels, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no operation of syscalls is called"):
        crossed(lab, tmp_path, Work(operations=("getpppid",)))
    assert lab.ran() == []


def test_tasks_that_are_in_user_mode_are_told(lab: CrossedKernels, tmp_path: Path) -> None:
    """What is executed tells whether an arm is what it is called."""
    lab.honest = False
    report = crossed(lab, tmp_path)
    text = " ".join(report.notes)
    assert "kernel mode: 1 sysret an iteration: not all of its tasks" in text
    assert "direct call: 1 syscall instructions an iteration are left" in text


def test_both_kernels_of_a_spec() -> None:
    stock, changed = both_kernels(parse_kernel_spec("./linux +CONFIG_A=y"))
    assert str(stock) == "tree:./linux +CONFIG_A=y"
    assert str(changed) == "tree:./linux +CONFIG_A=y +kernel-mode"
    with pytest.raises(UserError, match="is built already"):
        both_kernels(parse_kernel_spec("deb:linux-image-amd64"))


@pytest.mark.guest
@pytest.mark.build
@pytest.mark.slow
def test_a_real_crossing(tmp_path: Path) -> None:
    """All arms are of one kernel, that of the other tests with kernel mode: one build for all."""
    spec = os.environ.get("KDELTA_KERNEL_MODE") or "deb-src:linux-source-6.12 +kernel-mode"
    request = CrossingRequest(
        stock=spec,
        with_mode=spec,
        what=Work(operations=("getppid", "uname")),
        lab=LabRequest(perturbations=2),
    )
    with Store.open(tmp_path / "store") as store:
        report = asyncio.run(run_crossing(request, Lab(store, Silent())))
    assert [arm.name for arm in report.found.total.variants] == list(VARIANTS), shown(
        "crossing", report
    )
    getppid = next(one for one in report.found.operations if one.name == "getppid")
    kinds = {
        str(arm.name): {kind: int(count) for kind, count in arm.specials.items()}
        for arm in getppid.variants
    }
    assert all(arm.insns.exact for arm in getppid.variants)
    for arm in ("stock", "mitigations-off"):
        assert (kinds[arm]["syscall"], kinds[arm]["sysret"]) == (1, 1)
    assert (kinds["kernel"]["syscall"], kinds["kernel"]["iret"]) == (1, 1)
    for arm in ("kernel", "kernel-direct", "kernel-skip"):
        assert "sysret" not in kinds[arm]
    assert not {"syscall", "iret"} & set(kinds["kernel-skip"])
    assert "syscall" not in kinds["kernel-direct"]
    assert getppid.whole is not None
    assert getppid.whole.insns > getppid.variants[0].insns.value / 2
