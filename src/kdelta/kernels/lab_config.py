# SPDX-License-Identifier: GPL-2.0-or-later
"""What the lab wants of a kernel's config, read from lab.config and small.config, and what it wants
of an architecture's, from lab-ARCH.config and small-ARCH.config.
"""

import functools
import re
from importlib import resources

import msgspec

from kdelta.kernels.kconfig import parse_config

LAB, SMALL = "lab", "small"


class LabOption(msgspec.Struct, frozen=True):
    """An option that the lab sets: its group in the file, and why it is set."""

    option: str
    value: str
    group: str
    why: str


@functools.cache
def lab_options(arch: str) -> tuple[LabOption, ...]:
    """What is set in every kernel that is built. `arch` is the folder below arch/."""
    return _read(LAB, arch)


@functools.cache
def small_options(arch: str) -> tuple[LabOption, ...]:
    """What makes a small useful kernel of allnoconfig, where there is no config to start from."""
    return _read(SMALL, arch)


def _read(name: str, arch: str) -> tuple[LabOption, ...]:
    """Those of any architecture and those of that one."""
    folder = resources.files(__package__)
    files = [folder.joinpath(f"{name}.config"), folder.joinpath(f"{name}-{arch}.config")]
    texts = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    return tuple(option for text in texts for option in parse_lab_config(text))


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
