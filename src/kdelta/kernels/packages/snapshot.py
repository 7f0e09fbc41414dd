# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's snapshot archive, which has all that its mirrors ever had, by date.

It is asked on which dates it saw a package first. Nothing that it answers is believed: apt loads
the index of such a date, verifies its signature, and downloads packages by the hashes in it.
"""

import contextlib
import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import quote

import msgspec

from kdelta.host.command import Log, Result, package_hint, run_program
from kdelta.host.files import make_folder, remove
from kdelta.host.lock import work_folder
from kdelta.host.target import host_target
from kdelta.kernels.packages.apt import (
    LISTS_SECONDS,
    SOURCES,
    WITHOUT_UPDATES,
    Apt,
    OutdatedListsError,
    first_complaint,
    host_suite,
    is_debian,
    keyrings,
)
from kdelta.spec.errors import LabError, UserError

SNAPSHOT_URL = "KDELTA_SNAPSHOT_URL"
_DEFAULT = "https://snapshot.debian.org"
_ADDRESS = re.compile(r"https?://[^\s\[\]]+")
_STAMP = re.compile(r"\d{8}T\d{6}Z")
_ARCHIVES = ("debian-security", "debian")
"""Those that have releases; the first has small lists."""

_ANSWER_BYTES = 1 << 20
_STALLED_SECONDS = 30
_ANSWER_SECONDS = 60.0
_DOWNLOAD_SECONDS = 1800.0
_NOT_FOUND = 404
_SLACK = timedelta(hours=6)
"""The archive looks at the mirrors every 6 hours, and its dates may be of the begin of a look."""

_UNSIGNED = "(?:GPG error|OpenPGP signature verification failed)"
"""How apt 2.6 and apt 3.0 name a signature that they do not accept."""


class _File(msgspec.Struct, frozen=True):
    archive_name: str
    first_seen: str


class _Binary(msgspec.Struct, frozen=True):
    architecture: str
    hash: str


class _Answer(msgspec.Struct, frozen=True):
    """What the archive answers to mr/binary/NAME/VERSION/binfiles?fileinfo=1."""

    result: tuple[_Binary, ...]
    fileinfo: dict[str, tuple[_File, ...]]


class Dated(msgspec.Struct, frozen=True):
    """One of the archive's archives at the date (YYYYMMDDTHHMMSSZ, UTC) that a package came."""

    archive: str
    stamp: str

    def __str__(self) -> str:
        return f"{self.archive} of {self.stamp}"

    @property
    def path(self) -> str:
        """Return where the archive has its files."""
        return f"archive/{self.archive}/{self.stamp}"

    @property
    def when(self) -> datetime:
        """Return that date."""
        return datetime.strptime(self.stamp, "%Y%m%dT%H%M%S%z")


def snapshot_base() -> str:
    """Return the address of the archive; empty where it is not asked: on hosts that are not Debian,
    and where KDELTA_SNAPSHOT_URL is empty. UserError if that is no address.
    """
    named = os.environ.get(SNAPSHOT_URL, _DEFAULT).rstrip("/")
    if named and not _ADDRESS.fullmatch(named):
        raise UserError(
            f"cannot use {SNAPSHOT_URL}={named}: not an address of http or https",
            f"set it to the address of a snapshot archive, or to nothing: {SNAPSHOT_URL}=",
        )
    return named if is_debian() else ""


def dates_of(package: str, version: str, architecture: str | None) -> list[Dated]:
    """Return when the archive saw that package first, for an architecture (None: this host's);
    nothing if it never did. LabError if it cannot be asked.
    """
    at = f"mr/binary/{quote(package)}/{quote(version, safe='')}/binfiles?fileinfo=1"
    if (content := _asked(at)) is None:
        return []
    try:
        answer = msgspec.json.decode(content, type=_Answer)
    except msgspec.DecodeError as error:
        raise _not_asked(f"its answer is not that of a snapshot archive ({error})") from error
    host = host_target()
    wanted = (architecture or (host.dpkg if host else ""), "all")
    found = {
        Dated(file.archive_name, file.first_seen)
        for one in answer.result
        if one.architecture in wanted
        for file in answer.fileinfo.get(one.hash, ())
        # They become parts of addresses and of apt's sources.
        if file.archive_name in _ARCHIVES and _is_stamp(file.first_seen)
    }
    return sorted(found, key=lambda one: (_ARCHIVES.index(one.archive), one.stamp))


def _is_stamp(text: str) -> bool:
    try:
        return bool(_STAMP.fullmatch(text) and Dated("", text).when)
    except ValueError:
        return False


def _asked(path: str, method: str = "GET") -> bytes | None:
    """What the archive answers; None if it has nothing there."""
    content, deadline = b"", time.monotonic() + _ANSWER_SECONDS
    try:
        request = urllib.request.Request(f"{snapshot_base()}/{path}", method=method)
        with urllib.request.urlopen(request, timeout=_STALLED_SECONDS) as source:
            while part := source.read1():
                content += part
                if len(content) > _ANSWER_BYTES:
                    raise ValueError(f"its answer has more than {_ANSWER_BYTES >> 20} MiB")
                if time.monotonic() > deadline:
                    raise ValueError(f"no whole answer within {_ANSWER_SECONDS:g} seconds")
    except urllib.error.HTTPError as error:
        with error:  # it is the answer, too
            if error.code == _NOT_FOUND:
                return None
        raise _not_asked(f"{error.code} {error.reason}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _not_asked(str(getattr(error, "reason", error))) from error
    return content


def _not_asked(why: str) -> LabError:
    first = why.partition("\n")[0]
    return LabError(
        f"Debian's snapshot archive ({snapshot_base()}) cannot be asked: {first}",
        f"try again later, or set {SNAPSHOT_URL} to another archive",
    )


@contextlib.contextmanager
def dated_apt(
    dates: list[Dated],
    package: str,
    version: str,
    log: Log,
    *,
    architecture: str | None,
    suite: str | None,
) -> Iterator[Apt]:
    """Gives apt with the lists of the first dated suite that has the package. They go when the body
    ends. UserError if there was no such release (None: any), LabError if no suite has it, or if an
    index cannot be loaded or believed.
    """
    tried: list[str] = []
    with work_folder() as folder:
        for date, name in [(one, name) for one in dates for name in _suites(one.archive, suite)]:
            if _asked(f"{date.path}/dists/{name}/InRelease", "HEAD") is None:
                continue
            log(f"loading the package list of {name} in {date} (apt-get update)")
            apt = _DatedApt(folder / "apt", architecture, date, name)
            apt.load(log)
            if version in apt.versions(package):
                apt.check_date()
                yield apt
                return
            remove(folder / "apt")
            tried.append(f"{name} in {date}")
    wanted = f"{package}={version}"
    if suite and not any(one.startswith(suite) for one in tried):
        raise UserError(
            f"Debian had {wanted} in no release {suite} when it came ({dates[0]})",
            "name the release that it is of, as deb:NAME=VERSION@SUITE, or none",
        )
    raise LabError(
        f"no package list of the snapshot archive names it: {', '.join(tried) or 'there is none'}",
        "name the release that it is of, as deb:NAME=VERSION@SUITE",
    )


def _suites(archive: str, suite: str | None) -> list[str]:
    """The suites that can have a package which came to that archive, those with small lists first.
    stable and oldstable are what was so then.
    """
    names = (
        (suite,)
        if suite
        else tuple(dict.fromkeys((host_suite() or "stable", "stable", "oldstable")))
    )
    with_updates = [name for name in names if name not in WITHOUT_UPDATES]
    if archive == "debian-security":
        return [f"{name}-security" for name in with_updates]
    kinds = ("proposed-updates", "updates", "backports")
    small = [f"{name}-{kind}" for name in with_updates for kind in kinds]
    # A release's first kernels came to sid, and a bare version is seldom of an older release.
    large = [suite, "sid", "experimental"] if suite else ["sid", *names, "experimental"]
    return list(dict.fromkeys([*small, *large]))


class _DatedApt(Apt):
    """apt with the list of one suite as it was, which has expired by now."""

    def __init__(self, own: Path, architecture: str | None, date: Dated, suite: str) -> None:
        super().__init__(own, architecture, suite)
        self._folder = own
        self._date = date
        self._name = suite
        settings = (
            "Acquire::Retries=1",
            f"Acquire::http::Timeout={_STALLED_SECONDS}",
            f"Acquire::https::Timeout={_STALLED_SECONDS}",
            # Whatever the host's settings allow for its own sources.
            "Acquire::AllowInsecureRepositories=false",
            "Acquire::AllowWeakRepositories=false",
            "Acquire::AllowDowngradeToInsecureRepositories=false",
            "APT::Get::AllowUnauthenticated=false",
        )
        self._options += [word for one in settings for word in ("-o", one)]

    def load(self, log: Log) -> None:
        """Loads the list. LabError if that fails, or if its signature is wrong."""
        for folder in ("lists/partial", "cache/archives/partial"):
            make_folder(self._folder / folder)
        if not (keys := keyrings()):
            raise LabError(
                "cannot verify a list of the snapshot archive: this host lacks Debian's keys",
                package_hint("debian-archive-keyring"),
            )
        files = ",".join(map(str, [*keys, *keyrings("removed-keys")]))
        options = f"signed-by={files} check-valid-until=no target=Packages"
        source = f"deb [{options}] {snapshot_base()}/{self._date.path}/ {self._name} main\n"
        (self._folder / SOURCES).write_text(source)
        result = self._get("update", log=log, seconds=LISTS_SECONDS)
        if not result.ok or "Failed to fetch" in result.stderr:
            raise self._refused(_why_unsigned(result) or first_complaint(result))

    def check_date(self) -> None:
        """LabError unless the index is of that date by what it says itself, which is signed."""
        try:
            fields = _fields(self._index())
            made = fields["Date"]
        except (KeyError, ValueError) as error:
            raise self._refused("its index has no valid date") from error
        if made - _SLACK > self._date.when:
            raise self._refused(f"its index is newer, of {made:%Y-%m-%d %H:%M}")
        if (last := fields.get("Valid-Until")) is not None and last < self._date.when:
            raise self._refused(f"its index had expired then, on {last:%Y-%m-%d %H:%M}")

    def _index(self) -> str:
        """The text of the index that apt has verified."""
        files = [
            path
            for path in (self._folder / "lists").iterdir()
            if path.name.endswith(("_InRelease", "_Release"))
        ]
        if len(files) != 1:
            raise self._refused("apt kept no index")
        return files[0].read_text("utf-8", "replace")

    def _refused(self, why: str) -> LabError:
        return LabError(
            f"cannot use the package list of {self._name} in {self._date}: {why}",
            f"try again later, or set {SNAPSHOT_URL} to another archive",
        )

    def _get(
        self, *words: str, log: Log, cwd: Path | None = None, seconds: float | None = None
    ) -> Result:
        """Runs apt-get, once: what does not match its index there never will."""
        del log
        argv = ["apt-get", *self._options, *words]
        return run_program(argv, cwd=cwd, seconds=seconds or _DOWNLOAD_SECONDS)

    def download(self, package: str, version: str, folder: Path, log: Log) -> Path:
        """Downloads a package as Apt does; LabError if the archive has lost it."""
        try:
            return super().download(package, version, folder, log)
        except OutdatedListsError as error:
            raise LabError(f"the snapshot archive lacks the file of {package}: {error}") from error


def _why_unsigned(result: Result) -> str:
    """What apt says of a signature that it does not accept; empty if it says nothing of any."""
    found = re.search(rf"^W: {_UNSIGNED}: \S+ \S+ \S+: (.*)$", result.stderr, re.MULTILINE)
    return found[1] if found else ""


def _fields(index: str) -> dict[str, datetime]:
    """The dates that an index has; ValueError if one is none. In a signed text (RFC 4880, 7) lines
    above it are not signed.
    """
    text = index
    if index.startswith("-----BEGIN PGP SIGNED MESSAGE-----"):
        text = index.partition("\n\n")[2].partition("\n-----BEGIN PGP SIGNATURE-----")[0]
    pairs = re.findall(r"^(Date|Valid-Until): (.*)$", text, re.MULTILINE)
    dates = {name: parsedate_to_datetime(value) for name, value in pairs}
    return {name: one if one.tzinfo else one.replace(tzinfo=UTC) for name, one in dates.items()}
