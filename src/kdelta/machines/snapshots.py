# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots of quiet guests in the cache: a kernel boots once for all runs with the same image."""

import asyncio
import functools
import os
import shutil
import time
import zlib
from pathlib import Path

import msgspec

from kdelta.host.dirs import cache_dir
from kdelta.host.files import data_extents, lab_errors, new_folder, write_atomic
from kdelta.host.lock import locked_async
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.tcg import Guest, Setting, Snapshot, boot
from kdelta.spec.errors import LabError
from kdelta.spec.identity import identity
from kdelta.spec.run import RunStatus

KEPT = 48
RECORD = "snapshot.json"
_IN_USE_SECONDS = 3600
_PIECE_BYTES = 4 << 20


class _BootFailedError(Exception):
    """Leaves the half-made folder; never leaves this module."""

    def __init__(self, outcome: GuestOutcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


async def obtain_snapshot(guest: Guest, setting: Setting) -> Snapshot | GuestOutcome:
    """The guest's snapshot, taken unless the cache has it whole; the boot's outcome when it failed.

    Of several processes that want the same one, one boots and the others wait.
    """
    key = identity(guest.snapshot_facts())[:32]
    folder = cache_dir("snapshots") / key
    if not await asyncio.to_thread(_is_whole, folder):
        async with locked_async(f"snapshot-{key}", "booting this kernel", setting.say):
            _is_whole.cache_clear()
            if not await asyncio.to_thread(_is_whole, folder):
                failure = await _take(guest, setting, folder)
                if failure:
                    return failure
                prune()
    with lab_errors("using", folder):
        os.utime(folder)
    return Snapshot(folder)


async def _take(guest: Guest, setting: Setting, folder: Path) -> GuestOutcome | None:
    """Boots the guest into that folder, whatever was there before; its outcome when it failed."""
    if folder.exists():
        setting.say("was damaged in the cache")
    try:
        with new_folder(folder) as fresh:
            outcome = await boot(guest, msgspec.structs.replace(setting, folder=fresh))
            if outcome.status is not RunStatus.OK:
                raise _BootFailedError(outcome)
            write_atomic(fresh / RECORD, msgspec.json.encode(_checksums(fresh)))
    except _BootFailedError as failure:
        return failure.outcome
    _is_whole.cache_clear()
    return None


def _checksums(folder: Path) -> dict[str, int]:
    """The CRC-32 of each file that a run starts from. It finds accidents, and takes 0.1 s."""
    snapshot = Snapshot(folder)
    with lab_errors("reading", folder):
        return {
            path.name: _checksum(path)
            for path in (snapshot.ram, snapshot.state, snapshot.boot, snapshot.symbols)
        }


def _checksum(path: Path) -> int:
    """The CRC-32 of a file's size, and of its parts that are not holes with their places."""
    with path.open("rb") as file:
        found = zlib.crc32(str(os.fstat(file.fileno()).st_size).encode())
        for start, end in data_extents(file.fileno()):
            found = zlib.crc32(str(start).encode(), found)
            at = start
            while at < end:
                piece = os.pread(file.fileno(), min(_PIECE_BYTES, end - at), at)
                found = zlib.crc32(piece, found)
                at += len(piece)
    return found


@functools.cache
def _is_whole(folder: Path) -> bool:
    """Whether a snapshot is there, and as it was when it was taken; looked at once a process."""
    try:
        record = msgspec.json.decode((folder / RECORD).read_bytes(), type=dict[str, int])
        return record == _checksums(folder)
    except (OSError, LabError, msgspec.DecodeError):
        return False


def prune() -> None:
    """Remove the snapshots that were used longest ago, beyond those that are kept."""
    folders = [path for path in cache_dir("snapshots").iterdir() if path.is_dir()]
    folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for folder in folders[KEPT:]:
        if time.time() - folder.stat().st_mtime > _IN_USE_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
