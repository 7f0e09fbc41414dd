# SPDX-License-Identifier: GPL-2.0-or-later
"""What the host has and lacks for kdelta: checks as data, each with the command that helps."""

import functools
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator

import msgspec

from kdelta.host.command import install_hint, log_to_stderr, run_program
from kdelta.host.dirs import cache_dir, data_dir
from kdelta.host.emulator import PIN, find_qemu
from kdelta.host.pin import check_mirror, gcc_part, megabytes_of, must_run_here, pinned, qemu_part
from kdelta.host.target import Target, host_libc, target, targets
from kdelta.spec.errors import KdeltaError, LabError

# A cached kernel takes about 100 MB, a snapshot as much, a run less than one. A source tree with a
# build of it takes 4 GB more; that is reported when it is built and the space is not there.
MIN_FREE_BYTES = 2 << 30
# A guest has 1 GiB, and two run side by side.
MIN_MEMORY_BYTES = 3 << 30

_COMPILERS = ("gcc", "ld")

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


_Row = tuple[str, bool, Callable[[], str]]
"""A check: its name, whether kdelta needs that for all that it does, and what returns what is there
(LabError, with what helps, where it is not).
"""


def checks(qemu: str = "") -> Iterator[Check]:
    """All checks, one by one as they are made. qemu: see `find_qemu`."""
    emulator: _Row = ("QEMU", True, functools.partial(_qemu, target("x86_64"), qemu))
    others = (one for one in targets().values() if not one.is_host)
    of_targets: list[_Row] = [
        (one.name, False, functools.partial(_target, one, qemu)) for one in others
    ]
    for name, required, look in (emulator, *_CHECKS, *of_targets):
        try:
            yield Check(name, True, look(), required=required)
        except KdeltaError as error:
            yield Check(name, False, error.message, error.hint, required)


def _qemu(of: Target, path: str) -> str:
    """The QEMU that runs kernels of an architecture, and whether kdelta's plugin loads into it. The
    pin is not fetched for this.
    """
    if path in ("", PIN) and _is_to_be_fetched(qemu_part(of.name)):
        return f"{pinned().title}: it is fetched when it is needed"
    qemu = find_qemu(of, path, log_to_stderr)
    oldest, newest = qemu.plugin_apis
    versions = f"versions {oldest} to {newest}" if oldest < newest else f"version {newest}"
    return f"{qemu.pin.title if qemu.pin else qemu.version}, plugin interface {versions}"


def _is_to_be_fetched(part: str) -> bool:
    """Whether that part of the pin is not here, and a place is known that may have it."""
    if os.uname().machine != pinned().host or part in pinned().here:
        return False
    try:
        check_mirror()
    except LabError:
        return False
    return True


def _pin() -> str:
    """The pin, and which parts of it are here."""
    pin = pinned()
    must_run_here(pin)
    usual = pin.of(qemu_part("x86_64"), gcc_part("x86_64"))
    if qemu_part("x86_64") not in pin.here:
        check_mirror()
    state = f"in {pin.folder}: {', '.join(pin.here)}" if pin.here else "not fetched yet"
    return f"QEMU {pin.title}, {megabytes_of(usual)} MB for x86-64: {state}"


def _compiler() -> str:
    if missing := _missing(_COMPILERS):
        raise LabError(f"{', '.join(missing)} missing", install_hint(*missing))
    return run_program(["gcc", "--version"]).stdout.partition("\n")[0]


def _target(of: Target, path: str) -> str:
    """Of an architecture other than the host's, whether its kernels can be run."""
    try:
        qemu = _qemu(of, path)
        if os.uname().machine == pinned().host:
            return f"QEMU {qemu}; {pinned().compiler_title}"
        of.static_libc()
    except KdeltaError as error:
        raise LabError(f"{error.message}: its kernels cannot be run here", error.hint) from error
    return f"QEMU {qemu}; {of.compiler}"


def _apt() -> str:
    for program in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(program) is None:
            raise LabError(
                f"{program} is missing: deb: kernels cannot be fetched here",
                "name kernels as PATH, git:PATH@REV, image:PATH, rpm:FILE or pkg:FILE",
            )
    count = len(run_program(["apt-cache", "pkgnames", "linux-image-"]).stdout.split())
    if count == 0:
        raise LabError("apt knows no kernel package", "sudo apt-get update")
    return f"apt knows {count} kernel packages"


def _optional(program: str, lacking: str, there: Callable[[], str]) -> str:
    """Of a program that only a part of kdelta needs: what is lacking without it, what is there."""
    if shutil.which(program) is None:
        raise LabError(lacking, install_hint(program))
    return there()


def _missing(programs: Iterable[str]) -> list[str]:
    return [program for program in programs if shutil.which(program) is None]


def _building() -> str:
    missing = _missing((*_COMPILERS, *BUILD_PROGRAMS))
    # Without a compiler it is not known which are there.
    headers = [header for header in BUILD_HEADERS if "gcc" in missing or not _has_header(header)]
    if missing or headers:
        raise LabError(
            f"{', '.join(missing + headers)} missing: kernels cannot be built from source here",
            install_hint(*missing, *(BUILD_HEADERS[header] for header in headers)),
        )
    return f"{', '.join(BUILD_PROGRAMS)}, {', '.join(BUILD_HEADERS)}"


def _has_header(name: str) -> bool:
    return run_program(["gcc", "-E", "-include", name, "-x", "c", os.devnull]).ok


def _disk() -> str:
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
    return "; ".join(details)


def _memory() -> str:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    detail = f"{_gib(total)}, {os.cpu_count()} cores"
    if total < MIN_MEMORY_BYTES:
        raise LabError(detail, "give guests less: --memory 512")
    return detail


def _gib(count_bytes: int) -> str:
    return f"{count_bytes / (1 << 30):.1f} GiB"


_CHECKS: tuple[_Row, ...] = (
    ("pin", False, _pin),
    ("Python", True, lambda: f"{platform.python_version()}, {sys.executable}"),
    ("C compiler", True, _compiler),
    ("static C library", False, lambda: f"{host_libc()} (--compile-guest)"),
    ("packages", False, _apt),
    (
        "zstd",
        False,
        lambda: _optional(
            "zstd",
            "missing: modules compressed by zstd cannot be loaded",
            lambda: "there, for compressed modules",
        ),
    ),
    ("building kernels", False, _building),
    (
        "ccache",
        False,
        lambda: _optional(
            "ccache",
            "missing: what was compiled for an earlier kernel is compiled again",
            lambda: f"there, in {cache_dir('ccache')}",
        ),
    ),
    (
        "relinking",
        False,
        lambda: _optional(
            "ld.lld",
            "ld.lld missing: functions cannot be put in another order (+order:, +shuffle:)",
            lambda: run_program(["ld.lld", "--version"]).stdout.partition("\n")[0],
        ),
    ),
    ("disk", True, _disk),
    ("memory", False, _memory),
)
