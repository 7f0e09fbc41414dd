# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache of kernels that were built: one folder each, with the record of how it came about."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kdelta.host.cache import BUILT_PREFIX
from kdelta.host.dirs import cache_dir
from kdelta.host.files import PARTIAL, lab_errors, read_json, remove, sha256_file
from kdelta.host.in_use import release, unused
from kdelta.host.manifest import forget as forget_manifest
from kdelta.host.manifest import whole_record
from kdelta.host.sealed import read_sealed, write_sealed
from kdelta.kernels.arches import kernel_arch
from kdelta.kernels.config.kconfig import Config, OptionFlip
from kdelta.kernels.config.lab_config import MissingOption
from kdelta.kernels.kbuild.linked_map import Linked
from kdelta.kernels.model import Kernel
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.note import SpecNote

RECORD = "kernel.json"
DIGEST = "digest"
DEPENDENCIES = "dependencies.json.gz"
LOG = "build.log"
VMLINUX = "vmlinux"
DTBS = "dtbs"
"""The folder of the device trees that its machines need."""
FORMAT = 1


class BuiltKernel(msgspec.Struct, frozen=True):
    """The record of a built kernel; paths are relative to its folder, which may be moved.

    `spec` is how it was first asked for; others may lead to it. `tree` is git's hash of the source,
    patches applied, and `source` its name for people; `folder` is where it is kept. `asked`, `lab`,
    `changed`, `derived`, `unknown`, `idle`, `missing`: see Configured. `modules_left` options were
    modules that were not asked for. `linked`: of one that was relinked. `given`: what the files of
    `spec` were taken for, and which hunks of them were applied with fuzz.
    """

    key: str
    identity: str
    spec: str
    tree: str
    source: str
    folder: str
    arch: str
    flavour: str
    variables: dict[str, str]
    versions: tuple[str, ...]
    release: str
    banner: str
    image: str
    image_format: str
    image_sha256: str
    config: str
    modules: str | None
    base: str
    asked: Config
    lab: tuple[OptionFlip, ...]
    changed: tuple[OptionFlip, ...]
    missing: tuple[MissingOption, ...]
    modules_left: int
    seconds: float
    image_bytes: int
    linked: Linked | None = None
    derived: tuple[OptionFlip, ...] = ()
    unknown: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    format: int = FORMAT

    @property
    def path(self) -> Path:
        return built_folder(self.key)

    def kernel(self, spec: str, notes: tuple[SpecNote, ...] = ()) -> Kernel:
        """The kernel as that spec asked for it, with the paths that its files have now."""
        path = self.path
        return Kernel(
            identity=self.identity,
            spec=spec,
            image=str(path / self.image),
            arch=kernel_arch(self.arch).machine,
            release=self.release,
            config=str(path / self.config),
            modules=str(path / self.modules) if self.modules else None,
            banner=self.banner,
            image_format=self.image_format,
            built=self.key,
            device_trees=str(path / DTBS) if (path / DTBS).is_dir() else None,
            notes=notes,
        )


def built_folder(key: str) -> Path:
    """Where the kernel of that key is or would be."""
    return cache_dir("kernels") / f"{BUILT_PREFIX}{key[:32]}"


def load_built(key: str) -> BuiltKernel | None:
    """The kernel of that key, if it is there and as it was made. It is in use from then on:
    no process removes it before this one has ended.
    """
    folder = built_folder(key)
    found = whole_record(folder, RECORD, BuiltKernel, lambda record: _is_of(folder, record))
    if found is None or found.format != FORMAT:
        return None
    return found


def _is_of(folder: Path, record: BuiltKernel) -> bool:
    """Whether a folder without a manifest holds that kernel."""
    image = folder / record.image
    return image.is_file() and sha256_file(image) == record.image_sha256


def forget_built(built: BuiltKernel) -> None:
    """Removes a kernel from the cache; LabError while another process uses it."""
    release(built.path)
    with unused(built.path) as free:
        if not free:
            raise LabError(
                f"the kernel in {built.path} is in use, and has to be built again",
                "run this again when the other kdelta has ended",
            )
        remove(built.path)
        forget_manifest(built.path)


def built_kernels() -> list[BuiltKernel]:
    """All built kernels, those used last first."""
    root = cache_dir("kernels")
    with lab_errors("reading", root):
        whole = (path for path in root.glob(f"{BUILT_PREFIX}*") if not path.name.endswith(PARTIAL))
        folders = sorted(whole, key=_last_used, reverse=True)
    return [found for folder in folders if (found := read_json(folder / RECORD, BuiltKernel))]


def _last_used(folder: Path) -> float:
    # Another process may have removed it meanwhile.
    with contextlib.suppress(FileNotFoundError):
        return folder.stat().st_mtime
    return 0.0


def find_built(name: str) -> BuiltKernel:
    """Return the built kernel whose key or identity begins so, or that was asked for by this spec;
    UserError if that is none, or more than one.
    """
    found = [
        built
        for built in built_kernels()
        if name == built.spec
        or (len(name) >= 4 and name in (built.key[: len(name)], built.identity[: len(name)]))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        keys = ", ".join(built.key[:12] for built in found)
        raise UserError(f"{name!r} is more than one kernel: {keys}", "write more of its key")
    near = [one.key[:12] for one in built_kernels() if name in one.spec or name in one.release]
    hint = (
        f"there is: {', '.join(near[:5])}; kdelta kernels lists all"
        if near
        else "kdelta kernels lists those there are"
    )
    raise UserError(f"no built kernel is called {name!r}", hint, (name, near[0]) if near else None)


class Memo:
    """What a question led to before, a line of text, so that kbuild need not be asked again. By
    default questions are requests for kernels, and answers their keys; what came of a request's
    config is kept with them, since others may lead to the same kernel.
    """

    def __init__(self, question: str, folder: str = "built-answers") -> None:
        self._path = cache_dir(folder) / f"{question[:32]}.txt"

    def key(self) -> str | None:
        """What this question led to before."""
        kept = read_sealed(self._path)
        return None if kept is None else kept.decode().partition("\n")[0]

    def notes(self) -> tuple[SpecNote, ...]:
        """What was remembered with it."""
        _, _, kept = (read_sealed(self._path) or b"").partition(b"\n")
        return msgspec.json.decode(kept, type=tuple[SpecNote, ...]) if kept else ()

    def remember(self, key: str, notes: Sequence[SpecNote] = ()) -> None:
        kept = msgspec.json.encode(notes) if notes else b""
        write_sealed(self._path, b"\n".join([key.encode(), *([kept] if kept else [])]))
