# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether KVM works here: found out by booting a kernel, with a time limit."""

import os

from kdelta.host.emulator import find_qemu
from kdelta.host.target import target
from kdelta.kernels.model import Kernel
from kdelta.machines.arch import arch_machine
from kdelta.spec.errors import KdeltaError

DEVICE = "/dev/kvm"
_SECONDS = 5.0
"""A kernel that works under KVM misses its root within about a second."""


def why_no_kvm(kernel: Kernel, qemu: str = "") -> str:
    """Empty if the kernel boots under KVM until it misses its root, else why it does not. qemu: see
    `find_qemu`.

    The device may be there, open and make a virtual machine, and still not boot: on a host whose
    KVM has no hardware virtualisation behind it, a guest hangs after decompression.
    """
    if not os.path.exists(DEVICE):  # noqa: PTH110  (a constant, not a path that is worked with)
        return f"there is no {DEVICE}"
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return f"{DEVICE} may not be opened by you"
    board = arch_machine(kernel.arch).board("")
    options = [
        "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
        "-machine", board.machine, "-accel", "kvm", "-m", "512", "-serial", "stdio",
        "-kernel", kernel.image, "-append", f"console={board.serial} panic=-1",
    ]  # fmt: skip
    try:
        emulator = find_qemu(target(kernel.arch), qemu)
        result = emulator.run(*options, seconds=_SECONDS)
        booted = "Kernel panic" in result.stdout
        why = "" if booted else f"QEMU {emulator.program.path}: {result.last_words(1)}"
    except KdeltaError as error:
        why = error.message
    return f"{kernel.release} does not boot under it: {why}" if why else ""
