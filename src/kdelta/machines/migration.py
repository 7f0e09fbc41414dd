# SPDX-License-Identifier: GPL-2.0-or-later
"""Saves the state of a stopped guest, without its memory, and loads it: QEMU's migration."""

import asyncio
import shlex
import shutil
from pathlib import Path

from kdelta.host.files import PARTIAL, lab_errors
from kdelta.machines.process import Emulator
from kdelta.spec.errors import LabError

STATE = "state"
"""The name of the file that has it, in the snapshot's folder."""

_SECONDS_TO_WRITE = 20.0
"""How long what is in the pipe may take to get into the file, on a loaded host."""

_MAGIC = b"QEVM"
"""How a state begins (QEMU_VM_FILE_MAGIC)."""


async def _keep_memory_out(qemu: Emulator) -> None:
    """Of the stream: it is in a file of its own."""
    capability = {"capability": "x-ignore-shared", "state": True}
    await qemu.command("migrate-set-capabilities", capabilities=[capability])


async def save_state(qemu: Emulator, path: Path) -> None:
    """Write the stopped guest's state and end QEMU; LabError when it cannot be (a full disk)."""
    await _keep_memory_out(qemu)
    partial = shlex.quote(str(path.with_name(path.name + PARTIAL)))
    failed = path.with_name(f"{path.name}.failed")
    write = f"cat > {partial} && mv {partial} {path.name} || : > {failed.name}"
    await qemu.command("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
    await qemu.command("migrate", uri=f"exec:{write}")
    while True:
        status = (await qemu.command("query-migrate")).get("status")
        if status in {"completed", "failed", "cancelled"}:
            break
        await asyncio.sleep(0.01)
    await qemu.command("quit")
    await qemu.wait_exit()
    # QEMU may call it completed when the pipe took the end, and the disk did not; nor does it wait
    # for the command that reads the pipe.
    until = asyncio.get_running_loop().time() + (_SECONDS_TO_WRITE if status == "completed" else 0)
    while not (path.exists() or failed.exists()) and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(0.01)
    if status != "completed" or not path.exists():
        raise not_written(path)


def not_written(path: Path) -> LabError:
    """Return the error for a snapshot that could not be written there."""
    free = shutil.disk_usage(path.parent).free
    return LabError(
        f"the snapshot could not be written to {path}: {free >> 20} MiB are free",
        "look whether the disk is full; KDELTA_CACHE_DIR names a folder on another one",
    )


async def load_state(qemu: Emulator, folder: Path) -> None:
    """Load the state of the snapshot in that folder; LabError when QEMU cannot load it."""
    state = folder / STATE
    await _keep_memory_out(qemu)
    with lab_errors("reading", state), state.open("rb", buffering=0) as file:
        if file.read(len(_MAGIC)) != _MAGIC:  # QEMU waits forever where nothing comes
            raise _not_loaded(folder, "it does not begin as QEMU's state of a guest")
        file.seek(0)
        await qemu.hand("state", file)
    # What QEMU else announces to networks later has timers of the host's time, which end turns of
    # CPUs (icount_get_limit in QEMU's sources).
    await qemu.command("migrate-set-parameters", **{"announce-rounds": 0})
    try:
        await qemu.command("migrate-incoming", uri="fd:state")
        while (status := await _status(qemu)) in {"inmigrate", "prelaunch"}:
            await asyncio.sleep(0.005)
    except LabError as error:  # QEMU ends at a state that it cannot take
        raise _not_loaded(folder, error.message) from error
    if status != "paused":
        raise _not_loaded(folder, f"QEMU is {status}")


async def _status(qemu: Emulator) -> str:
    return str((await qemu.command("query-status"))["status"])


def _not_loaded(folder: Path, why: str) -> LabError:
    return LabError(
        f"cannot load the snapshot in {folder}: {why}",
        "remove that folder, or run with --no-snapshot",
    )
