# SPDX-License-Identifier: GPL-2.0-or-later
"""What a repository of rpm or pacman has: its kernel packages, the newest first.

The index and each package are verified by the hashes that the index of the repository has; that
index itself is believed, as far as its address is.
"""

import difflib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from kdelta.host.target import host_target, targets
from kdelta.kernels.packages.members import Stream, opened, unpacked
from kdelta.kernels.packages.packed import PackedError
from kdelta.kernels.packages.remote import Checksum, below, fetch, fetch_verified, local_path
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.kernel import RepositorySpec
from kdelta.spec.limits import PACKAGE_ENTRY_BYTES, REPOSITORY_INDEX_BYTES

STARTS = {"rpm": "kernel", "pkg": "linux"}
"""How the names of kernel packages start."""

_NOT_KERNELS = re.compile(
    r"-(?:headers?|devel|matched|docs?|firmware|debuginfo(?:-common)?|tools|libs|macros|source|api)\b"
)
_UNAME = "-uname-r"
"""How the names end by which packages of one kernel depend on each other, in Fedora and its kin."""

_NAME = re.compile(r"\w[\w.+-]*", re.ASCII)
"""What a package may be called; a folder gets its name."""
_MAX_DIGITS = 18
_STEP_BYTES = 1 << 20


class RepositoryPackage(msgspec.Struct, frozen=True):
    """A package of a repository: where its file is below that, and which hash it has. `provides`
    and `requires` are names with the exact version, as far as packages of one kernel depend on
    each other by them.
    """

    name: str
    version: str
    arch: str
    file: str
    checksum: Checksum
    epoch: int = 0
    provides: tuple[tuple[str, str], ...] = ()
    requires: tuple[tuple[str, str], ...] = ()


def resolve(spec: RepositorySpec, work: Path) -> tuple[RepositoryPackage, ...]:
    """Find the package that a spec names, and those that hold the rest of its kernel. `work` is an
    empty folder for what is fetched. UserError if there is no such package; LabError if the
    repository cannot be read.
    """
    try:
        known = _READERS[spec.kind](spec.repository, work)
    except PackedError as error:
        raise LabError(
            f"cannot read the repository {spec.repository}: {error}",
            "try again later, or name another mirror of it",
        ) from error
    if odd := next((one.name for one in known if not _NAME.fullmatch(one.name)), None):
        raise LabError(f"cannot use the repository {spec.repository}: it has a package {odd!r}")
    here = [one for one in known if one.arch in _arches(known)]
    named = [one for one in here if one.name == spec.package]
    if spec.version:
        named = [one for one in named if one.version == spec.version] or _no_version(spec, named)
    if not named:
        raise _unknown(spec, here)
    return tuple(_parts(named[0], here))


def _arches(known: Iterable[RepositoryPackage]) -> tuple[str, ...]:
    """The architecture whose packages are meant: this host's, if the repository has it."""
    there = {one.arch for one in known}
    host = host_target()
    first = [host] if host is not None else []
    for one in (*first, *targets().values()):
        if there & set(one.hosts):
            return one.hosts
    return ()


def _no_version(
    spec: RepositorySpec, named: Sequence[RepositoryPackage]
) -> list[RepositoryPackage]:
    if not named:
        return []
    raise UserError(
        f"{spec.package} has no version {spec.version} in {spec.repository}",
        f"there is: {', '.join(one.version for one in named)}",
    )


def _unknown(spec: RepositorySpec, here: Sequence[RepositoryPackage]) -> UserError:
    names = sorted({one.name for one in here if not _NOT_KERNELS.search(one.name)})
    near = difflib.get_close_matches(spec.package, names, n=5, cutoff=0.6) or names[:5]
    hint = f"the nearest: {', '.join(near)}" if near else "name a repository that has kernels"
    return UserError(f"{spec.repository} has no package {spec.package} for this host", hint)


def _parts(
    first: RepositoryPackage, known: Sequence[RepositoryPackage]
) -> Iterator[RepositoryPackage]:
    """The package, and all that it depends on by the release of its kernel."""
    todo, seen = [first], set[str]()
    while todo:
        one = todo.pop(0)
        if one.name in seen:
            continue
        seen.add(one.name)
        yield one
        for needed in one.requires:
            todo += [other for other in known if needed in other.provides][:1]


# --- rpm: repodata/repomd.xml names primary.xml, which has all packages


def _read_rpm(repository: str, work: Path) -> list[RepositoryPackage]:
    index = work / "repomd.xml"
    local = local_path(repository)
    if local is not None and not (local / "repodata/repomd.xml").is_file():
        raise UserError(
            f"no such file: {local}/repodata/repomd.xml",
            f"name a folder with repodata in it; to make one: createrepo_c {local}",
        )
    fetch(below(repository, "repodata/repomd.xml"), index)
    if index.stat().st_size > REPOSITORY_INDEX_BYTES:
        raise PackedError("its repomd.xml is too large")
    data = _parsed(index.read_bytes()).find("{*}data[@type='primary']")
    if data is None:
        raise PackedError("its repomd.xml names no list of packages (primary)")
    primary = work / "primary.xml"
    fetch_verified(below(repository, _location(data)), primary, _checksum(data))
    with unpacked(primary) as stream:
        found = [one for text in _package_texts(stream) for one in _rpm_package(text)]
    newest = functools.cmp_to_key(_compared)
    return sorted(found, key=newest, reverse=True)


def _package_texts(stream: Stream) -> Iterator[bytes]:
    """The elements of kernel packages in a primary.xml, of which Fedora's has 200 MB."""
    wanted = f"<name>{STARTS['rpm']}".encode()
    text = b""
    while part := stream.read(_STEP_BYTES):
        *whole, text = (text + part).split(b"</package>")
        if len(text) > PACKAGE_ENTRY_BYTES:
            raise PackedError("its list of packages has one that is too large")
        for one in whole:
            at = one.find(b"<package ")
            if at >= 0 and wanted in one:
                yield one[at:] + b"</package>"


def _rpm_package(text: bytes) -> Iterator[RepositoryPackage]:
    one = _parsed(b'<list xmlns:rpm="rpm">' + text + b"</list>")[0]
    version, name = one.find("version"), one.findtext("name") or ""
    if version is None or not name.startswith(STARTS["rpm"]):
        return
    yield RepositoryPackage(
        name=name,
        version=f"{version.get('ver')}-{version.get('rel')}",
        arch=one.findtext("arch") or "",
        file=_location(one),
        checksum=_checksum(one),
        epoch=_number(version.get("epoch") or "0"),
        provides=tuple(_by_release(one, "provides")),
        requires=tuple(_by_release(one, "requires")),
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        raise PackedError(f"its list has a package with the epoch {text[:_MAX_DIGITS]!r}")
    return int(text)


def _by_release(one: ElementTree.Element, what: str) -> Iterator[tuple[str, str]]:
    for entry in one.iterfind(f"format/{{rpm}}{what}/{{rpm}}entry"):
        name = entry.get("name") or ""
        if name.endswith(_UNAME) and entry.get("flags") == "EQ":
            yield name, f"{entry.get('ver')}-{entry.get('rel')}"


def _parsed(text: bytes) -> ElementTree.Element:
    if b"<!" in text.replace(b"<!--", b""):  # entities, which could unfold to gigabytes
        raise PackedError("its list has a declaration, which no repository has")
    try:
        return ElementTree.fromstring(text)
    # It can name an encoding that there is not (LookupError), or one of several bytes (ValueError).
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise PackedError(f"its list is damaged ({error})") from error


def _location(data: ElementTree.Element) -> str:
    found = data.find("{*}location")
    if found is None or not (place := found.get("href")):
        raise PackedError("its list lacks the place of a file")
    return place


def _checksum(data: ElementTree.Element) -> Checksum:
    found = data.find("{*}checksum")
    if found is None or not found.text:
        raise PackedError("its list lacks the hash of a file")
    return Checksum(found.get("type") or "", found.text.strip())


def _compared(one: RepositoryPackage, other: RepositoryPackage) -> int:
    if one.epoch != other.epoch:
        return one.epoch - other.epoch
    (version, _, release), (version_2, _, release_2) = (
        each.version.rpartition("-") for each in (one, other)
    )
    return compare_rpm_versions(version, version_2) or compare_rpm_versions(release, release_2)


_VERSION_PARTS = re.compile(r"\d+|[a-zA-Z]+|~|\^")


def compare_rpm_versions(one: str, other: str) -> int:
    """Compares two versions as rpm does: negative if the first is older, zero if they are equal."""
    ours, theirs = _VERSION_PARTS.findall(one), _VERSION_PARTS.findall(other)
    # After the last part comes the end; a tilde is older than that, a caret newer.
    for mine, yours in zip([*ours, ""], [*theirs, ""], strict=False):
        if mine != yours:
            return _compare_parts(mine, yours)
    return 0


def _compare_parts(mine: str, yours: str) -> int:
    def rank(part: str) -> tuple[int, int, str]:
        if part.isdigit():  # by length first: int() refuses thousands of digits
            digits = part.lstrip("0")
            return 4, len(digits), digits
        return {"~": 0, "": 1, "^": 2}.get(part, 3), 0, part

    return (rank(mine) > rank(yours)) - (rank(mine) < rank(yours))


# --- pacman: a database such as core.db, next to which the packages are


def _read_pacman(repository: str, work: Path) -> list[RepositoryPackage]:
    name = repository.rpartition("/")[2]
    if not re.search(r"\.(?:db|files)(?:\.tar(?:\.\w+)?)?$", name):
        raise UserError(
            f"cannot read the repository {repository}: it is no database of pacman",
            f"name it, for example {repository.rstrip('/')}/core.db",
        )
    database = work / "database"
    fetch(repository, database)
    found: list[RepositoryPackage] = []
    with opened(database) as members:
        for one in members:
            if one.is_file and one.name.startswith(STARTS["pkg"]) and one.name.endswith("/desc"):
                if one.bytes > REPOSITORY_INDEX_BYTES:
                    raise PackedError("it describes a package that is too large")
                found += _pacman_package(one.open().read(one.bytes))
    return found


def _pacman_package(text: bytes) -> Iterator[RepositoryPackage]:
    blocks = (part.split("\n") for part in text.decode("utf-8", "replace").split("\n\n"))
    fields = {lines[0].strip("%"): lines[1] for lines in blocks if len(lines) > 1}
    if missing := {"NAME", "VERSION", "ARCH", "FILENAME", "SHA256SUM"} - fields.keys():
        raise PackedError(f"it describes a package without {' and '.join(sorted(missing))}")
    yield RepositoryPackage(
        name=fields["NAME"],
        version=fields["VERSION"],
        arch=fields["ARCH"],
        file=fields["FILENAME"],
        checksum=Checksum("sha256", fields["SHA256SUM"]),
    )


_READERS: dict[str, Callable[[str, Path], list[RepositoryPackage]]] = {
    "rpm": _read_rpm,
    "pkg": _read_pacman,
}
