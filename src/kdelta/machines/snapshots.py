# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots of quiet guests in the cache: a kernel boots once for all runs with the same image."""

import functools
import os
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from kdelta.host.cache import keep_snapshots
from kdelta.host.dirs import cache_dir
from kdelta.host.files import (
    data_extents,
    lab_errors,
    new_folder,
    open_regular,
    read_json,
    write_atomic,
)
from kdelta.host.in_use import use
from kdelta.host.interrupt import in_thread
from kdelta.host.lock import locked_async
from kdelta.host.sealed import read_sealed, write_sealed
from kdelta.machines.forcing import LOOKED_AT, forcing_in, symbols_looked_at, symbols_of_build
from kdelta.machines.outcome import HANG, GuestOutcome
from kdelta.machines.tcg import Guest, Setting, Snapshot, boot
from kdelta.spec.errors import LabError
from kdelta.spec.identity import identity
from kdelta.spec.run import RunStatus

RECORD = "snapshot.json"
_BLOCK_BYTES = 64 << 10
_PIECE_BYTES = 64 * _BLOCK_BYTES
_ZEROS = bytes(_BLOCK_BYTES)


def _alike(guest: Guest) -> str:
    """What guests have in common whose kernels hang alike."""
    return identity(msgspec.structs.replace(guest, boot=0).snapshot_facts())


class _Record(msgspec.Struct, frozen=True):
    """What was taken: the key of the guest, and the CRC-32 of each file that a run starts from.

    zeros: zeros that are no holes are in these, as versions before 28 November 2026 had it.
    """

    key: str
    checksums: dict[str, int]
    zeros: bool = True


class _BootFailedError(Exception):
    """Leaves the half-made folder; never leaves this module."""

    def __init__(self, outcome: GuestOutcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


async def obtain_snapshot(guest: Guest, setting: Setting) -> Snapshot | GuestOutcome:
    """Return the guest's snapshot, taken unless the cache has it whole; if its boot failed, how.

    Of several processes that want the same one, one boots and the others wait.
    """
    key = identity(guest.snapshot_facts())[:32]
    folder = cache_dir("snapshots") / key
    if not use(folder) or not await in_thread(_is_whole, folder):
        async with locked_async(f"snapshot-{key}", "booting this kernel", setting.log):
            _is_whole.cache_clear()
            if not await in_thread(_is_whole, folder):
                failure = setting.hung.get(_alike(guest)) or await _take(guest, setting, folder)
                if failure:
                    if failure.detail.startswith(HANG):
                        setting.hung[_alike(guest)] = failure
                    return failure
                use(folder)  # or it might be the one that goes
                await in_thread(keep_snapshots)
    if not use(folder):
        raise LabError(f"the snapshot in {folder} is not there any more", "run this again")
    return Snapshot(folder)


def known_forcing(guest: Guest) -> Guest | None:
    """The guest with how its features are forced in its kernel, as far as that is known without a
    boot: by the symbols of the kernel's build, or by those of an earlier boot, which are kept.
    """
    symbols = symbols_of_build(guest.kernel_image) or read_sealed(_kept_symbols(guest))
    return _with_forcing(guest, symbols) if symbols else None


async def _not_looked_at(_start: Snapshot) -> None:
    return None


async def obtain_forcing(
    guest: Guest, setting: Setting, look: Callable[[Snapshot], Awaitable[None]] = _not_looked_at
) -> Guest | GuestOutcome:
    """Return the same, if need be by a boot without what is forced, of which there is a snapshot
    then; the outcome of that boot when it failed. look: is given that snapshot before its use.
    """
    if (known := await in_thread(known_forcing, guest)) is not None:
        return known
    bare = msgspec.structs.replace(guest, boot=0, force=(), forcing=None)
    found = await obtain_snapshot(bare, setting)
    if isinstance(found, GuestOutcome):
        return found
    await look(found)
    with lab_errors("reading", found.symbols):
        symbols = symbols_looked_at(found.symbols.read_bytes())
    if symbols:
        write_sealed(_kept_symbols(guest), symbols)
    return _with_forcing(guest, symbols)


def known_refusal(guest: Guest) -> str | None:
    """What is known of why features cannot be forced in that guest: empty if they can; None if it
    was not tried.
    """
    kept = read_sealed(_refusal_file(guest))
    return None if kept is None else kept.decode()


def keep_refusal(guest: Guest, reason: str) -> None:
    """Keep why features cannot be forced in that guest; empty: they can."""
    write_sealed(_refusal_file(guest), reason.encode())


def _refusal_file(guest: Guest) -> Path:
    key = identity(guest.snapshot_facts())[:32]
    return cache_dir("forcing") / f"{key}.refusal"


def _with_forcing(guest: Guest, symbols: bytes) -> Guest:
    return msgspec.structs.replace(guest, forcing=forcing_in(guest.force, symbols))


def _kept_symbols(guest: Guest) -> Path:
    """Where what `forcing_in` looks at of the symbols of the guest's kernel is kept."""
    key = identity({"kernel": guest.kernel_identity, "asks": LOOKED_AT})[:32]
    return cache_dir("forcing") / f"{key}.symbols"


async def _take(guest: Guest, setting: Setting, folder: Path) -> GuestOutcome | None:
    """Boots the guest into that folder, whatever was there before; its outcome when it failed."""
    if folder.exists():
        setting.log("boots again: its snapshot in the cache is damaged, or another guest's")
    try:
        with new_folder(folder) as fresh:
            outcome = await boot(guest, msgspec.structs.replace(setting, folder=fresh))
            if outcome.status is not RunStatus.OK:
                raise _BootFailedError(outcome)
            record = _Record(folder.name, _checksums(fresh), zeros=False)
            write_atomic(fresh / RECORD, msgspec.json.encode(record))
    except _BootFailedError as failure:
        return failure.outcome
    _is_whole.cache_clear()
    return None


def _checksums(folder: Path, *, zeros: bool = False) -> dict[str, int]:
    """Return the CRC-32 of each file that a run starts from. It finds accidents, and takes 0.1 s.

    zeros: see _Record.
    """
    snapshot = Snapshot(folder)
    with lab_errors("reading", folder):
        return {
            path.name: _checksum_with_zeros(path) if zeros else _checksum(path)
            for path in (snapshot.ram, snapshot.state, snapshot.boot, snapshot.symbols)
        }


def _checksum(path: Path) -> int:
    """Return the CRC-32 of a file's size, and of its blocks that are not zeros with their places.

    Copies and some file systems (ZFS, say) make zeros holes, or holes zeros.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        found = zlib.crc32(str(os.fstat(file.fileno()).st_size).encode())
        done = 0
        for start, end in data_extents(file.fileno()):
            done = max(done, start - start % _BLOCK_BYTES)
            while done < end:
                piece = os.pread(file.fileno(), _PIECE_BYTES, done)
                for at in range(0, len(piece), _BLOCK_BYTES):
                    block = piece[at : at + _BLOCK_BYTES]
                    if block != _ZEROS[: len(block)]:
                        found = zlib.crc32(block, zlib.crc32(str(done + at).encode(), found))
                done += _PIECE_BYTES
    return found


def _checksum_with_zeros(path: Path) -> int:
    """Return the CRC-32 of a file's size, and of its parts that are not holes with their places."""
    with os.fdopen(open_regular(path), "rb") as file:
        found = zlib.crc32(str(os.fstat(file.fileno()).st_size).encode())
        for start, end in data_extents(file.fileno()):
            found = zlib.crc32(str(start).encode(), found)
            for at in range(start, end, _PIECE_BYTES):
                piece = os.pread(file.fileno(), min(_PIECE_BYTES, end - at), at)
                found = zlib.crc32(piece, found)
    return found


@functools.cache
def _is_whole(folder: Path) -> bool:
    """Whether a snapshot is there, of the guest that the folder is named after, and as it was when
    it was taken; looked at once a process.
    """
    return snapshot_damage(folder) is None


def snapshot_damage(folder: Path) -> str | None:
    """Return which file of a snapshot is not as it was taken, and how; None if all are."""
    record = read_json(folder / RECORD, _Record)
    if record is None or record.key != folder.name:
        return f"{RECORD} is not that of this snapshot"
    try:
        found = _checksums(folder, zeros=record.zeros)
    except LabError as error:
        return error.message
    changed = (name for name, checksum in found.items() if record.checksums.get(name) != checksum)
    return next((f"{name} is not what was taken" for name in changed), None)
