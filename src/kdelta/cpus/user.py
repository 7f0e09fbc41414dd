# SPDX-License-Identifier: GPL-2.0-or-later
"""The user's own CPU files, known by their names: those that `kdelta calibrate` writes, and others.

They are in $XDG_CONFIG_HOME/kdelta/cpus, NAME.toml each.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from kdelta.cpus.file import CPUFileError, decode_cpu
from kdelta.cpus.like import SUFFIX
from kdelta.cpus.model import CPU
from kdelta.spec.errors import LabError, UserError

HOST = "host"
"""What the CPU of the machine that kdelta runs on is called, once it was calibrated."""

_LARGEST_BYTES = 1 << 20


def user_folder() -> Path:
    """Where the user's CPU files are: KDELTA_CONFIG_DIR/cpus, or as the XDG folders are."""
    if named := os.environ.get("KDELTA_CONFIG_DIR"):
        return Path(named).absolute() / "cpus"
    # The XDG specification: a relative path there is to be ignored.
    if (named := os.environ.get("XDG_CONFIG_HOME")) and Path(named).is_absolute():
        return Path(named) / "kdelta" / "cpus"
    try:
        return Path.home() / ".config" / "kdelta" / "cpus"
    except RuntimeError as error:
        raise LabError(
            f"no folder for CPU files: {error}", "set HOME, XDG_CONFIG_HOME or KDELTA_CONFIG_DIR"
        ) from error


def user_path(name: str) -> Path:
    """Where the user's CPU of that name is, or would be."""
    return user_folder() / f"{name}{SUFFIX}"


def user_paths() -> Mapping[str, Path]:
    """The user's CPU files by name, in the order of their names; some may be damaged."""
    try:
        files = sorted(user_folder().glob(f"*{SUFFIX}"))
    except OSError:
        return {}
    return {path.stem: path for path in files if path.is_file()}


def load_user_cpu(name: str) -> CPU:
    """A CPU of the user's. UserError for a file that cannot be read, is damaged, or says that it is
    another one.
    """
    path = user_path(name)
    cpu = load_file(path)
    if cpu.name != name:
        raise UserError(
            f"{path} is the file of a CPU called {cpu.name!r}",
            f"rename it to {cpu.name}{SUFFIX}, or give it by its path",
        )
    return cpu


def load_file(path: Path) -> CPU:
    """The CPU of a file; UserError, which names the path and what is wrong."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_BYTES + 1)  # a device has no end
        if len(text) > _LARGEST_BYTES:
            raise UserError(f"{path} is no CPU file: it is too large", "docs/cpus.md describes it")
        return decode_cpu(text)
    except OSError as error:
        raise UserError(
            f"the CPU file {path} cannot be read: {error.strerror}",
            "kdelta cpus lists those that are known by name",
        ) from error
    except CPUFileError as error:
        raise UserError(f"{path}: {error}", "docs/cpus.md describes the file") from error
