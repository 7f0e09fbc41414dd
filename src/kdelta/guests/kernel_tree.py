# SPDX-License-Identifier: GPL-2.0-or-later
"""A part of a kernel's source that a guest compiles: made ready once, then in the cache.

The compiler is the guest's own, out of its packages. So make finds all that it checks up to date,
and each object that it makes in the guest must be, byte for byte, the one that was made here.
"""

import fnmatch
import re
import shlex
import shutil
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kdelta.guests.job import JobFile
from kdelta.guests.userland import Userland
from kdelta.host.command import Log, quiet, run_program
from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors, remove, write_atomic
from kdelta.host.gcc import Compiler, compiler_identity
from kdelta.host.lock import fill_once
from kdelta.host.machine import cores
from kdelta.host.pin import Pin, gcc_part, obtain_part
from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.kbuild.failure import first_error, lab_failure
from kdelta.kernels.kbuild.toolchain import FIXED, build_environment
from kdelta.kernels.objects.cmdfiles import cmd_path
from kdelta.kernels.sources.git import GitStore
from kdelta.kernels.sources.patches import PatchFailure
from kdelta.kernels.sources.source import Source, source_of
from kdelta.spec.errors import LabError
from kdelta.spec.identity import identity
from kdelta.spec.kernel import DebSrcSpec, GitSpec, TreeSpec, parse_kernel_spec
from kdelta.workloads.catalog import KernelTreeWanted

RULES = 2
"""Changes with how a tree is made ready."""

TREE = "tree"
HOST_COMPILER = "cc"
"""As the HOSTCC= of workload.toml has it: under this name the guest's compiler is not known."""
_WORK = "work"
_PROGRAMS = "programs"
_PACKED = "source.tar"
_EVERYWHERE = tuple(f":(glob)**/{name}*" for name in ("Kconfig", "Kbuild", "Makefile"))
_TOOLS = frozenset({"ar", "as", "cc1", "ld", "nm", "objcopy", "objdump", "readelf", "strip"})
_DEPENDENCY = re.compile(r"^ {2}(\S+) \\$", re.MULTILINE)
# It names all Kconfig files. make looks for each of them, and would configure again without them.
_NO_KCONFIG = "include/config/auto.conf.cmd"
_RECORD = "tree.json"
_BESIDES = ("objects", "make")


def make_words(wanted: KernelTreeWanted) -> list[str]:
    """What make is given, here and in the guest, besides targets and how many jobs."""
    return [*wanted.make, *(f"{name}={value}" for name, value in FIXED.items())]


class Preparation:
    """One tree that is made ready in a folder, which is left with what guests get, in TREE."""

    def __init__(
        self,
        wanted: KernelTreeWanted,
        source: Source,
        config: str,
        folder: Path,
        by: Compiler,
    ) -> None:
        self._wanted = wanted
        self._by = by
        self._source = source
        self._config = config
        self._folder = folder
        self._work = folder / _WORK
        self._bin = folder / _PROGRAMS / "bin"

    def make_ready(self, programs: Sequence[JobFile]) -> dict[str, int]:
        """Does all of it with the compiler among these programs. The CRC-32 of each object, by its
        path. LabError when a program is missing here, or the tree does not compile.
        """
        self._take_source()
        self._install(programs)
        self._configure()
        self._make(["prepare"])
        self._make(self._wanted.objects)
        with lab_errors("reading", self._work):
            found = {
                name: zlib.crc32((self._work / name).read_bytes()) for name in self._wanted.objects
            }
        self._ship()
        for name in (_WORK, _PROGRAMS, _PACKED):
            remove(self._folder / name)
        return found

    def _take_source(self) -> None:
        packed = self._folder / _PACKED
        paths = ["Kbuild", "Makefile", *_EVERYWHERE, *self._wanted.source_paths]
        store = GitStore(self._source.folder)
        store.git("archive", f"--output={packed}", self._source.tree, "--", *paths)
        with lab_errors("unpacking", packed), tarfile.open(packed) as archive:
            # Python has it since 3.11.4.
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda one, _: one)
            archive.extractall(self._work)

    def _install(self, programs: Sequence[JobFile]) -> None:
        """The guest's compiler and binutils as programs of this host, in a folder for PATH."""
        root, libraries = self._folder / _PROGRAMS / "root", self._folder / _PROGRAMS / "lib"
        compiler = root / self._wanted.compiler.lstrip("/")
        with lab_errors("writing", root):
            for folder in (libraries, self._bin):
                folder.mkdir(parents=True)
            for file in programs:
                place = root / file.guest.lstrip("/")
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.host, place)
                place.chmod(0o755)
                if ".so" in place.name:
                    shutil.copy(place, libraries / place.name)
            helpers = f"-B{self._bin}/"
            self._script(compiler.name, compiler, helpers)
            for program in (*compiler.parent.iterdir(), *root.rglob("cc1")):
                if program.name in _TOOLS:
                    self._script(program.name, program)
        if pin := self._by.pin:
            tree = obtain_part(pin, gcc_part(self._by.arch), quiet)
            self._script(HOST_COMPILER, compiler, helpers, *_of_programs(tree))
            cc1 = next(file.host for file in programs if file.host.name == "cc1")
            self._script("collect2", cc1.with_name("collect2"))

    def _script(self, name: str, program: Path, *words: str) -> None:
        """A program of that name, started by its own loader, if it brought one, and libraries."""
        libraries = self._folder / _PROGRAMS / "lib"
        loader = next(libraries.glob("ld-linux*.so.*"), None)
        starts = [str(loader), "--library-path", str(libraries)] if loader else []
        script = self._bin / name
        with lab_errors("writing", script):
            line = shlex.join([*starts, str(program), *words])
            script.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
            script.chmod(0o755)

    def _configure(self) -> None:
        asked = self._folder / _WORK / ".config.asked"
        with lab_errors("writing", asked):
            asked.write_text(self._config)
        self._make([f"KCONFIG_ALLCONFIG={asked.name}", "allnoconfig"])
        with lab_errors("reading", self._work):
            granted = parse_config((self._work / ".config").read_text())
        refused = [
            name
            for name, value in parse_config(self._config).items()
            if granted.get(name, "n") != value
        ]
        if refused:
            raise LabError(
                f"{self._source.name} does not grant {', '.join(refused)} of {self._wanted.config}",
                "the workload is for another kernel's source",
            )

    def _make(self, targets: Sequence[str]) -> None:
        env = build_environment(self._folder)
        env["PATH"] = f"{self._bin}:{env['PATH']}"
        argv = ["make", "-s", f"-j{cores()}", *make_words(self._wanted), *targets]
        done = run_program(argv, cwd=self._work, env=env)
        if done.ok:
            return
        lines = [*done.stderr.splitlines(), *done.stdout.splitlines()]
        raise lab_failure(lines, self._work) or LabError(
            f"{self._source.name} cannot be made ready for guests: "
            f"{first_error(lines, self._work)}",
            "kdelta doctor lists what building a kernel needs",
        )

    def _ship(self) -> None:
        """Copies what make looks at in the guest."""
        needed: set[str] = set()
        files = {
            path.relative_to(self._work).as_posix()
            for path in self._work.rglob("*")
            if path.is_file() and not path.is_symlink()
        }
        for glob in self._wanted.guest_paths:
            needed.update(fnmatch.filter(files, glob))
        for path in fnmatch.filter(files, "*.cmd"):
            needed |= self._dependencies(path) & files
        needed.update(str(Path(name).with_suffix(".c")) for name in self._wanted.objects)
        needed |= {cmd_path(Path(path)).as_posix() for path in needed} & files
        for name in self._wanted.objects:
            needed -= {name, cmd_path(Path(name)).as_posix()}
        for glob in ("scripts/kconfig/*", "*.d", "*.tmp"):
            needed.difference_update(fnmatch.filter(needed, glob))
        tree = self._folder / TREE
        with lab_errors("copying to", tree):
            for path in sorted(needed):
                place = tree / path
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self._work / path, place)
            (tree / _NO_KCONFIG).write_text("")

    def _dependencies(self, cmd: str) -> set[str]:
        """What a .cmd file of the tree says that its target was made from."""
        if cmd == _NO_KCONFIG or cmd.startswith("scripts/kconfig/"):
            return set()
        with lab_errors("reading", self._work):
            found = _DEPENDENCY.findall((self._work / cmd).read_text())
        return {str(Path(name)) for name in found}


class KernelTree(msgspec.Struct, frozen=True):
    """Files of a guest, and of which source they are."""

    files: tuple[JobFile, ...]
    source: str


def kernel_tree(
    wanted: KernelTreeWanted,
    workload: Path,
    programs: Userland,
    log: Log,
    *,
    by: Compiler,
    part: str,
) -> KernelTree:
    """The tree that `wanted` describes, made ready unless the cache has it; `workload` is the
    folder of the workload, `programs` its userland, which the guest's compiler is of. `by` compiles
    the tree's own programs; if it is a pin's, that has the source as `part`.

    Next to the tree lie PLACE.objects, a line of CRC-32 (hexadecimal) and path for each object, and
    PLACE.make, a line for each word that make is to be given.
    LabError when the source cannot be had, or does not compile here.
    """
    source = _pinned_source(by.pin, part, log) if by.pin else _source(wanted, log)
    with lab_errors("reading", workload / wanted.config):
        config = (workload / wanted.config).read_text()
    facts = {
        "rules": RULES,
        "tree": source.tree,
        "config": config,
        "wanted": msgspec.to_builtins(wanted),
        "packages": programs.packages,
        # It makes the tree's own programs (fixdep), which run in the guest.
        "host_compiler": by.pin.digest if by.pin else compiler_identity(HOST_COMPILER),
    }
    folder = cache_dir("kernel-trees") / identity(facts)[:32]

    def fill(partial: Path) -> None:
        log(f"preparing {source.name} to be compiled in guests")
        made = Preparation(wanted, source, config, partial, by).make_ready(programs.files)
        objects = [f"{crc:08x} {name}" for name, crc in made.items()]
        for name, lines in zip(_BESIDES, (objects, make_words(wanted)), strict=True):
            write_atomic(partial / name, "".join(f"{line}\n" for line in lines).encode())
        write_atomic(partial / _RECORD, msgspec.json.encode({"source": source.name}))

    return _kept(wanted, fill_once(folder, f"preparing {source.name}", log, fill, adopted=True))


def _of_programs(tree: Path) -> list[str]:
    """Options by which the pin's compiler makes programs, with the C library of that tree."""
    own = next(tree.glob("usr/lib/gcc/*/*/crtbeginT.o")).parent
    return [f"-B{own}/", f"--sysroot={tree}", "-fno-lto", "-fno-use-linker-plugin"]


def _source(wanted: KernelTreeWanted, log: Log) -> Source:
    spec = parse_kernel_spec(wanted.source)
    if not isinstance(spec, DebSrcSpec | TreeSpec | GitSpec):
        raise LabError(f"{wanted.source} is no source", "name one in workload.toml")
    source = source_of(spec, log)
    assert not isinstance(source, PatchFailure)
    return source


def _pinned_source(pin: Pin, part: str, log: Log) -> Source:
    packed = next(obtain_part(pin, part, log).glob("usr/src/linux-source-*.tar.*"))
    source = source_of(TreeSpec(str(packed)), log)
    assert not isinstance(source, PatchFailure)
    return source


def _kept(wanted: KernelTreeWanted, folder: Path) -> KernelTree:
    tree = folder / TREE
    with lab_errors("reading", folder):
        record = msgspec.json.decode((folder / _RECORD).read_bytes(), type=dict[str, str])
        files = [
            JobFile(path, f"{wanted.place}/{path.relative_to(tree)}", path.stat().st_mode & 0o777)
            for path in sorted(tree.rglob("*"))
            if path.is_file()
        ]
    besides = [JobFile(folder / name, f"{wanted.place}.{name}") for name in _BESIDES]
    return KernelTree((*files, *besides), record["source"])
