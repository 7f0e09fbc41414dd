# SPDX-License-Identifier: GPL-2.0-or-later
"""What programs of the host find in their environment: the one list of what passes to a compiler,
make, a linker, git, QEMU or another tool.

What can change what a program makes has a fixed value here, or its caller sets it and has it in a
key. All else of the user's shell stays outside: CPATH, LIBRARY_PATH, GNUMAKEFLAGS, LD_PRELOAD.
"""

import os
from collections.abc import Mapping

_PROXIES = ("all_proxy", "ftp_proxy", "http_proxy", "https_proxy", "no_proxy")

PASSES = (
    "APT_CONFIG",  # where packages are from; keys have their content
    "HOME",
    "KDELTA_DATA_DIR",  # whose process it is; no program but kdelta reads it
    "PATH",  # keys have what compilers say of themselves
    "TMPDIR",
    "XDG_CONFIG_HOME",  # which repositories git may read
    *_PROXIES,
    *(name.upper() for name in _PROXIES),
)
"""What a program finds as the user has set it. None of it is in a key."""

FIXED = {"LANGUAGE": "", "LC_ALL": "C"}
"""What every program finds, so that what it says can be read by a program."""


def environ_with(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a program of the host, with what its caller sets."""
    passed = {name: os.environ[name] for name in PASSES if name in os.environ}
    return {**passed, **FIXED, **(more or {})}


def users_environment() -> dict[str, str]:
    """Return the environment of a program that the user wants to have timed on this host."""
    return {**os.environ, **FIXED}
