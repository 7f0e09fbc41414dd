# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel must have been configured with for the lab to boot it: advice after a failure."""

import msgspec

from kdelta.kernels.arches import kernel_arch
from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.config.lab_config import lab_options


class MissingOption(msgspec.Struct, frozen=True):
    """An option that the kernel lacks, and what the lab needs it for."""

    option: str
    needed_for: str


def missing_options(
    config: str, image_format: str = "bzImage", arch: str = "x86_64"
) -> list[MissingOption]:
    """The options that the text of a .config does not have built in but the lab needs, of a kernel
    for that architecture (by any of its names).
    """
    options = parse_config(config)
    groups = ("boot", "vmlinux") if image_format == "vmlinux" else ("boot",)
    return [
        MissingOption(lab.option, lab.why)
        for group in groups
        for lab in lab_options(kernel_arch(arch).folder)
        if lab.group == group and options.get(lab.option) != lab.value
    ]
