# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether KVM works here: found out by booting a kernel, with a time limit."""

import os

from kdelta.host.command import run
from kdelta.host.target import target
from kdelta.kernels.model import Kernel
from kdelta.machines.arch import arch_machine
from kdelta.spec.errors import LabError

DEVICE = "/dev/kvm"
_SECONDS = 30.0


def why_no_kvm(kernel: Kernel) -> str:
    """Empty if the kernel boots under KVM until it misses its root, else why it does not.

    The device may be there, open and make a virtual machine, and still not boot: on a host whose
    KVM has no hardware virtualisation behind it, a guest hangs after decompression.
    """
    if not os.path.exists(DEVICE):  # noqa: PTH110  (a constant, not a path that is worked with)
        return f"there is no {DEVICE}"
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return f"{DEVICE} may not be opened by you"
    board = arch_machine(kernel.arch).board("")
    argv = [
        target(kernel.arch).emulator,
        "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
        "-machine", board.machine, "-accel", "kvm", "-m", "512", "-serial", "stdio",
        "-kernel", kernel.image, "-append", f"console={board.serial} panic=-1",
    ]  # fmt: skip
    try:
        result = run(argv, seconds=_SECONDS)
    except LabError as error:
        return f"{kernel.release} does not boot under it: {error.message}"
    if "Kernel panic" in result.stdout:
        return ""
    return f"{kernel.release} does not boot under it: {result.last_words(1)}"
