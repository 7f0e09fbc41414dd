# SPDX-License-Identifier: GPL-2.0-or-later
"""deb:PACKAGE[=VERSION] -> kernel: downloaded by apt, unpacked without root, kept in the cache."""

import difflib
from collections.abc import Callable
from pathlib import Path

import msgspec

from kdelta.host.dirs import cache_dir
from kdelta.host.files import new_folder, remove, sha256_file, write_atomic
from kdelta.host.lock import locked
from kdelta.kernels.apt import Apt, OutdatedListsError
from kdelta.kernels.cache import RECORD, CachedKernel, cached_kernels, kernel_folder, load
from kdelta.kernels.image import ARCH, hash_modules
from kdelta.kernels.inspect import inspect
from kdelta.kernels.model import Kernel, kernel_identity
from kdelta.kernels.unpack import unpack_kernel
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.identity import identity
from kdelta.spec.kernel import DebSpec

Talk = Callable[[str], None]

MAX_META_STEPS = 5
KERNEL_NAMES = "linux-image-"


def obtain_deb(spec: DebSpec, talk: Talk) -> Kernel:
    """The kernel of a package. A package that only depends on the current kernel is followed to it.

    UserError for a package or version that does not exist or holds no kernel for the lab; LabError
    when it has to be downloaded and cannot be.
    """
    if spec.version is not None and (entry := load(spec.package, spec.version)):
        return entry.kernel()
    if spec.package.endswith(("-dbg", "-dbgsym")):
        raise UserError(
            f"{spec.package} holds debug information, no kernel",
            f"write deb:{spec.package.rpartition('-')[0]}",
        )
    apt = Apt.best()
    if entry := _resolved_before(apt, spec, talk):
        return entry.kernel()
    found = _resolve(apt, spec, talk)
    if found:
        _remember(apt, spec, found)
    if found is None and not apt.names(KERNEL_NAMES):
        if entry := _newest_cached(spec):
            talk(f"apt has no package lists; taking the newest in the cache, {entry.version}")
            return entry.kernel()
        apt = _update(spec, talk)
        found = _resolve(apt, spec, talk)
    if found is None:
        raise _unknown(apt, spec)
    if entry := load(found.package, found.version or ""):
        return entry.kernel()
    try:
        return _fetch(apt, found, talk)
    except OutdatedListsError:
        apt = _update(spec, talk)
        newer = _resolve(apt, spec, talk)
    if newer is None:
        raise _unknown(apt, spec)
    try:
        return _fetch(apt, newer, talk)
    except OutdatedListsError as error:
        raise LabError(f"the mirror does not have {newer}: {error}", "try again later") from error


class _Answer(msgspec.Struct, frozen=True):
    """What a spec stood for when apt was in that state."""

    state: str
    package: str
    version: str


def _answer_file(spec: DebSpec) -> Path:
    return cache_dir("apt-answers") / f"{identity(str(spec))[:32]}.json"


def _resolved_before(apt: Apt, spec: DebSpec, talk: Talk) -> CachedKernel | None:
    """The cached kernel that the spec stands for, unless apt might say another thing now.

    Each question to apt can take a second, on systems that keep no cache of their package lists.
    """
    try:
        answer = msgspec.json.decode(_answer_file(spec).read_bytes(), type=_Answer)
    except (OSError, msgspec.DecodeError):
        return None
    if answer.state != apt.state():
        return None
    entry = load(answer.package, answer.version)
    if entry and answer.package != spec.package:
        talk(f"{spec.package} stands for {answer.package} {answer.version}")
    return entry


def _remember(apt: Apt, spec: DebSpec, found: DebSpec) -> None:
    answer = _Answer(apt.state(), found.package, found.version or "")
    write_atomic(_answer_file(spec), msgspec.json.encode(answer))


def _resolve(apt: Apt, spec: DebSpec, talk: Talk) -> DebSpec | None:
    """The package that holds the kernel, with its version; None if there is no such package."""
    package, version = spec.package, spec.version
    for _ in range(MAX_META_STEPS):
        if version is None:
            version = apt.candidate(package)
        if version is None or version not in apt.versions(package):
            return None
        onward = [
            dependency
            for dependency in apt.dependencies(package, version)
            if dependency.package.startswith(KERNEL_NAMES) and dependency.package != package
        ]
        if not onward:
            return DebSpec(package, version)
        talk(f"{package} {version} stands for {onward[0].package}")
        package, version = onward[0].package, onward[0].version
    raise UserError(f"{spec} leads from package to package and to no kernel")


def _unknown(apt: Apt, spec: DebSpec) -> UserError:
    if versions := apt.versions(spec.package):
        return UserError(
            f"{spec.package} has no version {spec.version}"
            if spec.version
            else f"{spec.package} cannot be had in any version",
            f"there is: {', '.join(versions)}",
        )
    names = [name for name in apt.names(KERNEL_NAMES) if not name.endswith(("-dbg", "-unsigned"))]
    near = difflib.get_close_matches(spec.package, names, n=5, cutoff=0.6)
    cached = _cached_text(spec)
    return UserError(
        f"apt knows no package {spec.package}",
        (f"the nearest: {', '.join(near)}" if near else "see: apt-cache search linux-image")
        + (f"; {cached}" if cached else ""),
    )


def _update(spec: DebSpec, talk: Talk) -> Apt:
    apt = Apt.with_own_lists()
    with locked("apt-lists", "loading package lists", talk):
        try:
            apt.update(talk)
        except LabError as error:
            raise _not_to_be_had(spec, error) from error
    return apt


def _fetch(apt: Apt, found: DebSpec, talk: Talk) -> Kernel:
    """Downloads and unpacks one package, unless another process did so meanwhile."""
    version = found.version or ""
    folder = kernel_folder(found.package, version)
    with locked(folder.name, f"fetching {folder.name}", talk):
        if entry := load(found.package, version):
            return entry.kernel()
        talk(f"downloading {found.package} {version}")
        with new_folder(folder) as partial:
            try:
                package = apt.download(found.package, version, partial)
            except LabError as error:
                raise _not_to_be_had(found, error) from error
            talk(f"unpacking {found.package}")
            unpack_kernel(package, partial)
            remove(package)
            entry = _record(found.package, version, partial)
            write_atomic(partial / RECORD, msgspec.json.format(msgspec.json.encode(entry)))
        return entry.kernel()


def _record(package: str, version: str, folder: Path) -> CachedKernel:
    images = sorted(folder.glob("boot/vmlinuz-*"))
    if not images:
        raise UserError(
            f"the package {package} holds no kernel", "see: apt-cache search linux-image"
        )
    facts = inspect(images[0])
    modules = folder / "lib/modules" / facts.release
    config = folder / "boot" / f"config-{facts.release}"
    image_sha256 = sha256_file(images[0])
    present = modules if modules.is_dir() else None
    return CachedKernel(
        package=package,
        version=version,
        identity=kernel_identity(ARCH, image_sha256, hash_modules(present)),
        arch=ARCH,
        release=facts.release,
        banner=facts.banner,
        image=str(images[0].relative_to(folder)),
        image_sha256=image_sha256,
        config=str(config.relative_to(folder)) if config.is_file() else None,
        modules=str(modules.relative_to(folder)) if present else None,
    )


def _not_to_be_had(spec: DebSpec, error: LabError) -> LabError:
    cached = _cached_text(spec)
    return LabError(
        f"{spec} is not in the cache, and cannot be fetched: {error.message}",
        "check the network and the disk, then run this again" + (f"; {cached}" if cached else ""),
    )


def _cached_text(spec: DebSpec) -> str:
    """What the cache has, the versions of the same package first."""
    entries = sorted(cached_kernels(), key=lambda entry: entry.package != spec.package)
    named = [str(DebSpec(entry.package, entry.version)) for entry in entries[:3]]
    return f"in the cache: {', '.join(named)}" if named else ""


def _newest_cached(spec: DebSpec) -> CachedKernel | None:
    """The newest of the package's kernels in the cache, by when it was fetched."""
    entries = [
        entry
        for entry in cached_kernels()
        if entry.package == spec.package and spec.version in (None, entry.version)
    ]
    return max(
        entries,
        key=lambda entry: kernel_folder(entry.package, entry.version).stat().st_mtime,
        default=None,
    )
