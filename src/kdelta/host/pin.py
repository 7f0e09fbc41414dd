# SPDX-License-Identifier: GPL-2.0-or-later
"""The pin: a QEMU, compilers of guests' programs and what workloads start, as packages of Debian by
SHA-256.

They are fetched and unpacked in the cache, without root, each part when it is first needed. The
table has no addresses. Files come from KDELTA_PIN_URL if that is set, else from the mirrors of
Debian that apt is configured with.
"""

import functools
import http.client
import io
import json
import os
import re
import shutil
import tarfile
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Annotated
from urllib.parse import quote

import msgspec

from kdelta.host.command import Log, run_program
from kdelta.host.dirs import cache_dir
from kdelta.host.files import (
    PARTIAL,
    atomic_file,
    lab_errors,
    make_folder,
    partial_folder,
    sha256_file,
    user_errors,
)
from kdelta.host.lock import fill_once, locked
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.identity import identity, short_id

PIN_URL = "KDELTA_PIN_URL"
"""The variable with where the files are: an address below which there is pool/, or an archive of
`pack` or a folder with the files, by path.
"""

TABLE = Path(__file__).with_name("pin.toml")
_DEBS, _TREE = "debs", "tree"


def qemu_part(arch: str) -> str:
    """The part of a pin that emulates that architecture."""
    return f"qemu-{arch}"


def gcc_part(arch: str) -> str:
    """The part of a pin that compiles programs for guests of that architecture."""
    return f"gcc-{arch}"


def binutils_part(arch: str) -> str:
    """Return the part of a pin that has the binutils of that architecture, and no compiler."""
    return f"binutils-{arch}"


def userland_part(workload: str, arch: str) -> str:
    """The part of a pin with what that workload starts in guests of that architecture."""
    return f"{workload}-{arch}"


def source_part(workload: str) -> str:
    """The part of a pin with the kernel's source that guests of that workload compile."""
    return f"{workload}-source"


_TOOLS = ("qemu-", "gcc-")
"""How the names of parts begin that are QEMU and compilers."""


_APT_HELPER = "/usr/lib/apt/apt-helper"
_SECONDS = 900.0
_STALLED_SECONDS = 60.0
_MERGED = ("lib", "lib64")
_UNNEEDED = re.compile(r"(\./)?(etc|var|usr/(share/(doc|info|lintian|locale|man)))/")
ELSEWHERE = (
    "where it is fetched already, `kdelta pin pack --output FILE` writes it as one file: use that"
    f" by --qemu FILE, or set {PIN_URL} to it"
)

_Digits = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Word = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9.+:~_-]+$")]
_PoolPath = Annotated[str, msgspec.Meta(pattern=r"^pool(/[A-Za-z0-9+_~-][A-Za-z0-9.+_~-]*)+\.deb$")]
_Bytes = Annotated[int, msgspec.Meta(ge=1)]


class Package(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A package: its file below a mirror's address, what that holds, and which parts need it."""

    file: _PoolPath
    version: _Word
    sha256: _Digits
    bytes: _Bytes
    parts: tuple[_Word, ...]

    @property
    def name(self) -> str:
        """The file's name without its folders."""
        return self.file.rpartition("/")[2]

    @property
    def package(self) -> str:
        """The package's name."""
        return self.name.partition("_")[0]


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A QEMU and compilers with all that they need.

    qemu      QEMU's version
    gcc       the compilers' version
    release   the release of Debian that they are of
    host      the hosts that it runs on, as `uname -m` calls them
    packages  its packages
    """

    qemu: _Word
    gcc: _Word
    release: _Word
    host: _Word
    packages: tuple[Package, ...]

    @property
    def digest(self) -> str:
        """What it is known by: a hash of what the table says of QEMU and the compilers. What
        workloads start is known by its content, which is part of a run's key.
        """
        return _digest(self)

    @property
    def title(self) -> str:
        """What keys and reports call it."""
        return f"{self.qemu}, pin {self.digest}"

    @property
    def compiler_title(self) -> str:
        """What keys and reports call its compilers."""
        return f"gcc {self.gcc}, pin {self.digest}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of its parts, each of which is fetched when it is needed."""
        return tuple(sorted({part for one in self.packages for part in one.parts}))

    def of(self, *parts: str) -> tuple[Package, ...]:
        """The packages of these parts, or of all."""
        wanted = set(parts or self.parts)
        return tuple(one for one in self.packages if wanted.intersection(one.parts))

    @property
    def folder(self) -> Path:
        """Where it lies in the cache, or will."""
        return cache_dir("qemu") / self.digest

    def folder_of(self, part: str) -> Path:
        """Where a part of it lies in the cache, or will. Pins of one digest may differ in those of
        workloads.
        """
        if _is_tool(part):
            return self.folder / part
        return self.folder / f"{part}-{short_id(identity([one.sha256 for one in self.of(part)]))}"

    @property
    def here(self) -> tuple[str, ...]:
        """The parts that were fetched and unpacked."""
        return tuple(part for part in self.parts if (self.folder_of(part) / _TREE).is_dir())

    def text(self) -> str:
        """The table, as `read_pin` takes it."""
        fields = "".join(
            f'{name} = "{getattr(self, name)}"\n' for name in ("qemu", "gcc", "release", "host")
        )
        rows = (
            f'[[packages]]\nfile = "{one.file}"\nversion = "{one.version}"\n'
            f'sha256 = "{one.sha256}"\nbytes = {one.bytes}\n'
            f"parts = {json.dumps(one.parts)}\n"
            for one in self.packages
        )
        return "\n".join([fields, *rows])


@functools.cache
def _digest(pin: Pin) -> str:
    tools = (
        msgspec.structs.replace(one, parts=tuple(filter(_is_tool, one.parts)))
        for one in pin.packages
    )
    kept = tuple(one for one in tools if one.parts)
    return short_id(identity(msgspec.structs.replace(pin, packages=kept)))


def _is_tool(part: str) -> bool:
    return part.startswith(_TOOLS)


def read_pin(text: bytes, name: object) -> Pin:
    """Reads a pin's table; UserError, with the `name` of what has it, if it is none."""
    try:
        return msgspec.toml.decode(text, type=Pin)
    except msgspec.DecodeError as error:
        raise UserError(
            f"cannot use {name}: its table is not a pin's: {error}",
            "use the file that `kdelta pin pack` wrote",
        ) from error


@functools.cache
def pinned() -> Pin:
    """The pin of this version of kdelta."""
    with lab_errors("reading", TABLE):
        return read_pin(TABLE.read_bytes(), TABLE)


def read_archive(path: Path) -> Pin | None:
    """The pin of an archive that `pack` wrote; None if that file is no archive."""
    with user_errors(path):
        if not tarfile.is_tarfile(path):
            return None
        try:
            with tarfile.open(path) as archive:
                member = archive.next()
                file = archive.extractfile(member) if member and member.name == TABLE.name else None
                if file is not None:
                    return read_pin(file.read(), path)
                why = f"it is an archive, and does not begin with {TABLE.name}"
        except (EOFError, tarfile.TarError) as error:
            why = str(error)
    raise UserError(f"cannot use {path}: {why}", "use the file that `kdelta pin pack` wrote")


def pack(pin: Pin, path: Path, log: Log, parts: Sequence[str] = ()) -> None:
    """Writes these parts of the pin, or all, as one archive; what the cache lacks of them is
    fetched first.
    """
    wanted = pin.of(*parts)
    debs = _debs(pin, wanted, log)
    table = pin.text().encode()
    with atomic_file(path) as file, tarfile.open(fileobj=file, mode="w") as archive:
        head = tarfile.TarInfo(TABLE.name)
        head.size = len(table)
        archive.addfile(head, io.BytesIO(table))
        for one in wanted:
            member = tarfile.TarInfo(one.name)
            with (debs / one.name).open("rb") as deb:
                member.size = os.fstat(deb.fileno()).st_size
                archive.addfile(member, deb)


def obtain_part(pin: Pin, part: str, log: Log, archive: Path | None = None) -> Path:
    """The folder that this part of it is unpacked in. Unless the cache has it, it is fetched: from
    that archive, or from where KDELTA_PIN_URL or apt's configuration say. LabError if that fails.
    """
    must_run_here(pin)
    wanted = pin.of(part)
    if not wanted:
        raise LabError(
            f"the pin {pin.digest} has no part {part}",
            "use this host's programs instead: --compile-guest, or another pin: --qemu PATH",
        )

    def fill(folder: Path) -> None:
        debs = _debs(pin, wanted, log, archive)
        for one in wanted:
            unpack(debs / one.name, folder / _TREE)
        for name in _MERGED:  # as base-files has it, which no program of a pin depends on
            if (folder / _TREE / "usr" / name).is_dir() and not (folder / _TREE / name).exists():
                (folder / _TREE / name).symlink_to(f"usr/{name}")

    doing = f"unpacking {part} of {pin.title}"
    return fill_once(pin.folder_of(part), doing, log, fill, _TREE, adopted=True)


def _debs(pin: Pin, wanted: Sequence[Package], log: Log, archive: Path | None = None) -> Path:
    """A folder with these packages' files, and perhaps others; what it lacks is fetched."""
    debs = make_folder(pin.folder / _DEBS)
    doing = f"fetching the pin {pin.digest}"
    with locked(doing, doing, log):
        lacking = [one for one in wanted if not _is_whole(one, debs / one.name)]
        if lacking:
            log(f"{doing} ({megabytes_of(lacking)} MB)")
            with (
                partial_folder(debs.with_name(_DEBS + PARTIAL)) as partial,
                lab_errors("writing in", partial),
            ):
                fetch_packages(lacking, partial, archive)
                for one in lacking:
                    (partial / one.name).replace(debs / one.name)
    return debs


def _is_whole(package: Package, path: Path) -> bool:
    return path.is_file() and sha256_file(path) == package.sha256


def megabytes_of(packages: Iterable[Package]) -> int:
    """What is downloaded of these packages, in MB."""
    return round(sum(one.bytes for one in packages) / 1e6)


def must_run_here(pin: Pin) -> None:
    """LabError if the pin's programs are not for this host."""
    if os.uname().machine != pin.host:
        raise LabError(
            f"cannot use the pinned QEMU: it is for hosts that are {pin.host}, and this one is"
            f" {os.uname().machine}",
            "install QEMU 7.2 to 11, or name one by --qemu PATH",
        )


def fetch_packages(packages: Sequence[Package], folder: Path, archive: Path | None = None) -> None:
    """Fetches the packages' files into a folder; LabError if one is missing or has other bytes."""
    source = _fetch_from(archive, packages, folder) if archive else _fetch(packages, folder)
    for one in packages:
        _verify(one, folder / one.name, source)


def _fetch(packages: Sequence[Package], folder: Path) -> str:
    """Fetches the files into a folder; returns from where."""
    place = os.environ.get(PIN_URL, "")
    if not place:
        return _fetch_from_mirrors(packages, folder)
    if "://" not in place:
        return _fetch_from(Path(place), packages, folder)
    if place.endswith(".tar"):
        _download(place, folder / "archive.tar")
        _fetch_from(folder / "archive.tar", packages, folder)
        (folder / "archive.tar").unlink()
    else:
        for one in packages:
            _download(f"{place.rstrip('/')}/{quote(one.file)}", folder / one.name)
    return place


def _fetch_from(place: Path, packages: Sequence[Package], folder: Path) -> str:
    """Copies the files out of a folder or an archive, as far as they are there."""
    if place.is_dir():
        for one in packages:
            for path in (place / one.file, place / one.name):
                if path.is_file():
                    shutil.copyfile(path, folder / one.name)
    else:
        try:
            if not tarfile.is_tarfile(place):
                raise tarfile.ReadError("it is neither a folder nor an archive")
            with tarfile.open(place) as archive:
                names = {one.name for one in packages}
                for member in archive:
                    if member.isreg() and member.name in names:
                        _write(archive, member, folder / member.name)
        except (OSError, EOFError, tarfile.TarError) as error:
            why = getattr(error, "strerror", None) or error
            raise UserError(
                f"cannot fetch the pinned QEMU from {place}: {why}",
                f"{PIN_URL} is an address, or the path of a folder or of what `kdelta pin pack`"
                " wrote",
            ) from error
    return str(place)


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    source = archive.extractfile(member)
    assert source is not None
    with path.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def _download(url: str, path: Path) -> None:
    try:
        with (
            urllib.request.urlopen(url, timeout=_STALLED_SECONDS) as source,
            path.open("wb") as file,
        ):
            shutil.copyfileobj(source, file, 1 << 20)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _cannot_fetch(f"{url}: {error}") from error


def _cannot_fetch(why: str, hint: str = ELSEWHERE) -> LabError:
    return LabError(f"cannot fetch the pinned QEMU: {why}", hint)


def _fetch_from_mirrors(packages: Sequence[Package], folder: Path) -> str:
    """Fetches the files as apt fetches: by its proxies, certificates and passwords."""
    said = ""
    for mirror in mirrors():
        files = [
            word
            for one in packages
            for word in (f"{mirror}/{quote(one.file)}", folder / one.name, f"SHA256:{one.sha256}")
        ]
        # As root apt drops to a user that cannot write into the caller's cache.
        options = ("-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3")
        argv = [_APT_HELPER, *options, "download-file", *files]
        result = run_program(argv, seconds=_SECONDS)
        if result.ok:
            return mirror
        errors = (one for one in result.stderr.splitlines() if one.startswith("E: "))
        said = next(errors, result.last_words(1)).removeprefix("E: ")
        if re.search(r"\b404\b", said):
            said = f"the mirror no longer has a file of it: {said}"
    raise _cannot_fetch(said)


def check_mirror() -> None:
    """Raise LabError if no place is known from which a pin could be fetched."""
    if not os.environ.get(PIN_URL):
        mirrors()


def mirrors() -> list[str]:
    """The mirrors of Debian that apt is configured with; LabError if there are none."""
    if shutil.which("apt-get") is None or not Path(_APT_HELPER).exists():
        raise _cannot_fetch("this host has no apt, which knows the mirrors", _name_one())
    said = run_program(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    )
    found = dict.fromkeys(uri.rstrip("/") for uri in said.stdout.split())
    found |= dict.fromkeys(address for uri in found for address in _listed(uri))
    debian = [uri for uri in found if uri.endswith("/debian")]
    if not debian:
        why = f"apt has no mirror of Debian's {pinned().release} here"
        if any(uri.endswith(("/ubuntu", "/ubuntu-ports")) for uri in found):
            why += ", and Ubuntu's do not have its packages"
        raise _cannot_fetch(why, _name_one())
    return debian


def _listed(uri: str) -> list[str]:
    """The addresses in a list of mirrors, as cloud images have one (apt-transport-mirror(1))."""
    if not uri.startswith("mirror+file:"):
        return []
    path = Path(uri.removeprefix("mirror+file:"))
    with lab_errors("reading", path):
        lines = path.read_text("utf-8", "replace").splitlines()
    return [line.split()[0].rstrip("/") for line in lines if line.strip() and line[0] != "#"]


def _name_one() -> str:
    return f"set {PIN_URL} to the address of a mirror of Debian; or {ELSEWHERE}"


def _verify(package: Package, path: Path, source: str) -> None:
    if not path.is_file():
        raise _cannot_fetch(f"{source} does not have {package.name}")
    found = sha256_file(path)
    if found != package.sha256:
        raise LabError(
            f"cannot use the pinned QEMU: {package.name} of {source} has the SHA-256 {found}, and"
            f" the pin {package.sha256}",
            f"the file is damaged or another one: fetch it again, or from elsewhere ({PIN_URL})",
        )


def unpack(deb: Path, folder: Path) -> None:
    """Unpacks a .deb (an ar archive; see deb(5)), without documentation and settings; LabError if
    it cannot be read.
    """
    try:
        with deb.open("rb") as file:
            _to_data(file)
            with tarfile.open(fileobj=file, mode="r|*") as archive:
                # Python has it since 3.11.4.
                archive.extraction_filter = getattr(tarfile, "tar_filter", lambda one, _: one)
                archive.extractall(
                    folder, (one for one in archive if not _UNNEEDED.match(f"{one.name}/"))
                )
    except (OSError, EOFError, ValueError, tarfile.TarError) as error:
        why = getattr(error, "strerror", None) or error
        raise LabError(
            f"cannot unpack {deb.name}: {why}", "free some space, or try again"
        ) from error


def _to_data(deb: IO[bytes]) -> None:
    """Reads an ar archive up to the content of its member data.tar; ValueError for others."""
    if deb.read(8) != b"!<arch>\n":
        raise ValueError("it is not a package of Debian")
    while len(header := deb.read(60)) == 60:
        if header.startswith(b"data.tar"):
            return
        size = int(header[48:58])
        deb.seek(size + size % 2, os.SEEK_CUR)
    raise ValueError("it holds no files")
