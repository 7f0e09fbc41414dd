# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPUs that come with kdelta, and those of the user's own files."""

import difflib
import functools
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from kdelta.cpus.file import CPUFileError, decode_cpu
from kdelta.cpus.model import CPU
from kdelta.cpus.options import with_options
from kdelta.spec.errors import LabError, UserError

DEFAULT_CPU = "generic-x86-64"
_SUFFIX = ".toml"
_LARGEST_BYTES = 1 << 20


@functools.cache
def list_cpus() -> Mapping[str, CPU]:
    """All CPUs that come with kdelta, by name, in the order of their names."""
    files = [
        file for file in resources.files("kdelta.cpus").iterdir() if file.name.endswith(_SUFFIX)
    ]
    found = {}
    for file in sorted(files, key=lambda file: file.name):
        try:
            cpu = decode_cpu(file.read_bytes())
        except (OSError, CPUFileError) as error:
            raise LabError(f"kdelta's own {file}: {error}", "install kdelta again") from error
        found[cpu.name] = cpu
    return MappingProxyType(found)


def load_cpu(name_or_path: str) -> CPU:
    """The CPU of that name, or of a file of the user's: what has a slash or ends in .toml. Options
    may follow, as in "cortex-a9,l2=256KiB,clock=1GHz"; options.py has them.

    UserError if there is no such CPU or file, if the file is not as it must be, and for an option
    that it has not; it says what.
    """
    name_or_path, _, options = name_or_path.partition(",")
    return with_options(_load(name_or_path), options)


def _load(name_or_path: str) -> CPU:
    if "/" in name_or_path or name_or_path.endswith(_SUFFIX):
        return _load_file(Path(name_or_path))
    known = list_cpus()
    if name_or_path not in known:
        near = difflib.get_close_matches(name_or_path, list(known), n=3, cutoff=0.4) or list(known)
        raise UserError(
            f"no CPU is called {name_or_path!r}",
            f"there is: {', '.join(near)}; a file of your own is given by its path",
        )
    return known[name_or_path]


def _load_file(path: Path) -> CPU:
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
