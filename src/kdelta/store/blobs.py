# SPDX-License-Identifier: GPL-2.0-or-later
"""Blobs: what runs and studies keep besides their rows, by the hash of its content."""

import contextlib
import hashlib
import re
import zlib
from pathlib import Path

from kdelta.host.files import lab_errors, make_folder, read_regular, write_atomic
from kdelta.spec.errors import LabError

# Counts of a large run: level 3 takes 60 ms for 6 MB and saves three quarters.
_LEVEL = 3
_NAME = re.compile(r"[0-9a-f]{64}")


def must_be_name(name: str) -> None:
    """Raise LabError for what is no hash of a blob."""
    if not _NAME.fullmatch(name):
        raise LabError(
            f"the store names a blob that cannot be one: {name!r:.80}",
            "kdelta check --repair sets aside what names it",
        )


class Blobs:
    """A folder of blobs. Writers do not disturb each other: equal bytes have equal names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, content: bytes) -> str:
        """Keeps bytes and returns their hash; LabError if they cannot be written.

        A damaged blob of that name is replaced.
        """
        name = hashlib.sha256(content).hexdigest()
        with contextlib.suppress(LabError):
            self.get(name)
            return name
        path = self.path(name)
        make_folder(path.parent)
        write_atomic(path, zlib.compress(content, _LEVEL))
        return name

    def get(self, name: str) -> bytes:
        """Return the bytes of that hash; LabError if they are missing or damaged."""
        path = self.path(name)
        try:
            with lab_errors("reading", path):
                if not path.exists():
                    raise LabError(
                        f"the store has lost a blob: {path} is missing",
                        "make its run again with --rerun, or bring the file back from a backup",
                    )
                content = zlib.decompress(read_regular(path))
        except zlib.error as error:
            raise self._damaged(path, str(error)) from error
        if hashlib.sha256(content).hexdigest() != name:
            raise self._damaged(path, "its content has another hash than its name")
        return content

    def names(self) -> dict[str, Path]:
        """The blobs that are there, by their hashes. LabError for a folder that cannot be read."""
        with lab_errors("reading", self._folder):
            files = (path for path in self._folder.glob("*/*") if path.is_file())
            found = {path.parent.name + path.name: path for path in files}
        return {name: path for name, path in sorted(found.items()) if _NAME.fullmatch(name)}

    def remove(self, name: str) -> int:
        """Removes a blob, if it is there; returns how many bytes that freed."""
        path = self.path(name)
        with lab_errors("removing", path):
            size = path.stat().st_size if path.is_file() else 0
            path.unlink(missing_ok=True)
        return size

    def path(self, name: str) -> Path:
        """Return where a blob is or would be; LabError for what is no hash."""
        must_be_name(name)
        return self._folder / name[:2] / name[2:]

    def _damaged(self, path: Path, why: str) -> LabError:
        return LabError(
            f"a blob of the store is damaged: {path}: {why}",
            "kdelta check --repair takes it out of use; its run is made again with --rerun",
        )
