#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the table of the pin (src/kdelta/host/pin.toml) from a release of Debian.

    .venv/bin/python scripts/make_pin.py [SUITE]

Run it again to change the pin. Packages come from the configured mirror and are verified by apt.
The table has the emulators and the compilers with the libraries that they load, the firmware of
machines, the C libraries of guests' programs, and the packages that workloads start programs of.
Nothing is installed.
"""

import functools
import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import unquote

import msgspec
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from kdelta.guests.debs import Packages
from kdelta.guests.userland import assembled
from kdelta.host.command import log_to_stderr
from kdelta.host.files import write_atomic
from kdelta.host.pin import (
    TABLE,
    Package,
    Pin,
    binutils_part,
    fetch_packages,
    gcc_part,
    megabytes_of,
    mirrors,
    qemu_part,
    source_part,
    unpack,
    userland_part,
)
from kdelta.host.target import Target, target, targets
from kdelta.kernels.packages.apt import run_apt_get
from kdelta.spec.errors import LabError
from kdelta.spec.kernel import DebSrcSpec, parse_kernel_spec
from kdelta.workloads.catalog import UserlandWanted, Workload, list_workloads

SUITE = "trixie"
_QEMU = ("qemu-system-x86", "qemu-system-arm", "qemu-system-riscv")
_FIRMWARE = {
    "x86_64": ("qemu-system-data", "seabios"),
    "arm": ("qemu-system-data",),
    "arm64": ("qemu-system-data",),
    "riscv64": ("qemu-system-data", "opensbi"),
}
"""Packages of which no library is loaded, but what machines start by."""
_GCC = "14"
_HEADERS = {"x86_64": ("libc6-dev", f"libgcc-{_GCC}-dev", "linux-libc-dev")}
"""What programs include and are linked with, where these are not cross packages."""
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_SECONDS = 600.0


def resolve(suite: str, workloads: Iterable[Workload] = ()) -> Pin:
    """The pin that the suite has now, for hosts as this one, and for these workloads' guests."""
    compilers = {name: _compiler_packages(one) for name, one in targets().items()}
    with tempfile.TemporaryDirectory(prefix="kdelta-pin-") as name:
        folder = Path(name)
        asked = (*_QEMU, *(one for packages in compilers.values() for one in packages))
        files = _Apt(suite, folder / "apt", target("x86_64")).resolved(asked)
        _unpack(files, folder)
        parts = {
            **{qemu_part(arch): _qemu(folder / "trees", arch) for arch in targets()},
            **{
                gcc_part(arch): _gcc(folder / "trees", arch, packages)
                for arch, packages in compilers.items()
            },
            **{
                binutils_part(arch): _binutils(folder / "trees", one.triple)
                for arch, one in targets().items()
                if not one.is_host
            },
        }
        for workload in workloads:
            more = _of_workload(functools.partial(_lists, suite, folder), workload, folder)
            parts |= {part: {one.name for one in found} for part, found in more.items()}
            files += (one for found in more.values() for one in found)
    by_name = {one.name: one for one in files}
    used = [
        msgspec.structs.replace(one, parts=tuple(part for part in parts if name in parts[part]))
        for name, one in sorted(by_name.items())
    ]
    return Pin(
        qemu=_version(files, _QEMU[0]),
        gcc=_version(files, compilers["x86_64"][0]),
        release=suite,
        host="x86_64",
        packages=tuple(one for one in used if one.parts),
    )


def _unpack(files: Iterable[Package], folder: Path) -> None:
    """Unpacks packages below folder/trees, each in a folder of its file's name."""
    missing = [one for one in files if not (folder / "trees" / one.name).exists()]
    if missing:
        fetch_packages(missing, folder)
    for package in missing:
        unpack(folder / package.name, folder / "trees" / package.name)


@functools.cache
def _lists(suite: str, folder: Path, arch: str) -> "_Apt | None":
    """The release's lists for that architecture; None, with a line, while a mirror renews them."""
    try:
        return _Apt(suite, folder / f"apt-{arch}", target(arch))
    except LabError as error:
        log_to_stderr(f"no parts of workloads for {arch}: {error.message}")
        return None


def _of_workload(
    lists: Callable[[str], "_Apt | None"], workload: Workload, folder: Path
) -> dict[str, list[Package]]:
    """By part, the packages that a workload's guests have files of, for all architectures."""
    found: dict[str, list[Package]] = {}
    for arch in workload.architectures or targets():
        if (apt := lists(arch)) is None:
            continue
        if workload.userland:
            files = apt.resolved(workload.userland.packages)
            _unpack(files, folder)
            part = userland_part(workload.name, arch)
            found[part] = _started(workload.userland, files, folder / "trees")
        if workload.kernel_tree:
            spec = parse_kernel_spec(workload.kernel_tree.source)
            assert isinstance(spec, DebSrcSpec)
            files = apt.resolved([spec.package])
            source = [one for one in files if one.package == spec.package]
            found[source_part(workload.name)] = source
    return found


class _Passed(Packages):
    """Packages that remember which of them were used."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[str] = set()

    def passed(self, package: str) -> None:
        self.used.add(package)


def _started(wanted: UserlandWanted, files: Iterable[Package], trees: Path) -> list[Package]:
    """Those of the packages that have what is wanted, or links to that."""
    packages = _Passed()
    for one in files:
        packages.add(one.name, trees / one.name)
    assembled(packages, wanted)
    return [one for one in files if one.name in packages.used]


def _version(files: Iterable[Package], name: str) -> str:
    found = next(one.version for one in files if one.name.startswith(f"{name}_"))
    return re.sub(r"^\d+:|[+-].*", "", found)


def _compiler_packages(of: Target) -> tuple[str, ...]:
    """The compiler proper, the binutils, the C library and the headers for that architecture."""
    name = of.triple.replace("_", "-")
    headers = _HEADERS.get(of.name) or (
        of.libc_package,
        f"libgcc-{_GCC}-dev-{of.dpkg}-cross",
        f"linux-libc-dev-{of.dpkg}-cross",
    )
    return (f"cpp-{_GCC}-{name}", f"binutils-{name}", *headers)


def _qemu(trees: Path, arch: str) -> set[str]:
    programs = trees.glob(f"*/usr/bin/{targets()[arch].emulator}")
    return _loaded(trees, programs) | _named(trees, _FIRMWARE[arch])


def _gcc(trees: Path, arch: str, packages: Iterable[str]) -> set[str]:
    triple = targets()[arch].triple
    patterns = (f"libexec/gcc*/{triple}/*/cc1", f"bin/{triple}-as", f"bin/{triple}-ld")
    programs = (path for one in patterns for path in trees.glob(f"*/usr/{one}"))
    named = _named(trees, packages)
    headers = (path for name in named for path in trees.glob(f"{name}/usr/*/include/linux/*.h"))
    if any(path.is_symlink() for path in headers):  # in forky and sid, into that package
        named |= _named(trees, ["linux-libc-dev"])
    return _loaded(trees, programs) | named


def _binutils(trees: Path, triple: str) -> set[str]:
    return _loaded(trees, trees.glob(f"binutils-{triple}_*/usr/bin/{triple}-*"))


def _named(trees: Path, packages: Iterable[str]) -> set[str]:
    """The files of these packages, by the folders that they are unpacked in."""
    begins = tuple(f"{one}_" for one in packages)
    return {path.name for path in trees.iterdir() if path.name.startswith(begins)}


def _loaded(trees: Path, programs: Iterable[Path]) -> set[str]:
    """The packages, by the folders that they are unpacked in, of programs and what they load."""
    owners = {
        path.name: path
        for pattern in ("*/usr/lib/*-linux-gnu/*.so*", "*/lib/*-linux-gnu/*.so*")
        for path in trees.glob(pattern)
    }
    todo = [path.resolve() for path in programs]
    seen: dict[str, Path] = {}
    while todo:
        path = todo.pop()
        if path.name not in seen:
            seen[path.name] = path
            target = path.parent / path.readlink() if path.is_symlink() else path
            seen.setdefault(target.name, target)
            todo += [owners[name] for name in _needed(target)]
    return {path.relative_to(trees).parts[0] for path in seen.values()}


def _needed(path: Path) -> list[str]:
    """The libraries that a program or a library names (DT_NEEDED)."""
    with path.open("rb") as file:
        dynamic = ELFFile(file).get_section_by_name(".dynamic")
        assert isinstance(dynamic, DynamicSection)
        return [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")]  # type: ignore[attr-defined]


class _Apt:
    """apt that knows one release of one architecture alone, and nothing that is installed."""

    def __init__(self, suite: str, folder: Path, of: Target) -> None:
        self._folder = folder
        self._mirror = mirrors()[0]
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True)
        sources = folder / "suite.list"
        sources.write_text(f"deb [signed-by={_KEYRING}] {self._mirror} {suite} main\n")
        options = {
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Acquire::Retries": 3,
            "Dir::State::Lists": folder / "lists",
            "Dir::State::status": "/dev/null",
            "Dir::Cache": folder / "cache",
            "Dir::Etc::SourceList": sources,
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
        }
        if not of.is_host:
            options |= {"APT::Architecture": of.dpkg, "APT::Architectures::": of.dpkg}
        self._options = [word for name in options for word in ("-o", f"{name}={options[name]}")]
        self._get("update")

    def _get(self, *words: str) -> str:
        argv = ["apt-get", "-q", *self._options, *words]
        result = run_apt_get(argv, log_to_stderr, cwd=self._folder, seconds=_SECONDS)
        return result.or_raise(f"apt-get {words[0]} failed").stdout

    def resolved(self, packages: Iterable[str]) -> list[Package]:
        """These packages and all that they depend on."""
        said = self._get("install", "--simulate", "--no-install-recommends", *packages)
        found = re.findall(r"^Inst (\S+) \((\S+)", said, re.MULTILINE)
        uris = self._get("download", "--print-uris", *map("=".join, found))
        rows = re.findall(r"^'(\S+)' (\S+?)_\S+ (\d+) SHA256:([0-9a-f]{64})", uris, re.MULTILINE)
        if len(rows) < len(found):
            raise LabError(f"apt-get download --print-uris does not have all of {found}: {uris}")
        versions = dict(found)
        resolved = [
            Package(
                unquote(uri).removeprefix(f"{self._mirror}/"), versions[name], digest, int(size), ()
            )
            for uri, name, size, digest in rows
        ]
        return sorted(resolved, key=lambda one: one.name)


def main() -> None:
    """What the command line says."""
    # Not yet kbuild: from the pin, make in the guest wants to compile a host program again.
    wanted = [one for one in list_workloads().values() if one.userland and not one.kernel_tree]
    pin = resolve(sys.argv[1] if len(sys.argv) > 1 else SUITE, wanted)
    head = (
        "# SPDX-License-Identifier: GPL-2.0-or-later\n"
        "# The pinned QEMU and compilers, and what they load: scripts/make_pin.py wrote it.\n"
    )
    write_atomic(TABLE, f"{head}{pin.text()}".encode())
    for part in pin.parts:
        print(f"{part}: {len(pin.of(part))} packages, {megabytes_of(pin.of(part))} MB")
    print(f"QEMU {pin.title}, {pin.compiler_title}: {len(pin.packages)} packages")


if __name__ == "__main__":
    main()
