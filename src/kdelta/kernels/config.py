# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel must have been configured with for the lab to boot it: advice after a failure."""

import re

import msgspec


class MissingOption(msgspec.Struct, frozen=True):
    """An option that the kernel lacks, and what the lab needs it for."""

    option: str
    needed_for: str


_NEEDED = (
    ("CONFIG_64BIT", "64-bit programs"),
    ("CONFIG_BLK_DEV_INITRD", "the initramfs in which the workload comes"),
    ("CONFIG_BINFMT_ELF", "running programs"),
    ("CONFIG_PRINTK", "kernel messages"),
    ("CONFIG_TTY", "a console"),
    ("CONFIG_SERIAL_8250", "the serial port"),
    ("CONFIG_SERIAL_8250_CONSOLE", "the console on the serial port, which is how a panic is seen"),
    ("CONFIG_PROC_FS", "/proc, from which symbols and load are read"),
    ("CONFIG_SYSFS", "/sys"),
    ("CONFIG_DEVTMPFS", "/dev"),
    ("CONFIG_TMPFS", "/tmp and /dev/shm"),
    ("CONFIG_KALLSYMS", "the names of functions"),
)
# Older kernels have no such option and behave as if it were set.
_NEEDED_UNLESS_UNKNOWN = (("CONFIG_X86_IOPL_IOPERM", "reading the job from QEMU's ports"),)
_VMLINUX_NEEDS = ("CONFIG_PVH", "booting a vmlinux; a bzImage boots without")


def missing_options(config: str, image_format: str = "bzImage") -> list[MissingOption]:
    """The options that the text of a .config does not have built in but the lab needs."""
    built_in = set(re.findall(r"^(CONFIG_\w+)=y$", config, re.MULTILINE))
    refused = set(re.findall(r"^# (CONFIG_\w+) is not set$", config, re.MULTILINE))
    needed = _NEEDED + ((_VMLINUX_NEEDS,) if image_format == "vmlinux" else ())
    return [MissingOption(option, why) for option, why in needed if option not in built_in] + [
        MissingOption(option, why) for option, why in _NEEDED_UNLESS_UNKNOWN if option in refused
    ]
