# SPDX-License-Identifier: GPL-2.0-or-later
"""What the lab wants of a kernel's config, read from lab.config and small.config."""

import functools
import re
from importlib import resources

import msgspec

from kdelta.kernels.kconfig import parse_config

LAB, SMALL = "lab.config", "small.config"


class LabOption(msgspec.Struct, frozen=True):
    """An option that the lab sets: its group in the file, and why it is set."""

    option: str
    value: str
    group: str
    why: str


@functools.cache
def lab_options() -> tuple[LabOption, ...]:
    """What is set in every kernel that is built."""
    return _read(LAB)


@functools.cache
def small_options() -> tuple[LabOption, ...]:
    """What makes a small useful kernel of allnoconfig, where there is no config to start from."""
    return _read(SMALL)


def _read(name: str) -> tuple[LabOption, ...]:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return parse_lab_config(text)


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
