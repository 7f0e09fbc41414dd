# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of several CPUs: what is refused, what QEMU is asked for, and what runs keep of them."""

from pathlib import Path

import msgspec
import pytest

from kdelta.host.emulator import HostQemu
from kdelta.host.files import FileState
from kdelta.kernels.model import Kernel
from kdelta.lab.request import LabRequest
from kdelta.lab.run_facts import machine_of, unusual_facts
from kdelta.lab.smp import must_have_cpus, must_offer_cpus, must_take_turns
from kdelta.machines.tcg import Guest, qemu_argv
from kdelta.report.lines import machine_facts
from kdelta.spec.errors import KdeltaError, LabError, UserError
from kdelta.spec.run import MachineOptions, RunStatus
from kdelta.store.model import Run
from kdelta.studies.diff.study import must_be_comparable
from kdelta.workloads.catalog import find_workload

KERNEL = Kernel("a" * 64, "deb:linux-image-x=1", "/vmlinuz", "x86_64", "6.12.1")
GUEST = Guest("a", "/vmlinuz", "x86_64", "/initrd", "i", 0, 512)
TWO = msgspec.structs.replace(GUEST, cpus=2)
FOLDER = Path("/run/1")


QEMU = HostQemu(("qemu",), "x86_64", FileState(Path("/usr/bin/qemu"), 1, 1, 1))


@pytest.fixture(autouse=True)
def api(monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU 10 on an x86-64 host."""
    monkeypatch.setattr("kdelta.host.emulator._plugin_apis", lambda _: (2, 4))
    monkeypatch.setattr("kdelta.host.emulator._version", lambda _: "7.2.22")
    monkeypatch.setattr("kdelta.host.target.Target.is_host", True)


def asked(cpus: int, **more: bool) -> LabRequest:
    return LabRequest(machine=MachineOptions(cpus=cpus), **more)  # type: ignore[arg-type]


def cpuinfo(cpus: int) -> dict[str, bytes]:
    return {"cpuinfo": b"".join(b"processor\t: %d\nmodel\t: 1\n\n" % i for i in range(cpus))}


@pytest.mark.parametrize(
    ("request_", "arch", "why"),
    [
        (asked(2), "arm64", "cannot give a guest 2 CPUs: --smp is for kernels for x86-64, and"),
        (asked(4, trace=True), "x86_64", "cannot replay a guest of several CPUs"),
        (asked(4, data_lines=True), "x86_64", "cannot replay a guest of several CPUs"),
    ],
)
def test_what_several_cpus_are_not_for_is_refused(
    request_: LabRequest, arch: str, why: str
) -> None:
    with pytest.raises(UserError, match=why):
        must_take_turns(request_, arch, QEMU)
    one = msgspec.structs.replace(request_, machine=MachineOptions())
    must_take_turns(one, arch, QEMU)


def test_several_cpus_in_an_older_qemu_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    must_take_turns(asked(2), "x86_64", QEMU)
    monkeypatch.setattr("kdelta.host.emulator._plugin_apis", lambda _: (0, 1))
    with pytest.raises(UserError, match=r"cannot give a guest 2 CPUs: QEMU 7.2.22 is too old"):
        must_take_turns(asked(2), "x86_64", QEMU)
    must_take_turns(asked(1), "x86_64", QEMU)


def test_several_cpus_on_a_host_that_is_no_x86_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdelta.host.target.Target.is_host", False)
    with pytest.raises(UserError, match="--smp works on x86-64 hosts alone"):
        must_take_turns(asked(2), "x86_64", QEMU)
    must_take_turns(asked(1), "x86_64", QEMU)


def test_a_kernel_that_uses_fewer_cpus_is_refused() -> None:
    with pytest.raises(UserError) as caught:
        must_have_cpus(KERNEL, msgspec.structs.replace(GUEST, cpus=8), cpuinfo(4))
    assert caught.value.message == "cannot give 6.12.1 8 CPUs: it uses 4"
    assert caught.value.hint.endswith("--smp 4 is possible")


def test_a_kernel_that_uses_all_cpus_passes() -> None:
    must_have_cpus(KERNEL, msgspec.structs.replace(GUEST, cpus=8), cpuinfo(8))
    must_have_cpus(KERNEL, TWO, {})
    must_have_cpus(KERNEL, GUEST, {"cpuinfo": b"Processor: an old ARM\n"})


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """A QEMU of the host that need not be there."""
    monkeypatch.setattr("kdelta.machines.tcg.find_qemu", lambda *_: QEMU)
    monkeypatch.setattr(HostQemu, "plugin", lambda _: Path("/cache/plugin"))


@pytest.mark.usefixtures("plugin")
def test_qemu_is_asked_for_cpus_that_take_turns() -> None:
    argv = qemu_argv(msgspec.structs.replace(TWO), FOLDER, None, count=True)
    assert argv[:3] == ["env", "LD_PRELOAD=/cache/plugin", "qemu"]
    assert argv[argv.index("-smp") + 1] == "2"
    assert argv[argv.index("-plugin") + 1].endswith(",cpus=2,turns=on")


@pytest.mark.usefixtures("plugin")
def test_cpus_of_a_terminals_guest_take_no_turns() -> None:
    """Such a guest waits as long as the host says: nothing repeats."""
    guest = msgspec.structs.replace(TWO)
    argv = qemu_argv(guest, FOLDER, None, count=False, terminal=3)
    assert argv[0] == "qemu"
    assert argv[argv.index("-plugin") + 1].endswith(",cpus=2")


@pytest.mark.usefixtures("plugin")
def test_qemus_command_for_one_cpu_says_nothing_of_cpus() -> None:
    argv = qemu_argv(msgspec.structs.replace(GUEST), FOLDER, None, count=True)
    assert argv[0] == "qemu"
    assert "-smp" not in argv
    assert "cpus=" not in " ".join(argv)


def test_a_pins_loader_loads_the_plugin_first() -> None:
    file = FileState(Path("/usr/bin/qemu"), 1, 1, 1)
    argv = (
        "env",
        "A=b",
        "/lib/ld-linux-x86-64.so.2",
        "--library-path",
        "/lib",
        "/qemu",
        "-L",
        "/x",
    )
    found = HostQemu(argv, "x86_64", file).preloading(Path("/cache/plugin"))
    assert found == (*argv[:3], "--preload", "/cache/plugin", *argv[3:])


@pytest.mark.parametrize("path", ["/my cache/plugin", "/a:b/plugin"])
def test_a_plugin_that_a_loader_would_take_for_several_files_is_refused(path: str) -> None:
    with pytest.raises(LabError, match="there is a space or a colon in its path") as caught:
        QEMU.preloading(Path(path))
    assert "KDELTA_CACHE_DIR" in caught.value.hint


def run_on(cpus: int) -> Run:
    guest = msgspec.structs.replace(GUEST, cpus=cpus)
    machine = {"name": "tcg", "cpu": "", "append": "", **unusual_facts(guest, "user")}
    return Run(
        id=f"run{cpus}", key="k", kernel_identity="a", kernel_spec="image:x", kernel_release="6.12",
        machine=machine, workload="syscalls", workload_identity="w", perturbation=0,
        status=RunStatus.OK, alive=False, detail="", started=0.0,
    )  # fmt: skip


def test_runs_keep_of_how_many_cpus_they_are() -> None:
    one, four = run_on(1), run_on(4)
    assert "cpus" not in one.machine
    assert (machine_of(one).cpus, machine_of(four).cpus) == (1, 4)
    assert machine_facts(four.machine)[0] == ("machine", "tcg, 4 CPUs")


def test_runs_on_other_numbers_of_cpus_are_not_compared() -> None:
    with pytest.raises(KdeltaError, match="cannot be compared: CPUs 1 and 4"):
        must_be_comparable(run_on(1), run_on(4))
    must_be_comparable(run_on(4), run_on(4))


def test_a_workload_for_two_cpus_is_refused_on_one() -> None:
    pairs = find_workload("pairs")
    with pytest.raises(UserError, match="cannot run pairs on 1 CPU: it needs 2") as refused:
        must_offer_cpus(pairs, MachineOptions())
    assert refused.value.hint == "add --smp 2"
    must_offer_cpus(pairs, MachineOptions(cpus=2))
    with pytest.raises(UserError, match="cannot run nat:flows=2 on 1 CPU: it needs 2"):
        must_offer_cpus(find_workload("nat:flows=2"), MachineOptions())
    must_offer_cpus(find_workload("nat:flows=1"), MachineOptions())
    must_offer_cpus(find_workload("syscalls"), MachineOptions())
