# SPDX-License-Identifier: GPL-2.0-or-later
"""rpm: and pkg: -> kernel: packages of other package managers than dpkg, from files, addresses or
a repository, unpacked without that manager and kept in the cache of kernels.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from kdelta.host.command import Log
from kdelta.host.dirs import cache_dir
from kdelta.host.files import make_folder, remove, sha256_file, write_json
from kdelta.host.lock import locked
from kdelta.host.manifest import published_folder
from kdelta.kernels.model import Kernel
from kdelta.kernels.packages.cached import (
    RECORD,
    CachedKernel,
    cached_kernels,
    load_cached,
    record_of,
)
from kdelta.kernels.packages.remote import below, fetch, fetch_verified, local_path
from kdelta.kernels.packages.repository import RepositoryPackage, resolve
from kdelta.kernels.packages.unpack import unpack_kernel
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.identity import identity
from kdelta.spec.kernel import FilesSpec, RepositorySpec

_HINTS = {
    "rpm": "name the package with the image: kernel-core, kernel-default or the like",
    "pkg": "name the package with the image: linux, linux-lts or the like",
}


def obtain_files(spec: FilesSpec, log: Log) -> Kernel:
    """The kernel of package files. What an address has is fetched once.

    UserError for files that are no kernel for the lab; LabError for damaged ones, and what cannot
    be fetched.
    """
    paths = check_files(spec)
    # By the files' content, which the user may change, and by the addresses of others.
    key = [
        place if path is None else sha256_file(path)
        for place, path in zip(spec.places, paths, strict=True)
    ]

    def get(folder: Path) -> list[Path]:
        return [
            path or _downloaded(place, make_folder(folder / str(number)), log)
            for number, (place, path) in enumerate(zip(spec.places, paths, strict=True))
        ]

    named = ", ".join(map(_name, spec.places))
    return _kernel(f"{spec.kind}={identity(key)[:32]}", (named, ""), spec, get, log)


def check_files(spec: FilesSpec) -> list[Path | None]:
    """The files that a spec names, None of an address; UserError for one that is not there."""
    paths = [local_path(place) for place in spec.places]
    for path in paths:
        if path is not None and not path.is_file():
            raise UserError(f"no such file: {path}", f"see: ls {path.parent}")
    return paths


def obtain_from_repository(spec: RepositorySpec, log: Log) -> Kernel:
    """The kernel of a package in a repository, with the packages that hold its modules. A version
    that is in the cache needs no network.

    UserError for a package or version that does not exist; LabError for what cannot be fetched.
    """
    if spec.version and (entry := load_cached(cache_dir("kernels") / _folder(spec))):
        return entry.kernel()
    with tempfile.TemporaryDirectory(dir=cache_dir("work")) as work:
        log(f"reading the packages of {spec.repository}")
        try:
            packages = resolve(spec, Path(work))
        except LabError as error:
            raise LabError(error.message, _with_cached(error.hint, spec)) from error
    spec = msgspec.structs.replace(spec, version=packages[0].version)

    def get(folder: Path) -> list[Path]:
        return [_fetched(spec, one, folder, log) for one in packages]

    return _kernel(_folder(spec), (spec.package, packages[0].version), spec, get, log)


def _folder(spec: RepositorySpec) -> str:
    return f"{spec.kind}={identity(str(spec))[:32]}"


def _with_cached(hint: str, spec: RepositorySpec) -> str:
    start = f"{spec.kind}:{spec.package}="
    named = [one.spec for one in cached_kernels() if one.spec.startswith(start)][:3]
    return "; ".join(filter(None, (hint, f"in the cache: {', '.join(named)}" if named else "")))


def _fetched(spec: RepositorySpec, one: RepositoryPackage, folder: Path, log: Log) -> Path:
    place = spec.repository.rpartition("/")[0] if spec.kind == "pkg" else spec.repository
    log(f"downloading {one.name} {one.version}")
    path = make_folder(folder / one.name) / _name(one.file)
    fetch_verified(below(place, one.file), path, one.checksum)
    return path


def _downloaded(place: str, folder: Path, log: Log) -> Path:
    log(f"downloading {place}")
    fetch(place, folder / _name(place))
    return folder / _name(place)


def _name(place: str) -> str:
    return place.rpartition("/")[2]


def _kernel(
    name: str,
    package: tuple[str, str],
    spec: FilesSpec | RepositorySpec,
    get: Callable[[Path], list[Path]],
    log: Log,
) -> Kernel:
    """The kernel in that folder of the cache, which is made of the packages that `get` puts below
    an empty folder, or knows elsewhere.
    """
    folder = cache_dir("kernels") / name
    with locked(name, f"unpacking {package[0]}", log):
        entry = load_cached(folder)
        if entry is None:
            with published_folder(folder, log) as partial:
                downloads = make_folder(partial / "downloads")
                archives = get(downloads)
                log(f"unpacking {package[0]}")
                for archive in archives:
                    unpack_kernel(archive, partial)
                remove(downloads)
                entry = msgspec.structs.replace(
                    _record(partial, package, _HINTS[spec.kind]), spec=str(spec), folder=name
                )
                write_json(partial / RECORD, entry)
    if not any(Path(entry.path / (entry.modules or "-")).rglob("*.ko*")):
        log(f"{package[0]} has no modules: name the package that has them, too, after a comma")
    return entry.kernel()


def _record(folder: Path, package: tuple[str, str], hint: str) -> CachedKernel:
    entry = record_of(folder, *package, hint)
    others = [
        path.name for path in sorted(folder.glob("lib/modules/*")) if path.name != entry.release
    ]
    if others:
        raise UserError(
            f"the packages {package[0]} do not belong together: the kernel is {entry.release}, and"
            f" there are files of {', '.join(others)}",
            "name packages of one version",
        )
    return entry
