# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's initramfs: the agent as /init and all small workloads, the same for every run."""

import hashlib
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from kdelta.guests.cpio import Entry, archive, file, folder
from kdelta.host.command import quiet
from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors, write_atomic
from kdelta.host.native import build
from kdelta.workloads.catalog import build_workload, workloads

_CONSOLE = Entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
_FOLDERS = (
    *(folder(path) for path in ("dev", "proc", "sys", "run", "etc", "workloads")),
    folder("root", 0o700),
    folder("tmp", 0o1777),
)


class GuestImage(msgspec.Struct, frozen=True):
    """An initramfs; its identity is the hash of its bytes."""

    path: Path
    identity: str


def base_image(talk: Callable[[str], None] = quiet) -> GuestImage:
    """The image that serves all small workloads, made unless the cache has it."""
    programs = {
        workload.program.lstrip("/"): build_workload(workload, talk)
        for workload in workloads().values()
        if workload.image == "small"
    }
    agent = build("agent", talk)
    with lab_errors("reading", agent.parent):
        entries = [
            file(path, program.read_bytes(), executable=True) for path, program in programs.items()
        ]
        init = file("init", agent.read_bytes(), executable=True)
    content = archive([*_FOLDERS, _CONSOLE, init, *entries])
    identity = hashlib.sha256(content).hexdigest()
    path = cache_dir("guests") / f"base-{identity[:32]}.cpio"
    # What a full disk or a crash cut off is never taken for the image: it is written atomically,
    # and its size is looked at for what others may have done to it.
    if not path.is_file() or path.stat().st_size != len(content):
        write_atomic(path, content)
    return GuestImage(path, identity)
