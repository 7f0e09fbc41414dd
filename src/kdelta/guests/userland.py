# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs for a guest out of a distribution's packages, whatever the guest's architecture: the
pin's, or those of the host's release.

Of the packages that are named, and of those that they need, only what the wanted programs load is
taken: their interpreter and shared libraries. So what this host has installed plays no part.
"""

import difflib
import fnmatch
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from kdelta.guests.debs import EVERYWHERE, Deb, Debs, File, Packages
from kdelta.guests.job import JobFile
from kdelta.guests.libraries import asked_interpreter
from kdelta.host.command import Log
from kdelta.host.dirs import cache_dir
from kdelta.host.pin import Pin, obtain_part
from kdelta.host.sealed import read_record, write_record
from kdelta.spec.errors import LabError
from kdelta.spec.identity import identity
from kdelta.workloads.catalog import UserlandWanted

_MAGIC = b"\x7fELF"
_LIBRARY = "lib"
"""What the names of packages have in them that hold shared libraries: most begin with it (Debian
policy 8.1), zlib1g does not.
"""

_LIBRARY_FOLDERS = re.compile(r"/(usr/)?lib(64)?(/[^/]+-linux-gnu[^/]*)?")
"""Where a loader looks without being told."""


class Userland(msgspec.Struct, frozen=True):
    """Files of a guest, each executable, and of which packages (NAME=VERSION) they are."""

    files: tuple[JobFile, ...]
    packages: tuple[str, ...]


class _KeptDebs(msgspec.Struct, frozen=True):
    """The packages that were taken when apt was in that state."""

    state: str
    debs: tuple[Deb, ...]


def pinned_userland(wanted: UserlandWanted, pin: Pin, part: str, log: Log) -> Userland:
    """The files of `wanted` out of that part of a pin, which is fetched unless the cache has it."""
    packages = Packages([f"{one.package}={one.version}" for one in pin.of(part)])
    packages.add(f"of {part}", obtain_part(pin, part, log))
    return assembled(packages, wanted)


def userland(wanted: UserlandWanted, arch: str, log: Callable[[str], None]) -> Userland:
    """The files of `wanted` for guests of that architecture, out of packages of the host's release,
    from the cache where it has them.

    UserError for a package that the distribution does not have for that architecture, LabError if
    packages cannot be fetched or do not have what is wanted.
    """
    debs = Debs(arch, log)
    key = identity({"arch": arch, "wanted": msgspec.to_builtins(wanted)})
    path = cache_dir("userland-answers") / f"{key[:32]}.json"
    before = read_record(path, _KeptDebs)
    if before and before.state == debs.state() and debs.take(before.debs):
        return assembled(debs, wanted)
    try:
        found = assembled(debs, wanted)
    except LabError as error:
        # What was fetched before serves as long as the mirror cannot be reached.
        kept = Debs(arch, log)
        if before is None or not kept.take(before.debs):
            raise
        log(f"taking the packages in the cache: {error.message}")
        return assembled(kept, wanted)
    write_record(path, _KeptDebs(debs.state(), debs.taken))
    return found


def assembled(packages: Packages, wanted: UserlandWanted) -> Userland:
    """The files of `wanted` out of these packages. LabError if they do not have one."""
    return _Assembly(packages, wanted).assemble()


class _Assembly:
    """Follows programs to what they load, taking more packages only where something is missing."""

    def __init__(self, debs: Packages, wanted: UserlandWanted) -> None:
        self._debs = debs
        self._wanted = wanted
        self._files: dict[str, JobFile] = {}

    def assemble(self) -> Userland:
        self._debs.fetch(self._wanted.packages)
        self._fetch_dependencies(self._wanted.packages)
        for program in self._wanted.programs:
            self._add(self._found(program), program)
        for glob in self._wanted.files:
            if not (paths := fnmatch.filter(self._debs.paths(), glob)):
                raise self._missing(glob)
            for path in paths:
                self._add(self._found(path), path)
        files = tuple(self._files[path] for path in sorted(self._files))
        return Userland(files, tuple(self._debs.names))

    def _fetch_dependencies(self, packages: Iterable[str]) -> None:
        """Of packages, those that they depend on and that are to be looked in, and so on."""
        known = {name.partition("=")[0] for name in self._debs.names}
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
        if (found := self._debs.find(path)) is None:
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
            found = self._of_dependency(file, interpreter, lambda name: [name], like=EVERYWHERE)
            self._add(found, interpreter)
        for library in libraries:
            found = self._of_dependency(file, library, self._library_paths, like=library)
            self._add(found, found.asked)

    def _library_paths(self, library: str) -> list[str]:
        ending = f"/{library}"
        return [
            path
            for path in self._debs.paths()
            if path.endswith(ending) and _LIBRARY_FOLDERS.fullmatch(path.removesuffix(ending))
        ]

    def _of_dependency(
        self, file: File, name: str, paths: Callable[[str], Iterable[str]], *, like: str
    ) -> File:
        """A file that another one needs: its package has it, or one that this depends on, probably
        one whose name is `like` that.
        """
        package = file.package
        for step in [None, *_nearest(like, self._debs.dependencies(package))]:
            if step:
                self._debs.fetch([step])
            if found := next(filter(None, map(self._debs.find, paths(name))), None):
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


def _needs(path: Path) -> tuple[str, list[str]]:
    """The interpreter and the libraries that a file needs to be loaded; nothing, if it is no ELF
    file.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return "", []
            elf = ELFFile(file)
            dynamic = (one for one in elf.iter_segments() if isinstance(one, DynamicSegment))
            tags: list[Any] = [tag for one in dynamic for tag in one.iter_tags("DT_NEEDED")]
            return asked_interpreter(elf), [str(tag.needed) for tag in tags]
    except (OSError, ELFError) as error:
        raise LabError(
            f"{path} is damaged: {error}", "remove it, and it is fetched again"
        ) from error
