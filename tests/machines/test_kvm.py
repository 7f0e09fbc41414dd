# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether KVM works is found out by booting."""

import grp
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from kdelta.host.emulator import HostQemu
from kdelta.host.files import FileState
from kdelta.host.target import target
from kdelta.kernels.model import Kernel
from kdelta.machines import kvm
from kdelta.machines.arch import arch_machine
from kdelta.spec.errors import LabError
from tests.conftest import FakeProgram

KERNEL = Kernel("a" * 64, "image:/vmlinuz", "/vmlinuz", "x86_64", "6.1.0-a")
LATE = "end within 2 seconds; the last line that it printed:"


def test_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm, "DEVICE", "/nowhere/kvm")
    assert kvm.why_no_kvm(KERNEL) == "there is no /nowhere/kvm"


def test_kernel_for_another_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm, "DEVICE", os.devnull)
    foreign = next(name for name in ("arm64", "riscv64") if not target(name).is_host)
    kernel = msgspec.structs.replace(KERNEL, arch=foreign)
    assert kvm.why_no_kvm(kernel) == f"6.1.0-a is a kernel for {foreign}, and this host is none"


def test_interrupt_controller_of_kvm_is_the_hosts() -> None:
    boards = {name: arch_machine(name).board("") for name in ("x86_64", "arm64")}
    assert kvm.kvm_machine(boards["x86_64"]) == boards["x86_64"].machine
    assert "gic-version=2" in boards["arm64"].machine
    assert "gic-version=host" in kvm.kvm_machine(boards["arm64"])


@pytest.fixture
def closed() -> Iterator[Path]:
    """A file that only root can open; the test is another user."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        device = Path(name) / "kvm"
        device.touch(0o000)
        if not os.getuid():
            os.seteuid(65534)
        yield device
        if not os.getuid():
            os.seteuid(0)


def test_device_without_permissions(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm, "DEVICE", str(closed))
    lets_in = f"root can give it to a group (chgrp kvm {closed}; chmod 660 {closed})"
    assert kvm.why_no_kvm(KERNEL) == f"you may not open {closed}: {lets_in}"


@pytest.mark.parametrize(
    ("mode", "group", "names", "what"),
    [
        (
            0o660,
            992,
            {992: "kvm"},
            "add yourself to the group kvm (sudo usermod -aG kvm $USER), and",
        ),
        (0o660, 992, {}, "add yourself to the group 992 (sudo usermod -aG 992 $USER), and log in"),
        (
            0o660,
            7,
            {7: "lp"},
            "its mode is right, and the container or the security module refuses",
        ),
        (0o640, 992, {992: "kvm"}, "root can give it to a group"),
        (0o660, 0, {0: "root"}, "root can give it to a group"),
    ],
)
def test_device_that_others_may_open(
    mode: int, group: int, names: dict[int, str], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is named would let the user in: a group that there is and that the device has."""

    def refused(*_: object) -> int:
        raise PermissionError

    def group_of(number: int) -> SimpleNamespace:
        return SimpleNamespace(gr_name=names[number])

    facts = SimpleNamespace(st_mode=stat.S_IFCHR | mode, st_gid=group)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refused)
        patch.setattr(os, "stat", lambda _: facts)
        patch.setattr(os, "getgroups", lambda: [7])
        patch.setattr(os, "getegid", lambda: 6)
        patch.setattr(grp, "getgrgid", group_of)
        found = kvm.why_no_kvm(KERNEL)
    assert found.startswith(f"you may not open /dev/kvm: {what}")


def test_device_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm, "DEVICE", str(tmp_path))
    assert kvm.why_no_kvm(KERNEL) == f"{tmp_path} cannot be opened: Is a directory"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("#!/bin/sh\necho 'Kernel panic - not syncing: VFS: no root'\n", ""),
        (
            "#!/bin/sh\necho 'cannot set up guest memory' >&2; exit 1\n",
            "6.1.0-a does not boot under it: QEMU PROGRAM: cannot set up guest memory",
        ),
        (
            "#!/bin/sh\necho 'Booting the kernel.'; exec sleep 60\n",
            f"6.1.0-a does not boot under it: QEMU PROGRAM did not {LATE} Booting the kernel.",
        ),
    ],
)
@pytest.mark.slow
def test_a_kernel_is_booted(
    script: str, why: str, fake_program: FakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kvm, "DEVICE", os.devnull)
    monkeypatch.setattr(kvm, "_SECONDS", 2.0)
    program = fake_program("qemu-system-x86_64", script)
    assert kvm.why_no_kvm(KERNEL, "host") == why.replace("PROGRAM", str(program))


@pytest.mark.slow
def test_unpacked_qemu_that_hangs_is_named_and_not_what_starts_it(tmp_path: Path) -> None:
    program = tmp_path / "it"
    program.write_text("#!/bin/sh\necho Decompressing Linux; exec sleep 60\n")
    program.chmod(0o755)
    qemu = HostQemu(("env", "A=b", str(program)), "x86_64", FileState.of(program))
    with pytest.raises(LabError) as raised:
        qemu.run("-version", seconds=1.0)
    assert raised.value.message == (
        f"QEMU {program} did not {LATE.replace('2', '1')} Decompressing Linux"
    )


def test_the_qemu_that_is_named_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm, "DEVICE", os.devnull)
    named = tmp_path / "qemu-system-x86_64"
    named.write_text("#!/bin/sh\necho 'the named one fails' >&2; exit 1\n")
    named.chmod(0o755)
    assert "the named one fails" in kvm.why_no_kvm(KERNEL, str(named))
    assert "there is no such file" in kvm.why_no_kvm(KERNEL, str(tmp_path / "none"))
