# SPDX-License-Identifier: GPL-2.0-or-later
"""What compiles C here: the host's gcc, or that of the pin, whose programs are the same everywhere.

Of the pin's gcc only the compiler proper is fetched, without the driver: its packages are half as
large. So the steps that the driver takes are taken here, with the options that Debian's has.
"""

import functools
import hashlib
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kdelta.host.command import Result, find_program, quiet, run_program
from kdelta.host.files import sha256_file
from kdelta.host.loading import loading
from kdelta.host.pin import Pin, gcc_part, obtain_part
from kdelta.host.target import HOST_COMPILER, Target, host_libc, target
from kdelta.spec.errors import LabError

_OF_LINKER = re.compile(r"-(static|no-pie|shared|pthread|Wl,.*)")


class Compiler(msgspec.Struct, frozen=True):
    """The host's compiler for guests of the architecture `arch`; an empty one is this host. With a
    `pin`, the compiler of that: its programs do not depend on the host.
    """

    arch: str = ""
    pin: Pin | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """What decides the programs that it makes: itself, and the C library of static ones.
        LabError, with what to install, when they are not there.
        """
        if self.pin:
            return self.pin.digest, self.pin.digest
        libc = target(self.arch).static_libc() if self.arch else host_libc()
        return compiler_identity(self._program), sha256_file(libc)

    @property
    def title(self) -> str:
        """What reports call it."""
        if self.pin:
            return self.pin.compiler_title
        return _version(self._program)

    @property
    def _program(self) -> str:
        return target(self.arch).find_compiler() if self.arch else HOST_COMPILER

    def compile(
        self, sources: Sequence[str], flags: Sequence[str], output: Path, folder: Path
    ) -> tuple[Result, Sequence[str]]:
        """Compiles and links `sources` (relative to `folder`; with objects) as `gcc FLAGS -o OUTPUT
        SOURCES` does. Returns how that ended, and the command line that was executed last.
        """
        if self.pin:
            return _Steps(self.pin, target(self.arch), flags, folder).compile(sources, output)
        find_program("ld")
        argv = [self._program, *flags, "-o", str(output), *sources]
        return run_program(argv, cwd=folder), argv


@functools.cache
def compiler_identity(compiler: str = HOST_COMPILER) -> str:
    """The hash of what a compiler of the host reports of itself."""
    # The last line names version and package; the rest is how it was configured.
    return hashlib.sha256(run_program([compiler, "-v"]).stderr.encode()).hexdigest()


@functools.cache
def _version(compiler: str) -> str:
    return run_program([compiler, "--version"]).stdout.partition("\n")[0]


class _Steps:
    """The pin's compiler, assembler and linker for one program."""

    def __init__(self, pin: Pin, of: Target, flags: Sequence[str], folder: Path) -> None:
        self._of = of
        self._flags = flags
        self._folder = folder
        self._tree = obtain_part(pin, gcc_part(of.name), quiet)
        self._loading = list(loading(self._tree))
        self._own = self._found(f"usr/lib/gcc*/{of.triple}/*/crtbeginT.o").parent
        folders = (f"usr/lib/{of.triple}", f"usr/{of.triple}/lib")
        self._libc = self._found(*(f"{folder}/crt1.o" for folder in folders)).parent

    def _found(self, *patterns: str) -> Path:
        found = (path for one in patterns for path in sorted(self._tree.glob(one)))
        if (path := next(found, None)) is None:
            raise LabError(
                f"the pinned compiler is damaged: {self._tree} has no {patterns[0]}",
                "remove that folder, and it is unpacked again",
            )
        return path

    def compile(self, sources: Sequence[str], output: Path) -> tuple[Result, Sequence[str]]:
        """See Compiler."""
        with tempfile.TemporaryDirectory(prefix="kdelta-cc-") as name:
            objects = [Path(name) / f"{number}.o" for number in range(len(sources))]
            for source, to in zip(sources, objects, strict=True):
                if source.endswith(".o"):
                    to.symlink_to(self._folder / source)
                    continue
                assembly = to.with_suffix(".s")
                for argv in (self._cc1(source, assembly), self._as(assembly, to)):
                    result = run_program(argv, cwd=self._folder)
                    if not result.ok:
                        return result, argv
            argv = self._ld(objects, output)
            return run_program(argv, cwd=self._folder), argv

    def _cc1(self, source: str, output: Path) -> list[str]:
        cc1 = self._found(f"usr/libexec/gcc*/{self._of.triple}/*/cc1")
        threads = ["-D_REENTRANT"] if "-pthread" in self._flags else []
        flags = [flag for flag in self._flags if not _OF_LINKER.fullmatch(flag)]
        return [
            *self._loading, str(cc1), "-quiet", "-nostdinc", *self._headers(), *self._of.cc1_flags,
            *threads, *flags, "-o", str(output), source,
        ]  # fmt: skip

    def _headers(self) -> Iterator[str]:
        triple = self._of.triple
        places = (f"usr/include/{triple}", "usr/include", f"usr/{triple}/include")
        for place in (self._own / "include", *(self._tree / one for one in places)):
            if place.is_dir():
                yield from ("-isystem", str(place))

    def _as(self, source: Path, output: Path) -> list[str]:
        program = self._found(f"usr/bin/{self._of.triple}-as")
        return [*self._loading, str(program), *self._of.as_flags, "-o", str(output), str(source)]

    def _ld(self, objects: Sequence[Path], output: Path) -> list[str]:
        flags = self._flags
        options = [one for flag in flags if flag.startswith("-Wl,") for one in flag.split(",")[1:]]
        libraries = ["-lgcc", "-lc", "-lgcc"]
        if "-static" in flags:
            kind, first, begin, end = ["-static"], ["crt1.o"], "crtbeginT.o", "crtend.o"
            libraries = ["--start-group", "-lgcc", "-lgcc_eh", "-lc", "--end-group"]
        elif "-shared" in flags:
            kind, first, begin, end = ["-shared"], [], "crtbeginS.o", "crtendS.o"
        else:
            kind = ["-pie", "-dynamic-linker", self._of.loader]
            first, begin, end = ["Scrt1.o"], "crtbeginS.o", "crtendS.o"
        return [
            *self._loading, str(self._found(f"usr/bin/{self._of.triple}-ld")), *kind,
            f"--sysroot={self._tree}", "--build-id", "--hash-style=gnu", "--as-needed",
            *self._of.ld_flags, *options, "-o", str(output),
            *(str(self._libc / one) for one in (*first, "crti.o")), str(self._own / begin),
            f"-L{self._own}", f"-L{self._libc}", *map(str, objects), *libraries,
            str(self._own / end), str(self._libc / "crtn.o"),
        ]  # fmt: skip
