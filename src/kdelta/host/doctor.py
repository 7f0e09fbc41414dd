# SPDX-License-Identifier: GPL-2.0-or-later
"""What the host has and lacks for kdelta: checks as data, each with the command that helps."""

import functools
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from kdelta.host.command import find_program, install_hint, run
from kdelta.host.dirs import cache_dir, data_dir
from kdelta.host.native import build
from kdelta.host.target import Target, targets
from kdelta.spec.errors import KdeltaError, LabError

EMULATOR = "qemu-system-x86_64"
PLUGIN_API = 1
_PROBE_SECONDS = 30.0

# A cached kernel takes about 100 MB, a snapshot as much, a run less than one. A source tree with a
# build of it takes 4 GB more; that is reported when it is built and the space is not there.
MIN_FREE_BYTES = 2 << 30
# A guest has 1 GiB, and two run side by side.
MIN_MEMORY_BYTES = 3 << 30

BUILD_PROGRAMS = ("make", "git", "flex", "bison", "bc", "perl")
"""What a kernel's build runs besides compiler and linker."""

BUILD_HEADERS = {"gelf.h": "libelf-dev", "openssl/evp.h": "libssl-dev"}
"""What programs that the build makes for itself include, and the Debian packages with it."""


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at. `remedy` is empty when all is well. What is not `required` is
    needed for a part of kdelta only, which `detail` names.
    """

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    required: bool = True


def checks() -> Iterator[Check]:
    """All checks, one by one as they are made."""
    of_targets = {
        one.name: functools.partial(_check_target, one)
        for one in targets().values()
        if not one.is_host
    }
    for name, check in (_CHECKS | of_targets).items():
        try:
            yield check()
        except KdeltaError as error:
            yield Check(name, False, error.message, error.hint)


def plugin_api(emulator: str = EMULATOR) -> tuple[int, int]:
    """The oldest and the newest plugin API that this QEMU takes.

    LabError, with QEMU's version, when it takes no plugins or none with an API known to kdelta.
    """
    # Asked first: without QEMU nothing has to be compiled.
    find_program(emulator)
    argv = [emulator, "-machine", "none", "-display", "none", "-nodefaults"]
    result = run([*argv, "-plugin", str(build("probe"))], seconds=_PROBE_SECONDS)
    if match := re.search(r"^plugin-api \S+ (\d+) (\d+)$", result.stdout, re.MULTILINE):
        return int(match.group(1)), int(match.group(2))
    said = result.last_words(1)
    if match := re.search(r"minimum version of (\d+)", said):
        raise LabError(
            f"QEMU {qemu_version(emulator)} wants plugins of API version {match.group(1)} or newer,"
            f" and kdelta's has version {PLUGIN_API}",
            "install a QEMU from 7.2 on that still takes API version 1",
        )
    raise LabError(
        f"QEMU {qemu_version(emulator)} was built without plugins: {said}",
        "install one with plugins, such as Debian's: " + install_hint(emulator),
    )


def qemu_version(emulator: str = EMULATOR) -> str:
    """QEMU's version, with its packager's."""
    result = run([emulator, "--version"], seconds=_PROBE_SECONDS)
    match = re.search(r"version (.+)", result.stdout)
    if match is None:
        raise LabError(f"{emulator} does not report its version: {result.last_words(1)}")
    return match.group(1).strip()


def _check_python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check("Python", True, f"{version}, {sys.executable}")


def _check_qemu() -> Check:
    return Check("QEMU", True, qemu_version())


def _check_plugins() -> Check:
    low, high = plugin_api()
    return Check("QEMU plugins", True, f"API versions {low} to {high}")


def _check_compiler() -> Check:
    find_program("ld")
    return Check("C compiler", True, run(["gcc", "--version"]).stdout.partition("\n")[0])


def _check_libc() -> Check:
    path = run(["gcc", "-print-file-name=libc.a"]).stdout.strip()
    if not Path(path).is_absolute():
        raise LabError("libc.a is missing", "on Debian or Ubuntu: sudo apt-get install libc6-dev")
    return Check("static C library", True, path)


def _check_target(of: Target) -> Check:
    """Whether kernels of an architecture other than the host's can be run."""
    try:
        low, high = plugin_api(of.find_emulator())
        of.static_libc()
    except LabError as error:
        detail = f"{error.message}: its kernels cannot be run here"
        return Check(of.name, False, detail, error.hint, required=False)
    detail = f"{of.emulator} with plugins of API versions {low} to {high}, {of.compiler}"
    return Check(of.name, True, detail, required=False)


def _check_apt() -> Check:
    for program in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(program) is None:
            return Check(
                "packages",
                False,
                f"{program} is missing: deb: kernels cannot be fetched here",
                "name kernels as image:PATH",
                required=False,
            )
    count = len(run(["apt-cache", "pkgnames", "linux-image-"]).stdout.split())
    if count == 0:
        return Check(
            "packages", False, "apt knows no kernel package", "sudo apt-get update", required=False
        )
    return Check("packages", True, f"apt knows {count} kernel packages", required=False)


def _optional(name: str, program: str, lacking: str, there: Callable[[], str]) -> Check:
    """A program that only a part of kdelta needs: what is lacking without it, and what is there."""
    if shutil.which(program) is None:
        return Check(name, False, lacking, install_hint(program), required=False)
    return Check(name, True, there(), required=False)


def _check_building() -> Check:
    missing = [program for program in BUILD_PROGRAMS if shutil.which(program) is None]
    headers = [header for header in BUILD_HEADERS if not _has_header(header)]
    if missing or headers:
        packages = [BUILD_HEADERS[header] for header in headers]
        detail = f"{', '.join(missing + headers)} missing: kernels cannot be built from source here"
        hint = install_hint(*missing, *packages)
        return Check("building kernels", False, detail, hint, required=False)
    detail = f"{', '.join(BUILD_PROGRAMS)}, {', '.join(BUILD_HEADERS)}"
    return Check("building kernels", True, detail, required=False)


def _has_header(name: str) -> bool:
    find_program("gcc")
    return run(["gcc", "-E", "-include", name, "-x", "c", os.devnull]).ok


def _check_disk() -> Check:
    details = []
    for what, folder, variable in (
        ("cache", cache_dir(), "KDELTA_CACHE_DIR"),
        ("data", data_dir(), "KDELTA_DATA_DIR"),
    ):
        if not os.access(folder, os.W_OK):
            raise LabError(f"{folder} cannot be written", f"set {variable} to another folder")
        free_bytes = shutil.disk_usage(folder).free
        details.append(f"{what} {folder}: {_gib(free_bytes)} free")
        if free_bytes < MIN_FREE_BYTES:
            raise LabError(
                f"{details[-1]}, {_gib(MIN_FREE_BYTES)} wanted",
                f"free some, or set {variable} to a folder on another disk",
            )
    return Check("disk", True, "; ".join(details))


def _check_memory() -> Check:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    detail = f"{_gib(total)}, {os.cpu_count()} cores"
    if total < MIN_MEMORY_BYTES:
        return Check("memory", False, detail, "give guests less: --memory 512", required=False)
    return Check("memory", True, detail, required=False)


def _gib(count_bytes: int) -> str:
    return f"{count_bytes / (1 << 30):.1f} GiB"


_CHECKS: dict[str, Callable[[], Check]] = {
    "Python": _check_python,
    "QEMU": _check_qemu,
    "QEMU plugins": _check_plugins,
    "C compiler": _check_compiler,
    "static C library": _check_libc,
    "packages": _check_apt,
    "zstd": functools.partial(
        _optional,
        "zstd",
        "zstd",
        "missing: modules compressed by zstd cannot be loaded",
        lambda: "there, for compressed modules",
    ),
    "building kernels": _check_building,
    "ccache": functools.partial(
        _optional,
        "ccache",
        "ccache",
        "missing: what was compiled for an earlier kernel is compiled again",
        lambda: f"there, in {cache_dir('ccache')}",
    ),
    "relinking": functools.partial(
        _optional,
        "relinking",
        "ld.lld",
        "ld.lld missing: functions cannot be put in another order (+order:, +shuffle:)",
        lambda: run(["ld.lld", "--version"]).stdout.partition("\n")[0],
    ),
    "disk": _check_disk,
    "memory": _check_memory,
}
