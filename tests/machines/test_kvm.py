# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether KVM works is found out by booting."""

import sys

import pytest

from kdelta.kernels.model import Kernel
from kdelta.machines import kvm
from tests.conftest import FakeProgram

KERNEL = Kernel("a" * 64, "image:/vmlinuz", "/vmlinuz", "x86_64", "6.1.0-a")


def test_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm, "DEVICE", "/nowhere/kvm")
    assert kvm.why_no_kvm(KERNEL) == "there is no /nowhere/kvm"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("#!/bin/sh\necho 'Kernel panic - not syncing: VFS: no root'\n", ""),
        ("#!/bin/sh\necho 'cannot set up guest memory' >&2; exit 1\n", "cannot set up"),
        ("#!/bin/sh\nexec sleep 60\n", "did not end within"),
    ],
)
def test_a_kernel_is_booted(
    script: str, why: str, fake_program: FakeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kvm, "DEVICE", sys.executable)
    monkeypatch.setattr(kvm, "_SECONDS", 2.0)
    fake_program("qemu-system-x86_64", script)
    found = kvm.why_no_kvm(KERNEL)
    assert (why in found) if why else (found == "")
