# SPDX-License-Identifier: GPL-2.0-or-later
"""Folders of the cache: `published_folder` is where they come from, and `damage_found` is asked
before they are used. A manifest says what a folder held when it was made.

The manifest lies next to the folder, so that the folder holds nothing but what it is for.
"""

import contextlib
import functools
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from kdelta.host.command import Log
from kdelta.host.dirs import cache_dir
from kdelta.host.files import (
    GONE,
    PARTIAL,
    FileState,
    lab_errors,
    move,
    new_folder,
    read_json,
    remove,
    write_json,
)
from kdelta.host.in_use import unused, use
from kdelta.spec.errors import LabError

T = TypeVar("T")

_ENDING = ".manifest"
_PIECE_BYTES = 1 << 20


class _Manifest(msgspec.Struct, frozen=True):
    """files: what each was, by its path in the folder."""

    files: dict[str, str]


def write_manifest(made: Path, folder: Path) -> None:
    """Writes what `made` holds, which is about to become `folder`."""
    write_json(_path(folder), _Manifest(dict(_states(made))))


def damage(folder: Path) -> str | None:
    """Return which file is not as it was made, and how; None if all are. LabError for what cannot
    be read.
    """
    if (manifest := read_json(_path(folder), _Manifest)) is None:
        return "it has no manifest of hashes"
    found = dict(_states(folder))
    for name, state in manifest.files.items():
        if name not in found:
            return f"{name} is missing"
        if found[name] != state:
            return f"{name} is not what was made"
    return next((f"{name} was added" for name in found if name not in manifest.files), None)


def has_manifest(folder: Path) -> bool:
    """Return whether there is one: a folder of an older version has none."""
    return os.path.lexists(_path(folder))


def damage_found(folder: Path) -> str | None:
    """Return `damage`, looked for once in each process while the folder is the same. LabError for a
    folder that is not there.
    """
    if not has_manifest(folder):
        return damage(folder)
    with lab_errors("reading", folder):
        states = FileState.of(_path(folder)), FileState.of(folder)
    try:
        must_be_undamaged(*states)
    except _DamagedError as error:
        return str(error)
    return None


class _DamagedError(Exception):
    """Says what is damaged; never leaves this module."""


@functools.cache
def must_be_undamaged(_manifest: FileState, folder: FileState) -> None:
    """Raise _DamagedError unless the folder is as it was made; once, while both are the same."""
    if (why := damage(folder.path)) is not None:
        raise _DamagedError(why)


def is_whole(folder: Path) -> bool:
    """Whether it is as it was made; not, while another process removes it or makes it again."""
    try:
        return damage_found(folder) is None
    except LabError:
        return False


def whole_record(folder: Path, name: str, kind: type[T], is_of: Callable[[T], bool]) -> T | None:
    """The record, a JSON file, in a folder that is as it was made; None for any other folder. It is
    in use from then on.

    is_of: whether the folder holds what its record says, for a folder of an older version, which
    gets its manifest now.
    """
    if not use(folder):
        return None
    if not has_manifest(folder):
        found = read_json(folder / name, kind)
        if found is None or not is_of(found):
            return None
        with contextlib.suppress(LabError):  # a cache that is only read
            write_manifest(folder, folder)
        return found
    return read_json(folder / name, kind) if is_whole(folder) else None


@contextlib.contextmanager
def published_folder(folder: Path, log: Log) -> Iterator[Path]:
    """Gives an empty folder to fill, as `new_folder` does, and keeps what it then holds in its
    manifest. What is there already and damaged is set aside, and named.
    """
    if folder.is_dir() and has_manifest(folder) and (why := damage(folder)):
        log(f"{folder} is damaged: {why}; it is kept in {set_aside(folder)}, and made again")
    with new_folder(folder) as partial:
        yield partial
        write_manifest(partial, folder)


def forget(folder: Path) -> None:
    """Removes the manifest of a folder that was removed."""
    remove(_path(folder))


def set_aside(path: Path) -> Path:
    """Move what is damaged to where nothing takes it for whole; return its new path."""
    aside = cache_dir("damaged") / f"{path.parent.name}-{path.name}"
    if os.path.lexists(aside):  # what was set aside before
        aside = aside.with_name(f"{aside.name}.{secrets.token_hex(4)}")
    move(path, aside)
    return aside


def take_away(path: Path) -> bool:
    """Removes a file or a folder of the cache; returns whether it did: not while a process uses
    it.
    """
    with unused(path) as free:
        if free:
            forget(path)
            # By another name first: what is half removed is never taken for whole.
            gone = path.with_name(path.name + GONE)
            remove(gone)
            move(path, gone)
            remove(gone)
    return free


def manifests_left(folder: Path) -> list[Path]:
    """Return the manifests in a folder of the cache whose folders are not there, and not about to
    be.
    """
    found = []
    for path in sorted(folder.glob(f"*{_ENDING}")):
        made = path.with_suffix("")
        # In this order: a folder that is being filled becomes the folder itself.
        if not made.with_name(made.name + PARTIAL).exists() and not made.exists():
            found.append(path)
    return found


def is_manifest(path: Path) -> bool:
    """Whether a file is what lies next to a folder of the cache."""
    return path.name.endswith(_ENDING)


def _path(folder: Path) -> Path:
    return folder.with_name(folder.name + _ENDING)


def _states(folder: Path) -> Iterator[tuple[str, str]]:
    """What each file and link is, by its path in the folder. A kernel has a thousand small files,
    for which a Path each would take longer than their hashes.
    """
    with lab_errors("reading", folder):
        for root, folders, names in os.walk(folder):
            inside = os.path.relpath(root, folder)
            for name in (*folders, *names):
                path = f"{root}/{name}"
                mode = os.lstat(path).st_mode
                if stat.S_ISLNK(mode):
                    state = f"-> {Path(path).readlink()}"
                elif stat.S_ISREG(mode):
                    state = f"{_sha256(path)} {mode & 0o777:o}"
                elif stat.S_ISDIR(mode):
                    continue
                else:
                    state = "no file"
                yield name if inside == "." else f"{inside}/{name}", state


def _sha256(path: str) -> str:
    found = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123  (see _states)
        while piece := file.read(_PIECE_BYTES):
            found.update(piece)
    return found.hexdigest()
