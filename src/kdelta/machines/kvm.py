# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether KVM works here: found out by booting a kernel, with a time limit."""

import grp
import os
import stat

from kdelta.host.emulator import find_qemu
from kdelta.host.target import target
from kdelta.kernels.model import Kernel
from kdelta.machines.arch import Board, arch_machine
from kdelta.spec.errors import KdeltaError

DEVICE = "/dev/kvm"
_SECONDS = 5.0
"""A kernel that works under KVM misses its root within about a second."""

_GROUP = stat.S_IRGRP | stat.S_IWGRP


def why_no_kvm(kernel: Kernel, qemu: str = "") -> str:
    """Empty if the kernel boots under KVM until it misses its root, else why it does not. qemu: see
    `find_qemu`.

    The device may be there, open and make a virtual machine, and still not boot: on a host whose
    KVM has no hardware virtualisation behind it, a guest hangs after decompression.
    """
    if why := _why_not_opened():
        return why
    if not target(kernel.arch).is_host:
        return f"{kernel.release} is a kernel for {kernel.arch}, and this host is none"
    board = arch_machine(kernel.arch).board("")
    options = [
        "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot",
        "-machine", kvm_machine(board), "-accel", "kvm", "-cpu", "host",
        "-m", "512", "-serial", "stdio",
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


def kvm_machine(board: Board) -> str:
    """Return QEMU's name of a board under KVM, where most hosts have one kind of interrupt
    controller for guests: their own.
    """
    return board.machine.replace("gic-version=2", "gic-version=host")


def _why_not_opened() -> str:
    """Return why this process cannot open the device, and what would let it; empty if it can."""
    try:
        os.close(os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        return f"there is no {DEVICE}"
    except PermissionError:
        return f"you may not open {DEVICE}: {_what_lets_in()}"
    except OSError as error:
        return f"{DEVICE} cannot be opened: {error.strerror}"
    return ""


def _what_lets_in() -> str:
    """Return what the user has to do to be let in."""
    status = os.stat(DEVICE)  # noqa: PTH116  (a constant, not a path that is worked with)
    try:
        group = grp.getgrgid(status.st_gid).gr_name
    except KeyError:
        group = str(status.st_gid)
    if stat.S_IMODE(status.st_mode) & _GROUP != _GROUP or not status.st_gid:
        return f"root can give it to a group (chgrp kvm {DEVICE}; chmod 660 {DEVICE})"
    if status.st_gid in (os.getegid(), *os.getgroups()):
        return "its mode is right, and the container or the security module refuses it"
    return f"add yourself to the group {group} (sudo usermod -aG {group} $USER), and log in again"
