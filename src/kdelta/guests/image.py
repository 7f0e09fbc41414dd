# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's initramfs: the agent as /init and all small workloads, the same for every run."""

import functools
import hashlib
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from kdelta.guests.cpio import Entry, archive, file, folder
from kdelta.host.command import quiet
from kdelta.host.dirs import cache_dir
from kdelta.host.files import FileState, lab_errors, remove, sha256_state, write_atomic
from kdelta.host.gcc import Compiler
from kdelta.host.in_use import use
from kdelta.host.native import build_part
from kdelta.kernels.objects.elf import read_elf
from kdelta.workloads.catalog import build_workload, list_workloads

_CONSOLE = Entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
_FOLDERS = (
    *(folder(path) for path in ("dev", "proc", "sys", "run", "etc", "workloads")),
    folder("root", 0o700),
    folder("tmp", 0o1777),
)


class GuestImage(msgspec.Struct, frozen=True):
    """An initramfs; its identity is the hash of its bytes. Its agent is to be stopped for the
    snapshot when it is about to execute the instruction at `stop_address`.
    """

    path: Path
    identity: str
    stop_address: int


def base_image(by: Compiler, log: Callable[[str], None] = quiet, cpus: int = 1) -> GuestImage:
    """Return the image that serves all small workloads on guests with that many CPUs, made unless
    the cache has it. LabError when its programs cannot be compiled.
    """
    programs = {
        workload.program.lstrip("/"): build_workload(workload, log, by=by)
        for workload in list_workloads().values()
        if workload.image == "small"
    }
    agent = build_part("agent", log, by=by, defines=("SEVERAL_CPUS",) if cpus > 1 else ())
    states = tuple((path, FileState.of(program)) for path, program in programs.items())
    content, identity = _content(FileState.of(agent), states)
    path = cache_dir("guests") / f"base-{by.arch}-{identity[:32]}.cpio"
    if path.is_file() and sha256_state(FileState.of(path)) != identity:
        log(f"{path} is damaged: it is not what was made; it is made again")
        remove(path)
    if not use(path):
        write_atomic(path, content)
        use(path)
    return GuestImage(path, identity, stop_address(agent))


@functools.lru_cache(maxsize=4)
def _content(agent: FileState, programs: tuple[tuple[str, FileState], ...]) -> tuple[bytes, str]:
    """The image's bytes and their hash, made once of what was compiled."""
    with lab_errors("reading", agent.path.parent):
        entries = [
            file(path, program.path.read_bytes(), executable=True) for path, program in programs
        ]
        init = file("init", agent.path.read_bytes(), executable=True)
    content = archive([*_FOLDERS, _CONSOLE, init, *entries])
    return content, hashlib.sha256(content).hexdigest()


@functools.cache
def stop_address(program: Path) -> int:
    """Where the agent, or another program, waits for a snapshot to be taken."""
    elf = read_elf(program)
    assert elf
    # Of Thumb code, the lowest bit says that it is.
    return int(elf.symbols.value[elf.symbols.names.index("kdelta_snapshot_point")]) & ~1
