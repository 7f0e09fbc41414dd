# SPDX-License-Identifier: GPL-2.0-or-later
"""The C library of the replay, compiled otherwise than kdelta does."""

import subprocess
from pathlib import Path

from kdelta.host.native import native_folder


def built(output: Path, *flags: str) -> Path:
    """The library, compiled with these flags."""
    folder = native_folder() / "replay"
    argv = ["gcc", "-std=gnu11", "-shared", "-fPIC", "-pthread", *flags]
    argv += [f"-I{native_folder() / 'include'}", "-o", str(output)]
    subprocess.run([*argv, *map(str, sorted(folder.rglob("*.c")))], check=True)
    return output
