# SPDX-License-Identifier: GPL-2.0-or-later
"""What modules are built against a packaged kernel with: its headers packages, in the cache."""

import re
import shutil
from pathlib import Path

from kdelta.host.command import Log, find_program, install_hint, run_program
from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors, make_folder, remove
from kdelta.host.lock import fill_once
from kdelta.host.target import target
from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.model import Kernel
from kdelta.kernels.packages.apt import Apt, OutdatedListsError
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.kernel import DebSpec, parse_kernel_spec

IMAGES, HEADERS, SCRIPTS = "linux-image-", "linux-headers-", "linux-kbuild-"

# BTF for a module needs pahole and the whole vmlinux; it says nothing to the kernel's code.
_WITHOUT = ("CONFIG_DEBUG_INFO_BTF_MODULES=",)
_INCLUDE = re.compile(r"^include /usr/src/([^/\s]+)/Makefile$", re.MULTILINE)
# What make or kbuild takes for something else than a part of a path.
_NOT_FOR_MAKE = re.compile(r"[\s:=#$%]")


def headers_command(kernel: Kernel, log: Log) -> tuple[list[str], dict[str, str]]:
    """The command that builds modules against a kernel that was not built here, as argv and
    environment: M=FOLDER modules go after it.

    UserError for a kernel without headers; LabError when they or its compiler cannot be had.
    """
    if not target(kernel.arch).is_host:
        raise UserError(
            f"the programs that modules for {kernel.spec} are built with are not for this host",
            "name a source tree",
        )
    find_program("make")
    spec = parse_kernel_spec(kernel.spec)
    folder = _fetched(spec, log) if isinstance(spec, DebSpec) else _besides(kernel)
    return ["make", "-C", str(folder), f"CC={_compiler(kernel, folder)}", *_WITHOUT], {}


def _besides(kernel: Kernel) -> Path:
    """The folder that a kernel's own modules lead to, as an installed kernel has it."""
    build = Path(kernel.modules) / "build" if kernel.modules else None
    if build is None or not (build / "Makefile").is_file():
        raise UserError(
            f"{kernel.spec} comes without what modules are built against",
            "name a source tree, or a package whose headers package there is",
        )
    return build


def _fetched(spec: DebSpec, log: Log) -> Path:
    """The headers of a package's kernel, fetched unless the cache has them."""
    name = HEADERS + spec.package.removeprefix(IMAGES).removesuffix("-unsigned")
    version = spec.version or ""
    folder = cache_dir("headers") / re.sub(r"[^\w.+~-]", "-", f"{name}-{version}")
    if _NOT_FOR_MAKE.search(str(folder)):
        raise LabError(
            f"the folder {folder} has a character that make cannot have in a path",
            "set KDELTA_CACHE_DIR to a folder without spaces, colons and the like",
        )
    wanted = DebSpec(name, version, suite=spec.suite)
    return fill_once(
        folder,
        f"fetching {name}",
        log,
        lambda made: _fetch(wanted, made, log),
        f"usr/src/{name}",
        adopted=True,
    )


def _fetch(wanted: DebSpec, folder: Path, log: Log) -> None:
    """Unpacks the headers and the packages that they need into an empty folder."""
    apt = Apt.of(None, wanted.suite)
    if wanted.version not in apt.versions(wanted.package):
        apt = _updated(wanted, log)
    if wanted.version not in apt.versions(wanted.package):
        raise LabError(
            f"apt has no {wanted.package} {wanted.version}, which modules are built against",
            "take the kernel in the version that is current",
        )
    try:
        _unpack_all(apt, wanted, folder, log)
    except OutdatedListsError:
        remove(folder)
        make_folder(folder)
        try:
            _unpack_all(_updated(wanted, log), wanted, folder, log)
        except OutdatedListsError as error:
            raise LabError(
                f"the mirror does not have {wanted.package} {wanted.version}: {error}"
            ) from error
    makefile = folder / "usr/src" / wanted.package / "Makefile"
    with lab_errors("adapting", makefile):
        # Their place is here, not in /usr/src; make reads this file from its own folder.
        makefile.write_text(_INCLUDE.sub(r"include ../\1/Makefile", makefile.read_text()))


def _updated(wanted: DebSpec, log: Log) -> Apt:
    apt = Apt.of(None, wanted.suite, own_lists=True)
    apt.update(log, HEADERS)
    return apt


def _unpack_all(apt: Apt, wanted: DebSpec, folder: Path, log: Log) -> None:
    todo, done = [wanted], set[str]()
    while todo:
        spec = todo.pop()
        version = spec.version or apt.candidate(spec.package)
        if spec.package in done or version is None:
            continue
        done.add(spec.package)
        log(f"downloading {spec.package} {version}")
        downloads = make_folder(folder / "download")
        _unpack(apt.download(spec.package, version, downloads, log), folder)
        remove(downloads)
        todo += [
            DebSpec(needed.package, needed.version)
            for needed in apt.dependencies(spec.package, version)
            if needed.package.startswith((HEADERS, SCRIPTS))
        ]


def _unpack(package: Path, folder: Path) -> None:
    """Unpacks a package. Its programs will be executed, so its paths need no more trust than apt's
    signatures give.
    """
    run_program(["dpkg-deb", "-x", package, folder]).or_raise(f"{package.name} cannot be unpacked")
    others = (arch for arch in folder.glob("usr/src/*/arch/*/") if arch.name != "x86")
    for needless in (folder / "lib", folder / "usr/share", *others):
        remove(needless)


def _compiler(kernel: Kernel, folder: Path) -> str:
    """The compiler that the kernel was built by, or another of the same major version."""
    with lab_errors("reading", folder):
        path = Path(kernel.config) if kernel.config else folder / ".config"
        config = parse_config(path.read_text(errors="replace"))
    words = config.get("CONFIG_CC_VERSION_TEXT", "").strip('"').split()
    version = next((word for word in reversed(words) if re.match(r"\d+\.", word)), "")
    if not version:  # kernels before 4.19 do not tell
        return find_program("gcc")
    named = re.search(r"(gcc|clang)(-\d+)?$", words[0])
    family, major = (named[1] if named else "gcc"), version.partition(".")[0]
    for name in (words[0], f"{family}-{major}", family):
        if shutil.which(name) and _major(name) == major:
            return name
    package = f"{family}-{major}"
    raise LabError(
        f"{kernel.spec} was compiled by {package}, which modules for it need", install_hint(package)
    )


def _major(compiler: str) -> str:
    return run_program([compiler, "-dumpversion"]).stdout.strip().partition(".")[0]
