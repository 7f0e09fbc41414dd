# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds kdelta's C parts where they run: into the cache, by their sources, compiler and flags."""

import errno
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec

import kdelta
from kdelta.host.command import quiet
from kdelta.host.dirs import cache_dir
from kdelta.host.environment import FIXED
from kdelta.host.files import FileState, os_failure, sha256_state, write_atomic
from kdelta.host.gcc import Compiler
from kdelta.host.lock import fill_once
from kdelta.spec.errors import LabError
from kdelta.spec.identity import identity

COMMON_FLAGS = ("-std=gnu11", "-O2")
STATIC_FLAGS = ("-static", "-no-pie")
PLUGIN_FLAGS = ("-shared", "-fPIC", "-fvisibility=hidden")
STRICT_FLAGS = ("-Wall", "-Wextra", "-Werror")
"""For tests. A user's newer compiler may warn of something, and that must not stop kdelta."""

_PARTS = {
    "plugin": PLUGIN_FLAGS,
    "probe": PLUGIN_FLAGS,
    "replay": (*PLUGIN_FLAGS, "-pthread"),
    # Where no other program is: the debugger's stub stops at an address whatever executes it.
    "agent": (*STATIC_FLAGS, "-Wl,-Ttext-segment=0x10000000"),
    "clock": (*STATIC_FLAGS, "-DKDELTA_TIMED"),
    "clock_guest": (*STATIC_FLAGS, "-DKDELTA_TIMED"),
    "find_files": STATIC_FLAGS,
    "terminal": STATIC_FLAGS,
}
_SHARED = {
    "clock_guest": (
        *(f"agent/{name}.c" for name in ("cpio", "group", "job", "mounts", "prepare", "small")),
        *(f"clock/{name}.c" for name in ("facts", "timed")),
    ),
    "find_files": ("agent/cpio.c",),
}
"""Sources of other parts."""


HERE = Compiler()


class NativeProgram(msgspec.Struct, frozen=True):
    """A program to compile: all of `sources` (relative to `folder`, or absolute), `by` a compiler
    of this host or of guests.
    """

    name: str
    folder: Path
    sources: tuple[str, ...]
    flags: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()
    by: Compiler = HERE


def native_folder() -> Path:
    """The folder of the C sources: next to this package when installed, else the checkout's."""
    package = Path(kdelta.__file__).parent
    for folder in (package / "native", package.parents[1] / "native"):
        if (folder / "include" / "kdelta.h").is_file():
            return folder
    raise LabError("kdelta's C sources are missing", "install kdelta again")


def build_part(
    name: str,
    log: Callable[[str], None] = quiet,
    *,
    strict: bool = False,
    by: Compiler = HERE,
    plugin_api: int = 0,
    defines: tuple[str, ...] = (),
) -> Path:
    """Return the path of the built "plugin" or "probe" (for a QEMU with that version of its plugin
    interface), "replay" (a library), "agent", "clock", "clock_guest", "find_files" or "terminal"
    (static programs, for guests of that architecture). defines: macros that are defined.
    """
    defines = (*((f"PLUGIN_API={plugin_api}",) if plugin_api else ()), *defines)
    native = native_folder()
    folder = native / name
    return build_program(
        NativeProgram(
            name=name,
            folder=folder,
            sources=(
                *sorted(_short(source, folder) for source in folder.rglob("*.c")),
                *(str(native / source) for source in _SHARED.get(name, ())),
            ),
            flags=(*_PARTS[name], *(f"-D{one}" for one in defines)),
            includes=(native / "include",),
            by=by,
        ),
        log,
        strict=strict,
    )


def build_program(
    program: NativeProgram, log: Callable[[str], None] = quiet, *, strict: bool = False
) -> Path:
    """Return the path of the built program, compiled unless the cache has it. LabError if the
    compiler is missing or refuses.
    """
    flags = (*COMMON_FLAGS, *program.flags, *(STRICT_FLAGS if strict else ()))
    compiler, libc = program.by.identity
    key = identity(
        {
            "name": program.name,
            "sources": _hashes(program),
            "compiler": compiler,
            "libc": libc if "-static" in flags else "",
            "flags": flags,
            "environment": FIXED,
        }
    )
    name = f"{program.name}-{program.by.arch}" if program.by.arch else program.name
    built = cache_dir("native") / f"{name}-{key[:32]}"
    doing = f"compiling {program.name}"

    def fill(folder: Path) -> None:
        log(doing)
        _compile(program, flags, folder / program.name)

    return fill_once(built, doing, log, fill, program.name)


def _hashes(program: NativeProgram) -> dict[str, str]:
    paths = [program.folder / name for name in program.sources]
    if not paths:
        raise LabError(f"no C sources in {program.folder}", "install kdelta again")
    files = {_short(path, program.folder): path for path in paths}
    others = dict.fromkeys(path.parent for path in paths)
    for include in dict.fromkeys((program.folder, *others, *program.includes)):
        for header in include.glob("*.h"):
            files[f"{include.name}/{header.name}"] = header
    return {name: sha256_state(FileState.of(path)) for name, path in sorted(files.items())}


def _short(path: Path, folder: Path) -> str:
    """A name that does not say where the checkout is."""
    inside = path.is_relative_to(folder)
    return path.relative_to(folder).as_posix() if inside else f"{path.parent.name}/{path.name}"


def _compile(program: NativeProgram, flags: tuple[str, ...], output: Path) -> None:
    # Relative names and the prefix map keep the checkout's path out of the result (__FILE__).
    words = [
        *flags,
        *(f"-I{include}" for include in program.includes),
        *(f"-ffile-prefix-map={include}={include.name}" for include in program.includes),
    ]
    result, argv = program.by.compile(program.sources, words, output, program.folder)
    if result.ok:
        return
    if (full := os.strerror(errno.ENOSPC)) in result.stderr:
        raise os_failure(OSError(errno.ENOSPC, full), "compiling", output)
    log_file = cache_dir("logs") / f"{program.name}-build.log"
    write_atomic(log_file, (shlex.join(argv) + "\n" + result.stderr).encode())
    first = next(
        (line for line in result.stderr.splitlines() if "error:" in line or "undefined" in line),
        result.last_words(1),
    )
    raise LabError(f"compiling {program.name} failed: {first}", f"all it said is in {log_file}")
