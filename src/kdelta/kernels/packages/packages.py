# SPDX-License-Identifier: GPL-2.0-or-later
"""Packages that hold a kernel or its source: found by apt, fetched once, then in a cache."""

import contextlib
import difflib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from kdelta.host.command import Log
from kdelta.host.dirs import cache_dir
from kdelta.host.files import make_folder
from kdelta.host.sealed import read_record, write_record
from kdelta.kernels.packages.apt import Apt, NoReleaseError, OutdatedListsError
from kdelta.kernels.packages.snapshot import (
    SNAPSHOT_URL,
    Dated,
    dated_apt,
    dates_of,
    snapshot_base,
)
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.identity import identity
from kdelta.spec.kernel import DebSpec, DebSrcSpec
from kdelta.spec.limits import META_PACKAGE_STEPS
from kdelta.spec.versions import compare_versions

PackageSpec = DebSpec | DebSrcSpec
_NEAREST = 5
_SNAPSHOT = "snapshot"
"""The state of an answer of the snapshot archive, which never changes."""

Entry = TypeVar("Entry")


class _StoodFor(msgspec.Struct, frozen=True):
    """What a spec stood for when apt was in that state."""

    state: str
    package: str
    version: str


class _GoneError(UserError):
    """The mirrors lack that version of a package, and Debian's snapshot archive may have it; they
    have `newest`.
    """

    newest: str | None = None


class Shelf(ABC, Generic[Entry]):
    """One kind of packages of an architecture, by Debian's name, and of a release (None: this
    host's), and the cache of what was made of them.
    """

    start: str
    """How the names of such packages start."""

    def __init__(self, log: Log, architecture: str | None = None, suite: str | None = None) -> None:
        self.log = log
        self.architecture = architecture
        self.suite = suite

    @abstractmethod
    def spec(self, package: str, version: str | None) -> PackageSpec:
        """The spec of a package, without changes."""

    @abstractmethod
    def load(self, package: str, version: str) -> Entry | None:
        """What the cache has of that package, if it is undamaged."""

    @abstractmethod
    def fetch(self, package: str, version: str, download: Callable[[Path], list[Path]]) -> Entry:
        """Makes the entry; `download` puts the package, and then its parts, into folders of an
        empty folder. Another process may have made it meanwhile.
        """

    def is_part(self, package: str, dependency: str) -> bool:
        """Whether a package that this one depends on, in the same version, holds a part of it."""
        del package, dependency
        return False

    def optional_parts(self, package: str) -> tuple[str, ...]:
        """Packages that hold parts of it where there are such, in the same version."""
        del package
        return ()

    @abstractmethod
    def cached(self) -> list[tuple[str, str, float]]:
        """All that the cache has: package, version, and when it was made."""

    def obtain(self, package: str, version: str | None) -> Entry:
        """Return the entry of a package. One that only depends on the current package is followed
        to it. A version that the mirrors do not have comes from Debian's snapshot archive.

        UserError for a package or version that does not exist; LabError when it has to be
        downloaded and cannot be.
        """
        spec = self.spec(package, version)
        try:
            return self._from_mirrors(spec)
        except _GoneError as gone:
            return self._from_snapshot(spec, gone)

    def _from_mirrors(self, spec: PackageSpec) -> Entry:
        apt, found = self._look_up(spec)
        if (entry := self.load(found.package, found.version or "")) is not None:
            return entry
        try:
            return self._fetch(apt or Apt.of(self.architecture, self.suite), found)
        except OutdatedListsError:
            apt = self._update(spec)
            newer = self._resolve(apt, spec)
        if newer is None:
            raise self._gone(apt, spec)
        try:
            return self._fetch(apt, newer)
        except OutdatedListsError as error:
            raise LabError(
                f"the mirror does not have {newer}: {error}", "try again later"
            ) from error

    def check(self, package: str, version: str | None) -> None:
        """Raise UserError for a package or version that does not exist; nothing of it is downloaded
        but package lists, if there are none. LabError if the mirrors lack that version, and the
        snapshot archive cannot be asked.
        """
        spec = self.spec(package, version)
        try:
            self._look_up(spec)
        except _GoneError as gone:
            self._dates(spec, gone)

    def _dates(self, spec: PackageSpec, gone: _GoneError) -> list[Dated]:
        """When the snapshot archive saw what is gone. UserError if it never did."""
        assert spec.version
        wanted = f"{spec.package}={spec.version}"
        try:
            dates = dates_of(spec.package, spec.version, self.architecture)
        except LabError as error:
            hints = [gone.hint]
            if gone.newest:
                hints = [f"take what the mirrors have: {_renamed(spec, version=gone.newest)[1]}"]
                if compare_versions(spec.version, gone.newest) > 0:
                    hints.append("load newer package lists: sudo apt-get update")
            hints.append(f"set {SNAPSHOT_URL} to an archive that this host reaches")
            raise LabError(
                f"the mirrors do not have {wanted}, and {error.message}", "; or ".join(hints)
            ) from error
        if not dates:
            of = f" for {self.architecture}" if self.architecture else ""
            message = f"Debian never had {wanted}{of}, by its snapshot archive"
            raise UserError(message, gone.hint, gone.instead)
        self.log(f"the mirrors do not have {wanted}; Debian's snapshot archive does, {dates[0]}")
        return dates

    def _from_snapshot(self, spec: PackageSpec, gone: _GoneError) -> Entry:
        """The entry of what the mirrors do not have; all its packages are from one dated list."""
        assert spec.version
        dates = self._dates(spec, gone)
        opened = dated_apt(
            dates,
            spec.package,
            spec.version,
            self.log,
            architecture=self.architecture,
            suite=self.suite,
        )
        with contextlib.ExitStack() as stack:
            try:
                apt = stack.enter_context(opened)
                if (found := self._resolve(apt, spec)) is None:
                    raise LabError(f"the package list of {dates[0]} lacks what it depends on")
            except LabError as error:
                raise self._not_to_be_had(spec, error) from error
            entry = self.load(found.package, found.version or "") or self._fetch(apt, found)
        answer = _StoodFor(_SNAPSHOT, found.package, found.version or "")
        write_record(_answer_file(spec), answer)
        return entry

    def _look_up(self, spec: PackageSpec) -> tuple[Apt | None, PackageSpec]:
        """The package that holds what is wanted, with its version, and the apt that was asked; the
        newest in the cache, where apt has no lists. UserError if there is none.
        """
        if spec.version and self.load(spec.package, spec.version) is not None:
            return None, spec
        apt = Apt.of(self.architecture, self.suite)
        if before := self._answered(apt, spec):
            return apt, before
        if found := self._resolve(apt, spec):
            answer = _StoodFor(apt.state(), found.package, found.version or "")
            write_record(_answer_file(spec), answer)
        elif not apt.usable(self.start):
            newest = self._newest_cached(spec)
            if newest and self.load(*newest) is not None:
                self.log(f"apt lacks package lists; taking the newest in the cache, {newest[1]}")
                return apt, self.spec(*newest)
            apt = self._update(spec)
            found = self._resolve(apt, spec)
        if found is None:
            raise self._gone(apt, spec)
        return apt, found

    def _answered(self, apt: Apt, spec: PackageSpec) -> PackageSpec | None:
        """What the spec stood for when it was last looked up, unless apt might say another thing
        now.

        Each question to apt can take a second, on systems that keep no cache of their lists.
        """
        answer = read_record(_answer_file(spec), _StoodFor)
        if answer is None:
            return None
        if answer.state == _SNAPSHOT:  # then the mirrors need not have it
            if self.load(answer.package, answer.version) is None:
                return None
        elif answer.state != apt.state():
            return None
        if answer.package != spec.package:
            self.log(f"{spec.package} stands for {answer.package} {answer.version}")
        return self.spec(answer.package, answer.version)

    def _resolve(self, apt: Apt, spec: PackageSpec) -> PackageSpec | None:
        """The package that holds what is wanted, with its version; None if there is none."""
        package, version = spec.package, spec.version
        for _ in range(META_PACKAGE_STEPS):
            version = version or apt.candidate(package)
            if version is None or version not in apt.versions(package):
                return None
            onward = [
                dependency
                for dependency in apt.dependencies(package, version)
                if dependency.package.startswith(self.start) and dependency.package != package
            ]
            if not onward:
                return self.spec(package, version)
            self.log(f"{package} {version} stands for {onward[0].package}")
            package, version = onward[0].package, onward[0].version
        raise UserError(f"{spec} leads from package to package and to no kernel")

    def _gone(self, apt: Apt, spec: PackageSpec) -> UserError:
        apt.check_complete(str(spec))
        versions = apt.versions(spec.package)
        error = self._unknown(apt, spec, versions)
        if not spec.version or not snapshot_base():
            return error
        gone = _GoneError(error.message, error.hint, error.instead)
        gone.newest = versions[0] if versions else None
        return gone

    def _unknown(self, apt: Apt, spec: PackageSpec, versions: Sequence[str]) -> UserError:
        if versions:
            return UserError(
                f"{spec.package} has no version {spec.version}"
                if spec.version
                else f"{spec.package} cannot be had in any version",
                f"there is: {', '.join(versions)}",
                _renamed(spec, version=versions[0]),
            )
        names = apt.names(self.start)
        if not names and self.architecture:
            return UserError(
                f"the distribution has no {self.start}* packages for {self.architecture}",
                "name an image: image:PATH,modules=FOLDER, or a source",
            )
        near = likely_packages(spec.package, names)
        see = f"see: apt-cache search {self.start.rstrip('-')}"
        hints = (f"the nearest: {', '.join(near)}" if near else see, self._cached_text(spec))
        instead = _renamed(spec, package=near[0]) if near else None
        message = f"apt knows no package {spec.package}"
        return UserError(message, "; ".join(filter(None, hints)), instead)

    def _update(self, spec: PackageSpec) -> Apt:
        apt = Apt.of(self.architecture, self.suite, own_lists=True)
        try:
            apt.update(self.log, self.start)
        except LabError as error:
            raise self._not_to_be_had(spec, error) from error
        except NoReleaseError as error:
            if spec.version and snapshot_base():
                raise _GoneError(error.message, error.hint) from error
            raise
        return apt

    def _fetch(self, apt: Apt, found: PackageSpec) -> Entry:
        version = found.version or ""

        def download(folder: Path) -> list[Path]:
            self.log(f"downloading {found.package} {version}")
            parts = self._parts(apt, found.package, version)
            try:
                return [
                    apt.download(one, version, make_folder(folder / one), self.log)
                    for one in (found.package, *parts)
                ]
            except LabError as error:
                raise self._not_to_be_had(found, error) from error

        return self.fetch(found.package, version, download)

    def _parts(self, apt: Apt, package: str, version: str) -> list[str]:
        """The other packages that hold parts of it, all in its version."""
        needed = [
            one
            for one in apt.dependencies(package, version)
            if one.version in (None, version) and self.is_part(package, one.package)
        ]
        exact = [one.package for one in needed if one.version]
        others = [one.package for one in needed if not one.version]
        asked = (*others, *self.optional_parts(package))
        return exact + [one for one in asked if version in apt.versions(one)]

    def _not_to_be_had(self, spec: PackageSpec, error: LabError) -> LabError:
        check = error.hint or "check the network and the disk, then run this again"
        hints = check, self._cached_text(spec)
        return LabError(
            f"{spec} is not in the cache, and cannot be fetched: {error.message}",
            "; ".join(filter(None, hints)),
        )

    def _cached_text(self, spec: PackageSpec) -> str:
        """What the cache has, the versions of the same package first."""
        entries = sorted(self.cached(), key=lambda entry: entry[0] != spec.package)
        specs = (self.spec(package, version) for package, version, _ in entries[:3])
        named = [str(msgspec.structs.replace(spec, suite=None)) for spec in specs]
        return f"in the cache: {', '.join(named)}" if named else ""

    def _newest_cached(self, spec: PackageSpec) -> tuple[str, str] | None:
        """The newest of the package's entries in the cache, by when it was fetched."""
        entries = (
            entry
            for entry in self.cached()
            if entry[0] == spec.package and spec.version in (None, entry[1])
        )
        newest = max(entries, key=lambda entry: entry[2], default=None)
        return None if newest is None else newest[:2]


def likely_packages(package: str, names: Iterable[str]) -> list[str]:
    """Return the packages that were probably meant by a name that is none, the likeliest first: of
    a version those that begin with it, plain ones before others, else those that are spelt alike.
    """
    known = [name for name in names if not name.endswith(("-dbg", "-unsigned"))]
    of_it = [name for name in known if name.startswith((f"{package}.", f"{package}-"))]
    alike = difflib.get_close_matches(package, known, n=_NEAREST, cutoff=0.6)
    return list(dict.fromkeys([*sorted(of_it, key=_plainest), *alike]))[:_NEAREST]


def _plainest(name: str) -> tuple[int, list[int]]:
    """How much more than a version and an architecture a name has; then the newest first."""
    return len(re.findall(r"-[a-z]", name)), [-int(one) for one in re.findall(r"\d+", name)]


def _renamed(spec: PackageSpec, **other: str) -> tuple[str, str]:
    """The text of a spec, and of the same with another package or version."""
    plain = msgspec.structs.replace(spec, changes=())
    return str(plain), str(msgspec.structs.replace(plain, **other))


def _answer_file(spec: PackageSpec) -> Path:
    return cache_dir("apt-answers") / f"{identity(str(spec))[:32]}.json"
