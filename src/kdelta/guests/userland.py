# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs for a guest out of a distribution's packages, whatever the guest's architecture.

Of the packages that are named, and of those that they need, only what the wanted programs load is
taken: their interpreter and shared libraries. So what this host has installed plays no part.
"""

import difflib
import fnmatch
import functools
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment

from kdelta.guests.debs import EVERYWHERE, Deb, Debs, File
from kdelta.guests.job import JobFile
from kdelta.host.dirs import cache_dir
from kdelta.host.files import write_atomic
from kdelta.spec.errors import LabError
from kdelta.spec.identity import identity
from kdelta.workloads.catalog import UserlandWanted

_MAGIC = b"\x7fELF"
_LIBRARY = "lib"
"""What the names of packages have in them that hold shared libraries: most begin with it (Debian
policy 8.1), zlib1g does not.
"""

_MERGED = re.compile(r"^/usr/(?=s?bin/)")

_LIBRARY_FOLDERS = re.compile(r"/(usr/)?lib(64)?(/[^/]+-linux-gnu[^/]*)?")
"""Where a loader looks without being told."""


class Userland(msgspec.Struct, frozen=True):
    """Files of a guest, each executable, and of which packages (NAME=VERSION) they are."""

    files: tuple[JobFile, ...]
    packages: tuple[str, ...]


class _Answer(msgspec.Struct, frozen=True):
    """The packages that were taken when apt was in that state."""

    state: str
    debs: tuple[Deb, ...]


def userland(wanted: UserlandWanted, arch: str, talk: Callable[[str], None]) -> Userland:
    """The files of `wanted` for guests of that architecture, from the cache where it has them.

    UserError for a package that the distribution does not have for that architecture, LabError if
    packages cannot be fetched or do not have what is wanted.
    """
    debs = Debs(arch, talk)
    key = identity({"arch": arch, "wanted": msgspec.to_builtins(wanted)})
    path = cache_dir("userland-answers") / f"{key[:32]}.json"
    before = _answer(path)
    if before and before.state == debs.state() and debs.take(before.debs):
        return _Assembly(debs, wanted).assemble()
    try:
        found = _Assembly(debs, wanted).assemble()
    except LabError as error:
        # What was fetched before serves as long as the mirror cannot be reached.
        kept = Debs(arch, talk)
        if before is None or not kept.take(before.debs):
            raise
        talk(f"taking the packages in the cache: {error.message}")
        return _Assembly(kept, wanted).assemble()
    write_atomic(path, msgspec.json.encode(_Answer(debs.state(), debs.taken)))
    return found


def _answer(path: Path) -> _Answer | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Answer)
    except (OSError, msgspec.DecodeError):
        return None


class _Assembly:
    """Follows programs to what they load, taking more packages only where something is missing."""

    def __init__(self, debs: Debs, wanted: UserlandWanted) -> None:
        self._debs = debs
        self._wanted = wanted
        self._files: dict[str, JobFile] = {}

    def assemble(self) -> Userland:
        self._debs.fetch(self._wanted.packages)
        self._fetch_dependencies(self._wanted.packages)
        for program in self._wanted.programs:
            self._add(self._found(program), program)
        for glob in self._wanted.files:
            paths = fnmatch.filter(self._debs.paths(), glob)
            if not paths:
                raise self._missing(glob)
            for path in paths:
                self._add(self._found(path), path)
        files = tuple(self._files[path] for path in sorted(self._files))
        packages = tuple(f"{deb.package}={deb.version}" for deb in self._debs.taken)
        return Userland(files, packages)

    def _fetch_dependencies(self, packages: Iterable[str]) -> None:
        """Of packages, those that they depend on and that are to be looked in, and so on."""
        known = {deb.package for deb in self._debs.taken}
        found = {
            name
            for package in packages
            for name in self._debs.dependencies(package)
            for pattern in self._wanted.dependencies
            if name not in known and fnmatch.fnmatchcase(name, pattern)
        }
        if found:
            self._debs.fetch(sorted(found))
            self._fetch_dependencies(sorted(found))

    def _found(self, path: str) -> File:
        # Where /bin is a link to /usr/bin, a package may have its programs in either.
        found = self._debs.find(path) or self._debs.find(_MERGED.sub("/", path))
        found = found or self._debs.find(f"/usr{path}")
        if found is None:
            raise self._missing(path)
        return found

    def _missing(self, path: str) -> LabError:
        return LabError(
            f"none of the packages {', '.join(self._wanted.packages)} has {path}",
            "name the package that has it in workload.toml",
        )

    def _add(self, file: File, guest: str) -> None:
        """A file under the path that its users ask for, and what it needs itself."""
        if guest in self._files:
            return
        self._files[guest] = JobFile(file.host, guest, 0o755)
        interpreter, libraries = _needs(file.host)
        if interpreter:
            asked = interpreter
            found = self._of_dependency(file, asked, lambda: [asked], like=EVERYWHERE)
            self._add(found, asked)
        for library in libraries:
            found = self._of_dependency(
                file, library, functools.partial(self._library_paths, library), like=library
            )
            self._add(found, found.asked)

    def _library_paths(self, library: str) -> list[str]:
        ending = f"/{library}"
        return [
            path
            for path in self._debs.paths()
            if path.endswith(ending) and _LIBRARY_FOLDERS.fullmatch(path.removesuffix(ending))
        ]

    def _of_dependency(
        self, file: File, name: str, paths: Callable[[], Iterable[str]], *, like: str
    ) -> File:
        """A file that another one needs: its package has it, or one that this depends on, probably
        one whose name is `like` that.
        """
        package = file.package
        for step in [None, *_nearest(like, self._debs.dependencies(package))]:
            if step:
                self._debs.fetch([step])
            if found := next(filter(None, map(self._debs.find, paths())), None):
                return found
        raise LabError(
            f"{file.asked} of the package {package} needs {name}, which none of the packages that "
            "it depends on has"
        )


def _nearest(like: str, packages: Iterable[str]) -> list[str]:
    """The packages of libraries among these, those first whose names are most like that file's."""
    libraries = [package for package in packages if _LIBRARY in package]
    name = like.replace(".so.", "")
    return sorted(
        libraries, key=lambda package: -difflib.SequenceMatcher(None, name, package).ratio()
    )


def _needs(path: Path) -> tuple[str | None, list[str]]:
    """The interpreter and the libraries that a file needs to be loaded; nothing, if it is no ELF
    file.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return None, []
            elf = ELFFile(file)
            interpreter, libraries = None, []
            for segment in elf.iter_segments():
                if isinstance(segment, InterpSegment):
                    interpreter = str(segment.get_interp_name())
                elif isinstance(segment, DynamicSegment):
                    tags: Iterable[Any] = segment.iter_tags("DT_NEEDED")
                    libraries = [str(tag.needed) for tag in tags]
    except (OSError, ELFError) as error:
        raise LabError(
            f"{path} is damaged: {error}", "remove it, and it is fetched again"
        ) from error
    return interpreter, libraries
