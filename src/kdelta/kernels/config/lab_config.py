# SPDX-License-Identifier: GPL-2.0-or-later
"""What the lab wants of a kernel's config, read from lab.config and small.config, and what it wants
of an architecture's, from the files of these names in kdelta.arch.
"""

import functools
import re
from importlib import resources

import msgspec

from kdelta.arch.files import fragment
from kdelta.kernels.arches import kernel_arches
from kdelta.kernels.config.kconfig import parse_config

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
    file = resources.files(__package__).joinpath(f"{name}.config")
    of_all = file.read_text(encoding="utf-8")
    of_one = fragment(kernel_arches()[arch].machine, name)
    return parse_lab_config(of_all) + parse_lab_config(of_one)


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
