# SPDX-License-Identifier: GPL-2.0-or-later
"""Source spec -> a source tree at one state, its patches applied; and its files, checked out.

Every tree becomes a git tree in a store of kdelta's own, and its hash is what the source is known
by. The folder, repository or archive that it comes from is only read.
"""

import difflib
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from kdelta.host.command import Log
from kdelta.host.dirs import cache_dir
from kdelta.host.files import (
    PARTIAL,
    expanded,
    lab_errors,
    make_folder,
    partial_folder,
    read_json,
    remove,
    user_errors,
    write_json,
)
from kdelta.host.lock import locked
from kdelta.kernels.packages.packages import Shelf
from kdelta.kernels.packages.unpack import extract_source
from kdelta.kernels.sources.archive import import_archive, packer_of
from kdelta.kernels.sources.git import GitStore
from kdelta.kernels.sources.given import given_in, read_patches
from kdelta.kernels.sources.imports import check_commit, import_commit, import_folder
from kdelta.kernels.sources.mode_series import ModeSeries, kernel_mode_series
from kdelta.kernels.sources.patches import Patch, PatchFailure, apply_patches, with_fuzz
from kdelta.spec.change import Change, KernelModeChange, fuzz_of
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.kernel import DebSrcSpec, GitSpec, SourceSpec, TreeSpec
from kdelta.spec.meant import meant_by

_VERSION = re.compile(rb"^VERSION\s*=\s*\d", re.MULTILINE)
_RECORD = "source.json"
_MAKE_CANNOT = re.compile(r"[^A-Za-z0-9/._+@,~^-]")


class Source(msgspec.Struct, frozen=True):
    """A source tree at one state.

    `folder` holds git/ (kdelta's store), src/ (the files, when they are checked out) and out-*/
    (the builder's output). `tree` is git's hash of the content, patches applied: the identity.
    `name` is for people. `notes`: what may surprise in how patches were applied, in a line each.
    """

    folder: Path
    tree: str
    name: str
    notes: tuple[str, ...] = ()


class _Imported(msgspec.Struct, frozen=True):
    """What a store has of an archive or package, and by what that is known again."""

    origin: str
    tree: str
    package: str = ""
    version: str = ""


def source_of(spec: SourceSpec, log: Log) -> Source | PatchFailure:
    """The tree that a spec names, its patches applied in order; the other changes are no matter of
    the source.

    UserError when there is no such folder, commit, package or patch, or no kernel in it; LabError
    when it cannot be read or kept. Processes that want the same source wait for each other.
    """
    source = _unpatched(spec, log)
    makefile, series = None, None
    if has_kernel_mode(spec):
        makefile = source_file(source, "Makefile")
        series = kernel_mode_series(makefile)
    if not (patches := list(_patches(spec.changes, series))):
        return source
    with store_of(source.folder, log) as store:
        patched = apply_patches(store, source.tree, patches)
    if isinstance(patched, PatchFailure):
        return series.failed(patched, makefile) if series else patched
    for note in patched.notes:
        log(note)
    if patched.tree == source.tree:
        log(f"the patches change nothing of {source.name}: it is the same with them")
    return msgspec.structs.replace(source, tree=patched.tree, notes=patched.notes)


def has_kernel_mode(spec: SourceSpec) -> bool:
    """Whether the spec's changes make a kernel in whose mode programs can run."""
    return any(isinstance(change, KernelModeChange) for change in spec.changes)


def _patches(changes: Sequence[Change], series: ModeSeries | None) -> Iterator[Patch]:
    """The patches that changes name, in their order; those of kernel mode once, and exactly."""
    fuzz = fuzz_of(changes)
    for change in changes:
        if isinstance(change, KernelModeChange) and series is not None:
            for file in series.files:
                yield from read_patches(file).patches
            series = None
        elif given := given_in(change):
            yield from with_fuzz(given.patches, fuzz)


def source_folder(origin: str, name: str) -> Path:
    """Where the source of that origin is or would be kept. LabError for a cache in which make could
    not work.
    """
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "source"
    folder = cache_dir("trees") / f"{slug}-{hashlib.sha256(origin.encode()).hexdigest()[:12]}"
    if match := _MAKE_CANNOT.search(str(folder)):
        raise LabError(
            f"make cannot build in {folder}: its path has {match[0]!r}",
            "set KDELTA_CACHE_DIR to a folder whose path has letters, digits, and . _ - only",
        )
    return folder


def source_file(source: Source, path: str) -> str | None:
    """The text of a file of the source; None if it has none of that name. What is no UTF-8 comes
    back as it was by `with_files`.
    """
    content = GitStore(source.folder).blob(f"{source.tree}:{path}")
    return None if content is None else content.decode("utf-8", "surrogateescape")


def with_files(source: Source, files: Mapping[str, str], log: Log) -> Source:
    """The source with other texts in these files, all of which it has; they keep their modes."""
    with store_of(source.folder, log) as store:
        try:
            store.git("read-tree", source.tree, index="patch")
            for path, text in files.items():
                mode = store.git("ls-files", "-s", "--", path, index="patch").text.split()[0]
                content = text.encode("utf-8", "surrogateescape")
                made = store.git("hash-object", "-w", "--stdin", stdin=content).text
                store.git("update-index", "--cacheinfo", f"{mode},{made},{path}", index="patch")
            tree = store.git("write-tree", index="patch").text
        finally:
            remove(store.index("patch"))
    return msgspec.structs.replace(source, tree=tree)


def checked_out(source: Source, log: Log) -> Path:
    """Makes the source's src/ that content and returns it. Files that have it already keep their
    times, so that make rebuilds only what differs; all others get the time of now.

    The caller holds a lock for `source.folder`.
    """
    store = GitStore(source.folder)
    src = make_folder(source.folder / "src")
    if not store.index("src").exists():
        log(f"writing the files of {source.name}")
    store.check_out(source.tree, "src", src)
    remove(src / ".git")
    return src


@contextmanager
def store_of(folder: Path, log: Log) -> Iterator[GitStore]:
    """The store of a source's folder, for this process alone during the body."""
    with locked(f"source-{folder.name}", f"reading the source {folder.name}", log):
        store = GitStore(make_folder(folder))
        if not store.git_dir.is_dir():
            # Files without a store are of unknown content.
            remove(folder / "src")
        store.create()
        yield store


def _unpatched(spec: SourceSpec, log: Log) -> Source:
    if isinstance(spec, DebSrcSpec):
        return _Sources(log, suite=spec.suite).obtain(spec.package, spec.version)
    path = _resolved(spec)
    folder = source_folder(str(path), path.name)
    if isinstance(spec, GitSpec):
        with store_of(folder, log) as store:
            tree = import_commit(store, path, spec.revision, log)
            _must_be_kernel(store, tree, str(spec))
        return Source(folder, tree, f"{path.name}@{spec.revision}")
    if path.is_file():
        return _of_archive(path, folder, log)
    _must_look_like_kernel(path)
    with store_of(folder, log) as store:
        return Source(folder, import_folder(store, path, log), path.name)


def _resolved(spec: TreeSpec | GitSpec) -> Path:
    try:
        path = expanded(spec.path).resolve()
    except (OSError, RuntimeError) as error:
        raise UserError(f"not a path: {spec.path}: {error}") from error
    if not path.exists():
        raise _missing(path, spec)
    if isinstance(spec, GitSpec) and not path.is_dir():
        raise UserError(f"{path} is no folder", "write git:PATH@REV with a repository's folder")
    return path


def _missing(path: Path, spec: TreeSpec | GitSpec) -> UserError:
    """The slip of a path that is not there, with what is called nearly so."""
    there = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, there, n=1)
    named = f"it is named in the kernel spec {spec}"
    if not near:
        return UserError(f"there is no {path}", named)
    right = str(spec).removeprefix("tree:").replace(path.name, near[0])
    hint = f"{named}; did you mean {path.with_name(near[0])}?"
    return UserError(f"there is no {path}", hint, (str(spec).removeprefix("tree:"), right))


def check_source(spec: SourceSpec, log: Log) -> None:
    """UserError for what is no kernel's source, as far as a look at its path, at the names of the
    repository's commits or at the package lists shows.
    """
    if isinstance(spec, DebSrcSpec):
        _Sources(log, suite=spec.suite).check(spec.package, spec.version)
        return
    path = _resolved(spec)
    if isinstance(spec, GitSpec):
        check_commit(path, spec.revision)
    elif path.is_file():
        _must_be_archive(path)
    else:
        _must_look_like_kernel(path)


def _must_be_archive(file: Path) -> None:
    if packer_of(file) is not None:
        return
    if os.access(file, os.X_OK):
        raise UserError(
            f"{file} is a program, no kernel",
            f"write it behind all kernels, after --: kdelta compare BASE OTHER -- {file}",
        )
    meant = meant_by(str(file))
    raise UserError(
        f"{file} is neither a folder nor an archive (.tar, .tar.xz, .tar.gz, .tar.zst)",
        meant.advice if meant else f"for a kernel image write image:{file}",
    )


def _of_archive(file: Path, folder: Path, log: Log) -> Source:
    _must_be_archive(file)
    with lab_errors("reading", file):
        stat = file.stat()
    origin = f"{file} {stat.st_size} {stat.st_mtime_ns} {stat.st_ino}"
    with store_of(folder, log) as store:
        known = read_json(folder / _RECORD, _Imported)
        if known is None or known.origin != origin or not store.has(known.tree):
            log(f"reading {file}")
            known = _Imported(origin, import_archive(store, file))
            _must_be_kernel(store, known.tree, str(file))
            write_json(folder / _RECORD, known)
    return Source(folder, known.tree, file.name)


def _must_look_like_kernel(folder: Path) -> None:
    """UserError for a folder without a kernel's Makefile, before all of it is read."""
    if _is_kernel(folder):
        return
    with user_errors(folder):
        inner = sorted(path for path in folder.iterdir() if path.is_dir() and _is_kernel(path))
    if (folder / "source").is_symlink():
        hint = f"it looks like a build's output; its source is {(folder / 'source').resolve()}"
    elif (folder / "series").is_file() or any(folder.glob("*.patch")):
        hint = f"it has patches, which are a change: write +{folder} after a source"
    elif inner:
        hint = f"there is one in {inner[0]}"
    else:
        hint = "name the topmost folder of a kernel's source"
    raise UserError(f"{folder} is no kernel tree: {_MISSING}", hint)


_MISSING = "it has no Makefile with VERSION =, or neither Kconfig nor Kbuild"
_WITH_IT = ("Kconfig", "Kbuild")


def _is_kernel(folder: Path) -> bool:
    try:
        return bool(_VERSION.search((folder / "Makefile").read_bytes())) and any(
            (folder / name).exists() for name in _WITH_IT
        )
    except OSError:
        return False


def _must_be_kernel(store: GitStore, tree: str, named: str) -> None:
    if _holds_kernel(store, f"{tree}:"):
        return
    listed = store.git("ls-tree", "-d", "--name-only", "-z", tree).stdout
    folders = listed.decode("utf-8", "surrogateescape").split("\0")[:-1]
    inner = (one for one in folders if _holds_kernel(store, f"{tree}:{one}/"))
    hints = (f"there is one in its folder {folder}: name that" for folder in inner)
    hint = next(hints, "name the topmost folder of a kernel's source")
    raise UserError(f"{named} is no kernel tree: {_MISSING}", hint)


def _holds_kernel(store: GitStore, prefix: str) -> bool:
    return bool(_VERSION.search(store.blob(f"{prefix}Makefile") or b"")) and any(
        store.has(f"{prefix}{name}") for name in _WITH_IT
    )


class _Sources(Shelf[Source]):
    """Packages with a kernel's source, each in a store of its own."""

    start = "linux-source-"

    def spec(self, package: str, version: str | None) -> DebSrcSpec:
        return DebSrcSpec(package, version, suite=self.suite)

    def load(self, package: str, version: str) -> Source | None:
        spec = DebSrcSpec(package, version)
        folder = source_folder(str(spec), package)
        known = read_json(folder / _RECORD, _Imported)
        if known is None or known.origin != str(spec):
            return None
        is_there = GitStore(folder).has(f"{known.tree}^{{tree}}")
        return Source(folder, known.tree, f"{package} {version}") if is_there else None

    def cached(self) -> list[tuple[str, str, float]]:
        records = [
            (known, (folder / _RECORD).stat().st_mtime)
            for folder in sorted(cache_dir("trees").iterdir())
            if (known := read_json(folder / _RECORD, _Imported)) is not None
        ]
        return [(known.package, known.version, when) for known, when in records if known.package]

    def fetch(self, package: str, version: str, download: Callable[[Path], list[Path]]) -> Source:
        spec = DebSrcSpec(package, version)
        folder = source_folder(str(spec), package)
        with store_of(folder, self.log) as store:
            if source := self.load(package, version):
                return source
            with partial_folder(folder / f"download{PARTIAL}") as partial:
                archive = extract_source(download(partial)[0], partial)
                self.log(f"reading the source of {package} {version}")
                tree = import_archive(store, archive)
            _must_be_kernel(store, tree, str(spec))
            write_json(folder / _RECORD, _Imported(str(spec), tree, package, version))
        return Source(folder, tree, f"{package} {version}")
