# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's own example of a cache plugin, for the bench: obtained and compiled in the cache.

Its source is the distribution's, of the QEMU that is installed. Nothing of it is part of kdelta.
"""

import re
import tarfile
from pathlib import Path
from typing import NamedTuple

from kdelta.host.command import Result, log_to_stderr, quiet, run
from kdelta.host.dirs import cache_dir
from kdelta.host.files import new_folder, remove
from kdelta.host.lock import locked
from kdelta.kernels.packages.apt import run_apt_get
from kdelta.spec.errors import LabError

MEMBERS = ("contrib/plugins/cache.c", "include/qemu/qemu-plugin.h")
FETCH_SECONDS = 600.0
# The same source that asks for no callback at loads and stores, for it cannot be told so.
CODE_ONLY = """\
#include <qemu-plugin.h>
#define qemu_plugin_register_vcpu_mem_cb(...) ((void)0)
"""


class Example(NamedTuple):
    """The plugin as it is, and without callbacks at loads and stores."""

    whole: Path
    code_only: Path | None = None


def example() -> Example:
    """The compiled example; LabError when its source or a header cannot be had."""
    wanted = _installed_version()
    built = cache_dir("qemu-example") / wanted
    with locked("qemu-example", "obtaining QEMU's example plugin", quiet):
        if not built.is_dir():
            with new_folder(built) as folder:
                _obtain(wanted, folder)
    return Example(built / "cache.so", built / "code-only.so")


def _installed_version() -> str:
    """The upstream version in the distribution's words: 7.2+dfsg."""
    asked = run(["dpkg-query", "-W", "-f", "${source:Upstream-Version}", "qemu-system-x86"])
    if not asked.ok or not asked.stdout:
        raise LabError("the installed QEMU is not of a Debian package")
    return asked.stdout.strip()


def _obtain(wanted: str, folder: Path) -> None:
    apt = _Apt(folder / "apt")
    archive = apt.source("qemu", wanted)
    with tarfile.open(archive) as tar:
        # Python has it since 3.11.4.
        tar.extraction_filter = getattr(tarfile, "data_filter", lambda one, _: one)
        for member in tar:
            if member.name.partition("/")[2] in MEMBERS:
                member.name = Path(member.name).name
                tar.extract(member, folder)
    if not (folder / "cache.c").exists():
        raise LabError(f"{archive.name} does not hold {MEMBERS[0]}")
    (folder / "code-only.h").write_text(CODE_ONLY)
    flags = ["-O2", "-fPIC", "-shared", f"-I{folder}", *_glib(apt, folder / "glib")]
    for name, more in (("cache", []), ("code-only", ["-include", "code-only.h"])):
        _must(
            run(["gcc", *flags, *more, "-o", f"{name}.so", "cache.c"], cwd=folder),
            "it does not compile",
        )
    remove(folder / "apt")


def _glib(apt: "_Apt", folder: Path) -> list[str]:
    """How to compile with glib's headers: the host's, or those of its package, unpacked."""
    found = run(["sh", "-c", "pkg-config --cflags glib-2.0"])
    if found.ok:
        return found.stdout.split()
    package = apt.package("libglib2.0-dev")
    _must(run(["dpkg-deb", "-x", package, folder]), "glib's headers cannot be unpacked")
    config = next(folder.glob("usr/lib/**/glibconfig.h"))
    return [f"-I{folder}/usr/include/glib-2.0", f"-I{config.parent}"]


def _must(result: Result, what: str) -> None:
    if not result.ok:
        raise LabError(f"{what}: {result.last_words(1)}")


class _Apt:
    """apt with lists of its own that have sources, too. It needs no root."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        parts = folder / "sources"
        for name in (parts, folder / "lists/partial", folder / "cache/archives/partial"):
            name.mkdir(parents=True)
        given = Path("/etc/apt")
        for path in (given / "sources.list", *given.glob("sources.list.d/*")):
            if path.suffix in {".list", ".sources"} and path.is_file():
                (parts / path.name).write_text(with_sources(path.read_text()))
        options = {
            "APT::Sandbox::User": "root",
            "Dir::State::Lists": folder / "lists",
            "Dir::Cache": folder / "cache",
            "Dir::Etc::SourceList": "/dev/null",
            "Dir::Etc::SourceParts": parts,
        }
        self._options = [word for name in options for word in ("-o", f"{name}={options[name]}")]
        self._get("update", why="apt has no lists of sources")

    def _get(self, *words: str, why: str) -> None:
        argv = ["apt-get", "-q", *self._options, *words]
        _must(run_apt_get(argv, log_to_stderr, cwd=self._folder, seconds=FETCH_SECONDS), why)

    def source(self, package: str, upstream: str) -> Path:
        """The upstream archive of a source package, if that has this version."""
        self._get("source", "--download-only", "--only-source", package, why="apt has no source")
        found = list(self._folder.glob(f"{package}_{upstream}.orig.tar.*"))
        archives = [path for path in found if path.suffix != ".asc"]
        if not archives:
            raise LabError(f"apt's source of {package} is not that of {upstream}")
        return archives[0]

    def package(self, name: str) -> Path:
        """A binary package."""
        self._get("download", name, why=f"apt has no {name}")
        return next(self._folder.glob(f"{name}_*.deb"))


def with_sources(text: str) -> str:
    """A list of apt's, of either form, that names source packages as well as the binary ones."""
    text = re.sub(r"^Types:.*$", "Types: deb deb-src", text, flags=re.MULTILINE)
    return re.sub(r"^(deb)( .*)$", r"\1\2\ndeb-src\2", text, flags=re.MULTILINE)
