# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian packages of one architecture, unpacked without root into the cache, seen as one tree."""

import functools
import posixpath
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from kdelta.host.command import run_program
from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors, remove, sha256_file, write_json
from kdelta.host.lock import locked
from kdelta.host.manifest import published_folder, whole_record
from kdelta.host.target import target
from kdelta.kernels.packages.apt import Apt, Offer, OutdatedListsError
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.limits import LINKS

_RECORD = "package.json"
_ROOT = "root"
_UNNEEDED = (
    *(f"usr/share/{name}" for name in ("doc", "info", "lintian", "locale", "man")),
    "usr/include",
    "var",
    "etc",
)
"""Documentation, translations and settings of a system: nothing that a program loads. (Packages
that were unpacked by older versions of this module have nothing of usr/share.)
"""

EVERYWHERE = "libc6"
"""The C library, which each architecture has for which there are packages at all."""


class Deb(msgspec.Struct, frozen=True):
    """A package that was taken: its version, the hash of its file, what it depends on."""

    package: str
    version: str
    sha256: str
    dependencies: tuple[str, ...]


class File(msgspec.Struct, frozen=True):
    """A regular file of a package: by which path it was asked for, and where it lies here."""

    asked: str
    package: str
    host: Path


class Packages:
    """Packages of which all are unpacked; `names` (NAME=VERSION) are those that were asked for."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names: Sequence[str] = names
        self._paths: dict[str, tuple[str, Path]] = {}

    def fetch(self, packages: Iterable[str]) -> None:
        """Takes packages by their names, which here were taken before."""

    def dependencies(self, package: str) -> tuple[str, ...]:
        """The packages that one depends on, as far as they may have to be fetched: here none."""
        del package
        return ()

    def add(self, package: str, root: Path) -> None:
        """Adds the files of a package, or of several that were unpacked together."""
        with lab_errors("reading", root):
            for path in sorted(root.rglob("*")):
                if not stat.S_ISDIR(path.lstat().st_mode):
                    place = f"/{path.relative_to(root).as_posix()}"
                    self._paths.setdefault(place, (package, path))

    def paths(self) -> list[str]:
        """The paths of all files and links of the packages."""
        return sorted(self._paths)

    def find(self, path: str) -> File | None:
        """Return the regular file that a path leads to, through links; None if there is none."""
        at = path
        for _ in range(LINKS):
            # Where /bin is a link to /usr/bin, a package may have its programs in either.
            found = next((one for one in _places(at) if one in self._paths), None)
            if found is None:
                return None
            package, host = self._paths[found]
            self.passed(package)
            if not host.is_symlink():
                return File(path, package, host)
            with lab_errors("reading", host):
                link = str(host.readlink())
            at = posixpath.normpath(posixpath.join(posixpath.dirname(found), link))
        return None

    def passed(self, package: str) -> None:
        """Called for each package of which a link or a file is used."""


def _places(path: str) -> tuple[str, ...]:
    return path, path.removeprefix("/usr"), f"/usr{path}"


class Debs(Packages):
    """Packages of the host's release; `taken` are those that were asked for so far."""

    def __init__(self, arch: str, log: Callable[[str], None]) -> None:
        super().__init__()
        self._arch = arch
        self._log = log
        self._dpkg = target(arch).dpkg
        self._taken: dict[str, Deb] = {}

    @property
    def taken(self) -> tuple[Deb, ...]:
        """The packages in the order in which they were taken."""
        return tuple(self._taken.values())

    def state(self) -> str:
        """Changes whenever apt could offer another version."""
        return self._apt.state()

    def take(self, debs: Sequence[Deb]) -> bool:
        """Takes packages that the cache has; False, and none of them, if it lacks one."""
        if not all(self._kept(deb) for deb in debs):
            return False
        for deb in debs:
            self._take(deb)
        return True

    def fetch(self, packages: Iterable[str]) -> None:
        """Takes the current versions of packages, which are downloaded unless the cache has them.

        UserError for one that there is not for this architecture; LabError if it cannot be had.
        """
        names = [name for name in dict.fromkeys(packages) if name not in self._taken]
        try:
            self._take_all(names)
        except OutdatedListsError:
            self._update()
            try:
                self._take_all(names)
            except OutdatedListsError as error:
                raise LabError(f"the mirror lacks a package: {error}", "try again later") from error

    def dependencies(self, package: str) -> tuple[str, ...]:
        return self._taken[package].dependencies

    @functools.cached_property
    def _apt(self) -> Apt:
        return Apt.of(self._dpkg)

    def _offers(self, names: Sequence[str]) -> dict[str, Offer]:
        offers = self._apt.offers(names)
        if len(offers) < len(names) and not self._apt.usable(EVERYWHERE):
            self._update()
            offers = self._apt.offers(names)
        missing = [name for name in names if name not in offers]
        if not missing:
            return offers
        self._apt.check_complete(", ".join(missing))
        if not self._apt.names(EVERYWHERE):
            raise UserError(
                f"the distribution of this host has no packages for {self._dpkg}",
                "the workload needs programs of it; use another architecture, or another workload",
            )
        raise UserError(
            f"there is no package {', '.join(missing)} for {self._dpkg}",
            "see: apt-cache search, and the `packages` of the workload",
        )

    def _update(self) -> None:
        apt = Apt.of(self._dpkg, own_lists=True)
        apt.update(self._log, EVERYWHERE)
        self._apt = apt

    def _take_all(self, names: Sequence[str]) -> None:
        offers = self._offers(names) if names else {}
        for offer in map(offers.__getitem__, names):
            needed = tuple(dict.fromkeys(one.package for one in offer.dependencies))
            deb = Deb(offer.package, offer.version, offer.sha256, needed)
            if not self._kept(deb):
                self._download(deb)
            self._take(deb)

    def _folder(self, deb: Deb) -> Path:
        version = deb.version.replace(":", "%3a")
        return cache_dir("userland") / f"{deb.package}_{version}_{self._dpkg}"

    def _kept(self, deb: Deb) -> bool:
        kept = whole_record(self._folder(deb), _RECORD, Deb, lambda _: True)
        return kept is not None and kept.sha256 == deb.sha256

    def _download(self, deb: Deb) -> None:
        folder = self._folder(deb)
        with locked(folder.name, f"fetching {folder.name}", self._log):
            if self._kept(deb):
                return
            self._log(f"downloading {deb.package} {deb.version} for {self._dpkg}")
            with published_folder(folder, self._log) as partial:
                archive = self._apt.download(deb.package, deb.version, partial, self._log)
                found = sha256_file(archive)
                if found != deb.sha256:
                    raise LabError(
                        f"{archive.name} is not what the package lists say: its SHA-256 is {found}",
                        "the mirror or the network damages files; try again",
                    )
                unpack_deb(archive, partial / _ROOT)
                remove(archive)
                write_json(partial / _RECORD, deb)

    def _take(self, deb: Deb) -> None:
        self.add(deb.package, self._folder(deb) / _ROOT)
        self._taken[deb.package] = deb
        self.names = [f"{one.package}={one.version}" for one in self.taken]


def unpack_deb(archive: Path, folder: Path) -> None:
    """Unpacks a .deb, without what no program loads; LabError when it is damaged."""
    run_program(["dpkg-deb", "-x", archive, folder]).or_raise(
        f"the package {archive.name} is damaged"
    )
    for name in _UNNEEDED:
        remove(folder / name)
