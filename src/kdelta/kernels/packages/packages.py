# SPDX-License-Identifier: GPL-2.0-or-later
"""Packages that hold a kernel or its source: found by apt, fetched once, then in a cache."""

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from kdelta.host.command import Talk
from kdelta.host.dirs import cache_dir
from kdelta.host.files import read_json, write_atomic
from kdelta.kernels.packages.apt import Apt, OutdatedListsError
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.identity import identity
from kdelta.spec.kernel import DebSpec, DebSrcSpec

PackageSpec = DebSpec | DebSrcSpec
Entry = TypeVar("Entry")

MAX_META_STEPS = 5
_NOT_OFFERED = ("-dbg", "-unsigned")


class _Answer(msgspec.Struct, frozen=True):
    """What a spec stood for when apt was in that state."""

    state: str
    package: str
    version: str


class Shelf(ABC, Generic[Entry]):
    """One kind of packages of an architecture, by Debian's name (None: this host's), and the cache
    of what was made of them.
    """

    start: str
    """How the names of such packages start."""

    def __init__(self, talk: Talk, architecture: str | None = None) -> None:
        self.talk = talk
        self.architecture = architecture

    @abstractmethod
    def spec(self, package: str, version: str | None) -> PackageSpec:
        """The spec of a package, without changes."""

    @abstractmethod
    def load(self, package: str, version: str) -> Entry | None:
        """What the cache has of that package, if it is undamaged."""

    @abstractmethod
    def fetch(self, package: str, version: str, download: Callable[[Path], Path]) -> Entry:
        """Makes the entry; `download` puts the package into an empty folder. Another process may
        have made it meanwhile.
        """

    @abstractmethod
    def cached(self) -> list[tuple[str, str, float]]:
        """All that the cache has: package, version, and when it was made."""

    def obtain(self, package: str, version: str | None) -> Entry:
        """The entry of a package. One that only depends on the current package is followed to it.

        UserError for a package or version that does not exist; LabError when it has to be
        downloaded and cannot be.
        """
        spec = self.spec(package, version)
        if version is not None and (entry := self.load(package, version)) is not None:
            return entry
        apt = Apt.of(self.architecture) if self.architecture else Apt.best()
        if (entry := self._resolved_before(apt, spec)) is not None:
            return entry
        found = self._resolve(apt, spec)
        if found:
            self._remember(apt, spec, found)
        if found is None and not apt.usable(self.start):
            if newest := self._newest_cached(spec):
                self.talk(f"apt lacks package lists; taking the newest in the cache, {newest[1]}")
                if (entry := self.load(*newest)) is not None:
                    return entry
            apt = self._update(spec)
            found = self._resolve(apt, spec)
        if found is None:
            raise self._unknown(apt, spec)
        if (entry := self.load(found.package, found.version or "")) is not None:
            return entry
        try:
            return self._fetch(apt, found)
        except OutdatedListsError:
            apt = self._update(spec)
            newer = self._resolve(apt, spec)
        if newer is None:
            raise self._unknown(apt, spec)
        try:
            return self._fetch(apt, newer)
        except OutdatedListsError as error:
            raise LabError(
                f"the mirror does not have {newer}: {error}", "try again later"
            ) from error

    def _resolved_before(self, apt: Apt, spec: PackageSpec) -> Entry | None:
        """What the cache has of what the spec stands for, unless apt might say another thing now.

        Each question to apt can take a second, on systems that keep no cache of their lists.
        """
        answer = read_json(_answer_file(spec), _Answer)
        if answer is None or answer.state != apt.state():
            return None
        entry = self.load(answer.package, answer.version)
        if entry is not None and answer.package != spec.package:
            self.talk(f"{spec.package} stands for {answer.package} {answer.version}")
        return entry

    def _remember(self, apt: Apt, spec: PackageSpec, found: PackageSpec) -> None:
        answer = _Answer(apt.state(), found.package, found.version or "")
        write_atomic(_answer_file(spec), msgspec.json.encode(answer))

    def _resolve(self, apt: Apt, spec: PackageSpec) -> PackageSpec | None:
        """The package that holds what is wanted, with its version; None if there is none."""
        package, version = spec.package, spec.version
        for _ in range(MAX_META_STEPS):
            if version is None:
                version = apt.candidate(package)
            if version is None or version not in apt.versions(package):
                return None
            onward = [
                dependency
                for dependency in apt.dependencies(package, version)
                if dependency.package.startswith(self.start) and dependency.package != package
            ]
            if not onward:
                return self.spec(package, version)
            self.talk(f"{package} {version} stands for {onward[0].package}")
            package, version = onward[0].package, onward[0].version
        raise UserError(f"{spec} leads from package to package and to no kernel")

    def _unknown(self, apt: Apt, spec: PackageSpec) -> UserError:
        apt.check_complete(str(spec))
        if versions := apt.versions(spec.package):
            return UserError(
                f"{spec.package} has no version {spec.version}"
                if spec.version
                else f"{spec.package} cannot be had in any version",
                f"there is: {', '.join(versions)}",
            )
        names = [name for name in apt.names(self.start) if not name.endswith(_NOT_OFFERED)]
        if not names and self.architecture:
            return UserError(
                f"the distribution has no {self.start}* packages for {self.architecture}",
                "name an image: image:PATH,modules=FOLDER, or a source",
            )
        near = difflib.get_close_matches(spec.package, names, n=5, cutoff=0.6)
        see = f"see: apt-cache search {self.start.rstrip('-')}"
        cached = self._cached_text(spec)
        return UserError(
            f"apt knows no package {spec.package}",
            (f"the nearest: {', '.join(near)}" if near else see)
            + (f"; {cached}" if cached else ""),
        )

    def _update(self, spec: PackageSpec) -> Apt:
        of = self.architecture
        apt = Apt.of(of, own_lists=True) if of else Apt.with_own_lists()
        try:
            apt.update(self.talk, self.start)
        except LabError as error:
            raise self._not_to_be_had(spec, error) from error
        return apt

    def _fetch(self, apt: Apt, found: PackageSpec) -> Entry:
        version = found.version or ""

        def download(folder: Path) -> Path:
            self.talk(f"downloading {found.package} {version}")
            try:
                return apt.download(found.package, version, folder, self.talk)
            except LabError as error:
                raise self._not_to_be_had(found, error) from error

        return self.fetch(found.package, version, download)

    def _not_to_be_had(self, spec: PackageSpec, error: LabError) -> LabError:
        cached = self._cached_text(spec)
        return LabError(
            f"{spec} is not in the cache, and cannot be fetched: {error.message}",
            "check the network and the disk, then run this again"
            + (f"; {cached}" if cached else ""),
        )

    def _cached_text(self, spec: PackageSpec) -> str:
        """What the cache has, the versions of the same package first."""
        entries = sorted(self.cached(), key=lambda entry: entry[0] != spec.package)
        named = [str(self.spec(package, version)) for package, version, _ in entries[:3]]
        return f"in the cache: {', '.join(named)}" if named else ""

    def _newest_cached(self, spec: PackageSpec) -> tuple[str, str] | None:
        """The newest of the package's entries in the cache, by when it was fetched."""
        entries = [
            entry
            for entry in self.cached()
            if entry[0] == spec.package and spec.version in (None, entry[1])
        ]
        newest = max(entries, key=lambda entry: entry[2], default=None)
        return None if newest is None else newest[:2]


def _answer_file(spec: PackageSpec) -> Path:
    return cache_dir("apt-answers") / f"{identity(str(spec))[:32]}.json"
