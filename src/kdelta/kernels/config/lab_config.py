# SPDX-License-Identifier: GPL-2.0-or-later
"""What the lab wants of a kernel's config, read from lab.config and small.config, and what it wants
of an architecture's, from the files of these names in kdelta.arch.
"""

import functools
import re
from importlib import resources
from typing import Literal

import msgspec

from kdelta.arch.files import fragment
from kdelta.kernels.arches import kernel_arch, kernel_arches
from kdelta.kernels.config.kconfig import parse_config


class LabOption(msgspec.Struct, frozen=True):
    """An option that the lab sets: its group in the file, and why it is set."""

    option: str
    value: str
    group: str
    why: str


class MissingOption(msgspec.Struct, frozen=True):
    """An option that a kernel lacks, and what the lab needs it for."""

    option: str
    needed_for: str


@functools.cache
def lab_options(arch: str, name: Literal["lab", "small"] = "lab") -> tuple[LabOption, ...]:
    """What is set in every kernel that is built; or "small": what makes a small useful kernel of
    allnoconfig, where there is no config to start from. `arch` is the folder below arch/.
    """
    file = resources.files(__package__).joinpath(f"{name}.config")
    texts = file.read_text(encoding="utf-8"), fragment(kernel_arches()[arch].machine, name)
    return tuple(option for text in texts for option in parse_lab_config(text))


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


def parse_lab_config(text: str) -> tuple[LabOption, ...]:
    """Reads a fragment in which each option follows its reason, and `#: group: ...` lines tell
    groups; ValueError for an option without a group or a reason.
    """
    found = []
    group = why = ""
    for line in text.splitlines():
        if match := re.match(r"#: (\w+)", line):
            group, why = match[1], ""
        elif options := parse_config(line):
            (option, value), *_ = options.items()
            if not group or not why:
                raise ValueError(f"{option} has no group or no reason before it")
            found.append(LabOption(option, value, group, why))
            why = ""
        elif line.startswith("# "):
            why = line[2:].strip()
    return tuple(found)
