# SPDX-License-Identifier: GPL-2.0-or-later
"""What is made of features that a guest's kernel did not take, and how runs say what was forced."""

import msgspec
import pytest

from kdelta.cpus import load_cpu
from kdelta.kernels.model import Kernel
from kdelta.lab.cpus import machine_like
from kdelta.lab.explain import must_be_forced, must_not_clear
from kdelta.lab.run_facts import machine_of
from kdelta.machines.forcing import Forcing
from kdelta.machines.tcg import Guest
from kdelta.report.lines import machine_facts
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.run import MachineOptions, RunStatus
from kdelta.store.model import Run

KERNEL = Kernel("a" * 64, "deb:linux-image-x=1", "/vmlinuz", "x86_64", "6.1.0")
FORCING = Forcing(("fsrm", "md_clear"), start=1, array=2)
GUEST = Guest("a", "/vmlinuz", "x86_64", "/initrd", "i", 0, 512, force=FORCING.names)
SENT = {"cpuinfo": b"flags\t: fpu erms\n", "vulnerabilities": b"mds: Not affected\n"}


def check(forcing: Forcing | None, messages: dict[str, bytes]) -> None:
    must_be_forced(KERNEL, msgspec.structs.replace(GUEST, forcing=forcing), messages)


def test_what_did_not_take_is_refused_by_name() -> None:
    with pytest.raises(LabError) as caught:
        check(FORCING, SENT)
    assert caught.value.message == (
        "cannot force features in 6.1.0: it did not take fsrm (/proc/cpuinfo has no fsrm), "
        "md_clear (/proc/cpuinfo has no md_clear)"
    )
    assert "a copy of the CPU's file without them in `force`" in caught.value.hint


def test_without_the_array_the_reason_is_given() -> None:
    with pytest.raises(LabError, match=r"do not list cpu_caps_set, and it ignores setcpuid=") as at:
        check(msgspec.structs.replace(FORCING, array=0), SENT)
    assert "CONFIG_KALLSYMS_ALL=y, or take Linux 6.15" in at.value.hint


def test_taking_away_what_is_forced_is_refused_before_a_boot() -> None:
    guest = msgspec.structs.replace(GUEST, parameters=("clearcpuid=fsrm",))
    with pytest.raises(UserError, match="clearcpuid= does nothing to features that the CPU's file"):
        must_not_clear(KERNEL, guest)
    must_not_clear(KERNEL, msgspec.structs.replace(guest, force=()))
    must_not_clear(KERNEL, GUEST)


def test_a_guest_that_was_not_prepared_is_refused() -> None:
    with pytest.raises(LabError, match="did not take fsrm"):
        check(None, SENT)


def test_what_took_passes() -> None:
    check(FORCING, {**SENT, "cpuinfo": b"flags\t: fpu fsrm md_clear\n"})
    must_be_forced(KERNEL, msgspec.structs.replace(GUEST, force=()), SENT)
    check(FORCING, {})  # it did not come so far, which is reported otherwise


def test_a_run_names_what_was_forced() -> None:
    options = machine_like(MachineOptions(), load_cpu("zen2"))
    assert options.force == load_cpu("zen2").qemu.force
    machine: dict[str, str | int | float] = {
        "name": "tcg", "cpu": options.cpu, "memory_mib": 1024, "append": ""
    }  # fmt: skip
    run = Run(
        id="1", key="k", kernel_identity="a", kernel_spec="image:a", kernel_release="6.1.0",
        machine={**machine, "force": " ".join(options.force)}, workload="w",
        workload_identity="w", perturbation=0, status=RunStatus.OK, alive=False, detail="",
        started=0.0,
    )  # fmt: skip
    assert machine_of(run) == options
    (_, (label, text)) = machine_facts(run.machine)
    assert label == "CPU"
    assert text.endswith(
        "-hypervisor, ucode-rev=0x830107b; forced in the kernel: " + " ".join(options.force)
    )
