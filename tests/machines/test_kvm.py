# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether KVM works is found out by booting."""

import os
from pathlib import Path

import pytest

from kdelta.host.emulator import HostQemu
from kdelta.host.files import FileState
from kdelta.kernels.model import Kernel
from kdelta.machines import kvm
from kdelta.spec.errors import LabError
from tests.conftest import FakeProgram

KERNEL = Kernel("a" * 64, "image:/vmlinuz", "/vmlinuz", "x86_64", "6.1.0-a")
LATE = "end within 2 seconds; the last line that it printed:"


def test_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm, "DEVICE", "/nowhere/kvm")
    assert kvm.why_no_kvm(KERNEL) == "there is no /nowhere/kvm"


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
def test_a_kernel_is_booted(
    script: str, why: str, fake_program: FakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kvm, "DEVICE", os.devnull)
    monkeypatch.setattr(kvm, "_SECONDS", 2.0)
    program = fake_program("qemu-system-x86_64", script)
    assert kvm.why_no_kvm(KERNEL, "host") == why.replace("PROGRAM", str(program))


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
