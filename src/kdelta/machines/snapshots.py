# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots of quiet guests in the cache: a kernel boots once for all runs with the same image."""

import os
import shutil
import time

import msgspec

from kdelta.host.dirs import cache_dir
from kdelta.host.files import new_folder
from kdelta.host.lock import locked_async
from kdelta.machines.outcome import Outcome
from kdelta.machines.tcg import Guest, Setting, Snapshot, boot
from kdelta.spec.identity import identity
from kdelta.spec.run import RunStatus

KEPT = 16
_IN_USE_SECONDS = 3600


class _BootFailedError(Exception):
    """Leaves the half-made folder; never leaves this module."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


def snapshot_key(guest: Guest) -> str:
    """The hash of all that decides a snapshot's content."""
    return identity(guest.snapshot_facts())[:32]


async def obtain_snapshot(guest: Guest, setting: Setting) -> Snapshot | Outcome:
    """The guest's snapshot, taken unless the cache has it; the boot's outcome when it failed.

    Of several processes that want the same one, one boots and the others wait.
    """
    key = snapshot_key(guest)
    folder = cache_dir("snapshots") / key
    if not folder.is_dir():
        async with locked_async(f"snapshot-{key}", "booting this kernel", setting.say):
            if not folder.is_dir():
                try:
                    with new_folder(folder) as fresh:
                        outcome = await boot(guest, msgspec.structs.replace(setting, folder=fresh))
                        if outcome.status is not RunStatus.OK:
                            raise _BootFailedError(outcome)
                except _BootFailedError as failure:
                    return failure.outcome
                prune()
    os.utime(folder)
    return Snapshot(folder)


def prune() -> None:
    """Remove the snapshots that were used longest ago, beyond the 16 that are kept."""
    folders = [path for path in cache_dir("snapshots").iterdir() if path.is_dir()]
    folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for folder in folders[KEPT:]:
        if time.time() - folder.stat().st_mtime > _IN_USE_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
