# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds kdelta's C parts where they run: into the cache, by their sources, compiler and flags."""

import errno
import functools
import hashlib
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec

import kdelta
from kdelta.host.command import find_program, quiet, run
from kdelta.host.dirs import cache_dir
from kdelta.host.files import (
    FileState,
    new_folder,
    os_failure,
    sha256_file,
    sha256_state,
    write_atomic,
)
from kdelta.host.lock import locked
from kdelta.host.target import HOST_COMPILER, target
from kdelta.spec.errors import LabError
from kdelta.spec.identity import identity

COMPILER = HOST_COMPILER
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
}


class NativeProgram(msgspec.Struct, frozen=True):
    """A program to compile: all of `sources` (relative to `folder`, or absolute) in one call, for
    guests of the architecture `arch`; an empty one is this host.
    """

    name: str
    folder: Path
    sources: tuple[str, ...]
    flags: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()
    arch: str = ""

    @property
    def compiler(self) -> str:
        """The program that compiles it; LabError, with what to install, when it is not there."""
        return target(self.arch).find_compiler() if self.arch else COMPILER


def native_folder() -> Path:
    """The folder of the C sources: next to this package when installed, else the checkout's."""
    package = Path(kdelta.__file__).parent
    for folder in (package / "native", package.parents[1] / "native"):
        if (folder / "include" / "kdelta.h").is_file():
            return folder
    raise LabError("kdelta's C sources are missing", "install kdelta again")


def build(
    name: str, talk: Callable[[str], None] = quiet, *, strict: bool = False, arch: str = ""
) -> Path:
    """The path of the built "plugin" or "probe" (for QEMU), "replay" (a library) or "agent" (a
    static program, for guests of that architecture).
    """
    native = native_folder()
    folder = native / name
    return build_program(
        NativeProgram(
            name=name,
            folder=folder,
            sources=tuple(sorted(_short(source, folder) for source in folder.rglob("*.c"))),
            flags=_PARTS[name],
            includes=(native / "include",),
            arch=arch,
        ),
        talk,
        strict=strict,
    )


def build_program(
    program: NativeProgram, talk: Callable[[str], None] = quiet, *, strict: bool = False
) -> Path:
    """The path of the built program, compiled unless the cache has it. LabError if the compiler is
    missing or refuses.
    """
    flags = (*COMMON_FLAGS, *program.flags, *(STRICT_FLAGS if strict else ()))
    key = identity(
        {
            "name": program.name,
            "sources": _hashes(program),
            "compiler": compiler_identity(program.compiler),
            "libc": _static_libc(program.arch) if "-static" in flags else "",
            "flags": flags,
        }
    )
    name = f"{program.name}-{program.arch}" if program.arch else program.name
    built = cache_dir("native") / f"{name}-{key[:32]}"
    output = built / program.name
    if output.is_file():
        return output
    with locked(built.name, f"compiling {program.name}", talk):
        if not output.is_file():
            talk(f"compiling {program.name}")
            with new_folder(built) as folder:
                _compile(program, flags, folder / program.name)
    return output


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


@functools.cache
def compiler_identity(compiler: str = COMPILER) -> str:
    """The hash of what a compiler says of itself."""
    said = run([compiler, "-v"])
    # The last line names version and package; the rest is how it was configured.
    return hashlib.sha256(said.stderr.encode()).hexdigest()


@functools.cache
def _static_libc(arch: str) -> str:
    """The hash of the C library that is linked into static programs."""
    if arch:
        return sha256_file(target(arch).static_libc())
    path = Path(run([COMPILER, "-print-file-name=libc.a"]).stdout.strip())
    if not path.is_absolute():
        raise LabError(
            "the static C library is missing", "on Debian or Ubuntu: sudo apt-get install libc6-dev"
        )
    return sha256_file(path)


def _compile(program: NativeProgram, flags: tuple[str, ...], output: Path) -> None:
    find_program("ld")
    # Relative names and the prefix map keep the checkout's path out of the result (__FILE__).
    argv = [
        program.compiler,
        *flags,
        *(f"-I{include}" for include in program.includes),
        *(f"-ffile-prefix-map={include}={include.name}" for include in program.includes),
        "-o",
        str(output),
        *program.sources,
    ]
    result = run(argv, cwd=program.folder)
    if result.ok:
        return
    if (full := os.strerror(errno.ENOSPC)) in result.stderr:
        raise os_failure(OSError(errno.ENOSPC, full), "compiling", output)
    log = cache_dir("logs") / f"{program.name}-build.log"
    write_atomic(log, (shlex.join(argv) + "\n" + result.stderr).encode())
    first = next(
        (line for line in result.stderr.splitlines() if "error:" in line or "undefined" in line),
        result.last_words(1),
    )
    raise LabError(f"compiling {program.name} failed: {first}", f"all it said is in {log}")
