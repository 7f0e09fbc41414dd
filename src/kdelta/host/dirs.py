# SPDX-License-Identifier: GPL-2.0-or-later
"""Where kdelta keeps things: the XDG folders, or what KDELTA_CACHE_DIR and the like say."""

import os
from pathlib import Path

from kdelta.host.files import make_folder
from kdelta.spec.errors import LabError


def cache_dir(*parts: str) -> Path:
    """The folder of what can be made again (kernels, native parts, snapshots), which is created."""
    return make_folder(_base("KDELTA_CACHE_DIR", "XDG_CACHE_HOME", ".cache").joinpath(*parts))


def data_dir(*parts: str) -> Path:
    """The folder of what cannot be made again (the store), which is created."""
    return make_folder(_base("KDELTA_DATA_DIR", "XDG_DATA_HOME", ".local/share").joinpath(*parts))


def config_dir() -> Path:
    """The folder of what the user writes; it is not created."""
    return _base("KDELTA_CONFIG_DIR", "XDG_CONFIG_HOME", ".config")


def _base(own: str, xdg: str, below_home: str) -> Path:
    if named := os.environ.get(own):
        return Path(named).absolute()
    # The XDG specification: a relative path there is to be ignored.
    if (named := os.environ.get(xdg)) and Path(named).is_absolute():
        return Path(named) / "kdelta"
    try:
        return Path.home() / below_home / "kdelta"
    except RuntimeError as error:
        raise LabError(
            f"no folder for kdelta's files: {error}", f"set HOME, {xdg} or {own}"
        ) from error
