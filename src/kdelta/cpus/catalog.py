# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPUs that come with kdelta, and those of the user's own files."""

import difflib
import functools
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from kdelta.cpus.file import CPUFileError, decode_cpu
from kdelta.cpus.like import SUFFIX, shipped
from kdelta.cpus.model import CPU
from kdelta.cpus.options import with_options
from kdelta.cpus.user import HOST, load_file, load_user_cpu, user_path, user_paths
from kdelta.spec.errors import LabError, UserError

DEFAULT_CPU = "generic-x86-64"


@functools.cache
def list_cpus() -> Mapping[str, CPU]:
    """All CPUs that come with kdelta, by name, in the order of their names."""
    found = {}
    for file in shipped().values():
        try:
            cpu = decode_cpu(file.read_bytes())
        except (OSError, CPUFileError) as error:
            raise LabError(f"kdelta's own {file}: {error}", "install kdelta again") from error
        found[cpu.name] = cpu
    return MappingProxyType(found)


def load_cpu(name_or_path: str) -> CPU:
    """The CPU of that name, of those that come with kdelta or the user's own; or of a file: what
    has a slash or ends in .toml. Options may follow, as in "cortex-a9,l2=256KiB,clock=1GHz";
    options.py has them.

    UserError if there is no such CPU or file, if the file is not as it must be, if a file of the
    user's has the name of one that comes with kdelta, and for an option that it has not.
    """
    name_or_path, _, options = name_or_path.partition(",")
    return with_options(_load(name_or_path), options)


def _load(name_or_path: str) -> CPU:
    if "/" in name_or_path or name_or_path.endswith(SUFFIX):
        return load_file(Path(name_or_path))
    known, own = list_cpus(), user_paths()
    if name_or_path in own:
        refuse_shadow(name_or_path)
        return load_user_cpu(name_or_path)
    if name_or_path in known:
        return known[name_or_path]
    if name_or_path == HOST:
        raise UserError(
            "this host's CPU was not calibrated",
            f"kdelta calibrate does it, and writes {user_path(HOST)}",
        )
    names = [*known, *own]
    near = difflib.get_close_matches(name_or_path, names, n=3, cutoff=0.4) or names
    raise UserError(
        f"no CPU is called {name_or_path!r}",
        f"there is: {', '.join(near)}; a file of your own is given by its path",
    )


def refuse_shadow(name: str) -> None:
    """UserError for a name of the user's that a CPU of kdelta's has already."""
    if name in list_cpus():
        raise UserError(
            f"{user_path(name)} has the name of a CPU that comes with kdelta",
            "give it, and the `name` in it, another one",
        )
