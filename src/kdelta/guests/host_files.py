# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of the host that a program asks for, as a guest gets them: by the names that it used."""

import os
import stat
import unicodedata
from collections.abc import Collection, Iterable
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from kdelta.guests.host_file import HostFile, open_host_file
from kdelta.guests.libraries import asked_interpreter
from kdelta.spec.errors import UserError
from kdelta.spec.limits import GUEST_FILES as MAX_ENTRIES
from kdelta.spec.limits import GUEST_FILES_BYTES as MAX_BYTES
from kdelta.spec.limits import LINKS

_OF_THE_GUEST = ("/dev", "/proc", "/sys", "/run", "/init", "/job", "/workloads")
_SECRET_NAMES = frozenset(
    (".ssh", ".gnupg", ".netrc", ".git-credentials", ".aws", ".kube", ".password-store")
)
_SECRET_PATHS = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private")

NO_TEXT = "its name is not UTF-8, or has control characters"
"""Why such a file is left out: lists of names have a line each, and JSON."""

NAME_KINDS = "nscxl"
"""How a name begins that was asked for: n the file itself, also if it is a link; s what it leads
to; c and its content; x and what the kernel starts it by; l the names in a folder.
"""


class HostFiles:
    """Collects what a guest needs of the host for names that a program asked for."""

    def __init__(self, given: Collection[str] = ()) -> None:
        """`given` are paths in the guest that have other files already."""
        self._given = frozenset(given)
        self._files: dict[str, HostFile] = {}
        self._new: dict[str, HostFile] = {}
        self._started: set[str] = set()
        self._bytes = 0
        self.left_out: dict[str, str] = {}

    @property
    def files(self) -> tuple[HostFile, ...]:
        """All, by path."""
        return tuple(self._files[path] for path in sorted(self._files))

    def take_new(self) -> tuple[HostFile, ...]:
        """Returns those that were added, or got more, since the last call."""
        new = tuple(self._new.values())
        self._new.clear()
        return new

    def need(self, name: str) -> None:
        """Adds what is on the host for a name (see NAME_KINDS); UserError for too much."""
        kind, path = name[:1], name[1:]
        if not kind or kind not in NAME_KINDS or not path.startswith("/"):
            return
        found = self._walk(path, follow=kind != "n")
        if found is None:
            return
        here, state = found
        if stat.S_ISREG(state.st_mode):
            self._add_file(here, state, content=kind in "cx")
            if kind == "x":
                self._start(here)
        elif kind == "l" and stat.S_ISDIR(state.st_mode):
            self._list(here)

    def need_all(self, names: Iterable[str]) -> None:
        """Does that for each."""
        for name in names:
            self.need(name)

    def _walk(self, path: str, *, follow: bool) -> tuple[str, os.stat_result] | None:
        """Adds all folders and links on the way. Returns where it ends, without links, if that is
        there.
        """
        rest, here, links = path.split("/")[::-1], "", 0
        state = Path("/").stat()
        while rest:
            part = rest.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                here = here.rpartition("/")[0]
                continue
            place = f"{here}/{part}"
            found = self._state(place)
            if found is None:
                return None
            state = found
            if stat.S_ISLNK(state.st_mode):
                target = self._add_link(place, state)
                if not target:
                    return None
                links += 1
                if not rest and not follow:
                    return place, state
                if links > LINKS:
                    return None
                rest += target.split("/")[::-1]
                here = "" if target.startswith("/") else here
                continue
            if stat.S_ISDIR(state.st_mode):
                self._add_folder(place, state, named=not rest)
            elif rest or not stat.S_ISREG(state.st_mode):
                return None
            here = place
        return here or "/", state

    def _state(self, path: str) -> os.stat_result | None:
        """None for what is not there, or not for guests."""
        if path in self._given or any(
            path == own or path.startswith(f"{own}/") for own in _OF_THE_GUEST
        ):
            return None
        try:
            state = os.lstat(path)
        except (OSError, ValueError):  # of a name with a NUL
            return None
        if not is_text(path):
            shown = os.fsencode(path).decode("utf-8", "backslashreplace")
            self.left_out[shown] = NO_TEXT
            return None
        if is_secret(path):
            self.left_out[path] = "it may be a secret"
            return None
        kind = stat.S_IFMT(state.st_mode)
        needed = {stat.S_IFREG: os.R_OK, stat.S_IFDIR: os.X_OK}.get(kind)
        if needed and not os.access(path, needed):
            self.left_out[path] = "you cannot read it"
            return None
        return state

    def _list(self, folder: str) -> None:
        try:
            paths = sorted(map(str, Path(folder).iterdir()))
        except OSError:  # it is gone, or may only be searched
            if os.path.lexists(folder):
                self.left_out[folder] = "you cannot list it"
            return
        for path in paths:
            state = self._state(path)
            if state is None:
                continue
            if stat.S_ISDIR(state.st_mode):
                self._add_folder(path, state, named=True)
            elif stat.S_ISLNK(state.st_mode):
                self._add_link(path, state)
            elif stat.S_ISREG(state.st_mode):
                self._add_file(path, state, content=False)

    def _start(self, path: str) -> None:
        """Adds what the kernel starts a program by: a script's interpreter, or a loader."""
        if path in self._started:
            return
        self._started.add(path)
        with open_host_file(path) as file:
            start = file.read(256)
            words = start[2:].split(b"\n")[0].split()
            try:
                loader = asked_interpreter(ELFFile(file)) if start[:4] == b"\x7fELF" else ""
            # pyelftools seeks to where a damaged header says. The kernel refuses it as well.
            except (ELFError, OSError, ValueError):
                loader = ""
        if start.startswith(b"#!") and words:
            loader = os.fsdecode(words[0])
        if loader.startswith("/"):
            self.need(f"x{loader}")

    def _add_link(self, path: str, state: os.stat_result) -> str:
        """Returns where it leads; nowhere if it is gone meanwhile."""
        try:
            target = str(Path(path).readlink())
        except OSError:
            return ""
        self._add(HostFile(path, state.st_mode, state.st_mtime_ns, target))
        return target

    def _add_folder(self, path: str, state: os.stat_result, *, named: bool) -> None:
        known = self._files.get(path)
        modified_ns = state.st_mtime_ns if named else known.modified_ns if known else 0
        self._add(HostFile(path, state.st_mode, modified_ns))

    def _add_file(self, path: str, state: os.stat_result, *, content: bool) -> None:
        known = self._files.get(path)
        if content and not (known and known.content):
            self._bytes += state.st_size
        content = content or bool(known and known.content)
        mode, modified_ns = state.st_mode, state.st_mtime_ns
        self._add(HostFile(path, mode, modified_ns, "", state.st_size, content))

    def _add(self, file: HostFile) -> None:
        if self._files.get(file.path) != file:
            self._files[file.path] = self._new[file.path] = file
        if self._bytes > MAX_BYTES:
            sizes = sorted(
                (-one.size_bytes, one.path) for one in self._files.values() if one.content
            )
            most = ", ".join(f"{path} ({-size >> 20} MiB)" for size, path in sizes[:3])
            raise UserError(
                f"the program reads more than {MAX_BYTES >> 20} MiB of files: {most}",
                "give it less to read, or leave files out by --no-find",
            )
        if len(self._files) > MAX_ENTRIES:
            raise UserError(
                f"the program asks for more than {MAX_ENTRIES} files, such as {file.path}",
                "give it a smaller folder, or leave files out by --no-find",
            )


def is_text(name: str) -> bool:
    """Return whether a name can stand in a list of names, a line each, and in JSON."""
    return not any(unicodedata.category(one) in {"Cc", "Cs", "Zl", "Zp"} for one in name)


def is_secret(path: str) -> bool:
    """Whether a file may hold a password or a private key, so that it is not carried unasked."""
    parts = path.split("/")
    return (
        not _SECRET_NAMES.isdisjoint(parts)
        or any(path == one or path.startswith(f"{one}/") for one in _SECRET_PATHS)
        or (path.startswith("/etc/ssh/ssh_host_") and not path.endswith(".pub"))
    )


def canonical(path: str) -> str:
    """A path in the guest by the host's links above it, which the guest has, too."""
    return str(Path(path).parent.resolve() / Path(path).name)
