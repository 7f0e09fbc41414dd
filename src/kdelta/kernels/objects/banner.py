# SPDX-License-Identifier: GPL-2.0-or-later
"""What a vmlinux says of its release and its build, whatever the architecture."""

import mmap
import re
from pathlib import Path

from kdelta.host.files import lab_errors
from kdelta.spec.errors import LabError

# linux_banner of init/version.c; its format, with %s in it, is a string of the kernel, too.
_BANNER = re.compile(rb"Linux version (([0-9][^\s%]*) [^\n\0%]{1,500})")


def banner_of(vmlinux: Path) -> tuple[str, str]:
    """The release of a vmlinux, and all that it says, which begins with that; LabError if it says
    nothing.
    """
    with (
        lab_errors("reading", vmlinux),
        vmlinux.open("rb") as file,
        mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content,
    ):
        found = _BANNER.search(content)
        if found is None:
            raise LabError(f"{vmlinux} does not report its release", "build it again")
        banner, release = (part.decode("utf-8", "replace") for part in found.groups())
    return release, " ".join(banner.split())
