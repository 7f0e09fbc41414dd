# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel modules that a workload asks for, with what they depend on, in load order."""

import difflib
import functools
import gzip
import lzma
from collections.abc import Callable, Iterable
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from kdelta.guests.job import JobFile
from kdelta.host.command import log_to_stderr, piped
from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors, sha256_file, write_atomic
from kdelta.host.lock import fill_once
from kdelta.kernels.model import Kernel
from kdelta.kernels.packages.image import MODULE_ENDINGS
from kdelta.spec.errors import LabError, UserError


def modules_for(names: Iterable[str], kernel: Kernel) -> tuple[JobFile, ...]:
    """The files of modules and their dependencies, unpacked, each after what it depends on. What is
    built into the kernel is left out. UserError for a module that the kernel does not have.
    """
    names = [_normal(name) for name in names]
    if not names:
        return ()
    if kernel.modules is None:
        raise UserError(
            f"{kernel.spec} comes without modules, and {', '.join(names)} is asked for",
            "name their folder: image:PATH,modules=FOLDER",
        )
    tree = _ModuleTree(Path(kernel.modules))
    ordered: dict[str, Path] = {}
    for name in names:
        tree.add(name, ordered, ())
    return tuple(JobFile(path, f"/modules/{name}.ko") for name, path in ordered.items())


def modules_if_there(names: Iterable[str], kernel: Kernel) -> tuple[JobFile, ...]:
    """The files of those modules that the kernel has, and of what they need, in load order."""
    tree = _ModuleTree(Path(kernel.modules)) if kernel.modules else None
    return modules_for((name for name in names if tree and tree.has(_normal(name))), kernel)


def with_dependencies(module: Path, kernel: Kernel) -> tuple[JobFile, ...]:
    """The files of a module that is not the kernel's own and of what it needs, in load order.

    UserError if it needs what the kernel does not have.
    """
    needed = modules_for(_words(module_info(module), "depends"), kernel)
    return (*needed, JobFile(module, f"/modules/{module.name}"))


class _ModuleTree:
    """A folder lib/modules/RELEASE: which modules there are, and which are built in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with lab_errors("reading", folder):
            self._paths = {
                _normal(path.name.split(".ko")[0]): path
                for path in folder.rglob("*.ko*")
                if path.name.endswith(MODULE_ENDINGS)
            }
            listing = folder / "modules.builtin"
            built_in = listing.read_text().split() if listing.is_file() else []
        self._built_in = {_normal(Path(line).name.removesuffix(".ko")) for line in built_in}

    def has(self, name: str) -> bool:
        """Whether there is a file of that module: it can be loaded, and has to be."""
        return name in self._paths

    def add(self, name: str, ordered: dict[str, Path], above: tuple[str, ...]) -> None:
        """Adds a module to `ordered` after what it needs; `above` are those that need it."""
        if name in ordered or name in self._built_in:
            return
        if name in above:
            raise LabError(f"modules that need each other: {', '.join(above)}")
        if name not in self._paths:
            near = difflib.get_close_matches(name, self._paths, n=5)
            needed_by = f", which {above[-1]} needs" if above else ""
            raise UserError(
                f"no module {name}{needed_by} in {self._folder}",
                f"the nearest: {', '.join(near)}" if near else "",
            )
        path = unpacked_module(self._paths[name])
        info = module_info(path)
        for needed in _words(info, "depends"):
            self.add(needed, ordered, (*above, name))
        # A soft dependency may be missing; the module then works without it.
        for needed in _soft_dependencies(info):
            if needed in self._paths and needed not in above:
                self.add(needed, ordered, (*above, name))
        ordered[name] = path


def module_info(path: Path) -> list[tuple[str, str]]:
    """The keys and values of a module's .modinfo section."""
    try:
        with path.open("rb") as file:
            section = ELFFile(file).get_section_by_name(".modinfo")
            data = section.data() if section is not None else b""
    except (OSError, ELFError) as error:
        raise LabError(f"{path} is no kernel module: {error}") from error
    lines = data.decode("utf-8", "replace").split("\0")
    return [(key, value) for key, _, value in (line.partition("=") for line in lines if line)]


def _words(info: list[tuple[str, str]], wanted: str) -> list[str]:
    return [_normal(w) for key, value in info if key == wanted for w in value.split(",") if w]


def _soft_dependencies(info: list[tuple[str, str]]) -> list[str]:
    """What stands after "pre:" in the softdep lines."""
    found = []
    for line in (value for key, value in info if key == "softdep"):
        kind = ""
        for word in line.split():
            if word.endswith(":"):
                kind = word
            elif kind == "pre:":
                found.append(_normal(word))
    return found


def _normal(name: str) -> str:
    return name.replace("-", "_")


def unpacked_module(path: Path) -> Path:
    """The module as the kernel can load it: itself, or its unpacked copy in the cache."""
    if path.suffix == ".ko":
        return path
    folder = cache_dir("modules") / sha256_file(path)[:32]
    name = path.name.removesuffix(path.suffix)

    def fill(made: Path) -> None:
        write_atomic(made / name, _UNPACKERS[path.suffix](path))

    return fill_once(folder, f"unpacking {name}", log_to_stderr, fill, name)


def _decompressed(decompress: Callable[[bytes], bytes], path: Path) -> bytes:
    try:
        return decompress(path.read_bytes())
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise LabError(f"{path} is damaged: {error}") from error


def _unzstd(path: Path) -> bytes:
    def damaged(said: str) -> LabError:
        return LabError(f"{path} is damaged: {said or 'zstd failed'}")

    with piped(["zstd", "-q", "-d", "-c", path], damaged) as unpacked:
        return unpacked.read()


_UNPACKERS: dict[str, Callable[[Path], bytes]] = {
    ".gz": functools.partial(_decompressed, gzip.decompress),
    ".xz": functools.partial(_decompressed, lzma.decompress),
    ".zst": _unzstd,
}
