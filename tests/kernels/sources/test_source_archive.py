# SPDX-License-Identifier: GPL-2.0-or-later
"""Packed sources: archives of any kind, and packages that hold one."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kdelta.kernels.sources.source import Source
from kdelta.spec.errors import LabError, UserError
from tests.conftest import FakeProgram
from tests.kernels import fake_apt
from tests.kernels.git_trees import SOURCES, checkout, files, outcome, source, state, write_tree
from tests.kernels.samples import deb, member

LISTED = sorted([*SOURCES, "scripts/link"])
PACKAGE = "linux-source-6.12"

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "linux-6.12")


def packed(tree: Path, suffix: str = ".tar.xz", *words: str) -> Path:
    """An archive of the tree, as tar makes it; the tree is its one topmost folder."""
    path = tree.parent / f"linux-6.12{suffix}"
    words = words or ("-C", str(tree.parent), tree.name)
    subprocess.run(["tar", "--auto-compress", "-cf", path, *words], check=True)
    return path


@pytest.mark.parametrize("suffix", [".tar", ".tar.xz", ".tar.gz", ".tgz", ".tar.bz2", ".tar.zst"])
def test_archives_hold_the_same_tree_as_the_folder(tree: Path, suffix: str) -> None:
    archive = packed(tree, suffix)
    found = source(f"tree:{archive}")
    assert found.tree == source(f"tree:{tree}").tree
    assert found.name == archive.name
    src = checkout(found)
    assert (src / "scripts/run.sh").stat().st_mode & 0o100
    assert not (src / "Makefile").stat().st_mode & 0o100


@pytest.mark.parametrize("where", [".", "Makefile Kconfig Kbuild kernel scripts .gitignore"])
def test_archive_without_a_topmost_folder(tree: Path, where: str) -> None:
    archive = packed(tree, ".tar", "-C", str(tree), *where.split())
    assert source(f"tree:{archive}").tree == source(f"tree:{tree}").tree


def test_an_archive_is_read_whole(tree: Path) -> None:
    """It has nothing that a build left, so what .gitignore says is of no matter."""
    write_tree(tree, {"kernel/kept.o": "kept", ".git/HEAD": "no part of it"})
    assert sorted(files(source(f"tree:{packed(tree)}"))) == sorted([*LISTED, "kernel/kept.o"])


def test_an_archive_is_read_once(tree: Path, fake_program: FakeProgram) -> None:
    archive = packed(tree)
    found = source(f"tree:{archive}")
    no_xz = fake_program("xz", "#!/bin/sh\nexit 1\n")
    assert source(f"tree:{archive}") == found
    no_xz.unlink()
    write_tree(tree, {"kernel/fork.c": "other\n"})
    packed(tree)
    assert source(f"tree:{archive}").tree == source(f"tree:{tree}").tree


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return whole.getvalue()


KERNEL = [member("l/Makefile", b"VERSION = 6\n"), member("l/Kbuild", b"x")]


def test_odd_entries(tmp_path: Path) -> None:
    """Hard links and odd names are kept, devices left out; no link is followed."""
    (tmp_path / "odd.tar").write_bytes(
        tar_of(
            *KERNEL,
            member("./l/hard", type=tarfile.LNKTYPE, linkname="l/Kbuild"),
            member("l/out", type=tarfile.SYMTYPE, linkname=str(tmp_path)),
            member("l/out/file", b"below the link"),
            member("l/pipe", type=tarfile.FIFOTYPE),
            member('l/a "b"\\\n.c', b"odd"),
        )
    )
    before = state(tmp_path)
    src = checkout(source(f"tree:{tmp_path}/odd.tar"))
    assert (src / "hard").read_text() == "x"
    assert (src / "out/file").read_text() == "below the link"
    assert (src / 'a "b"\\\n.c').read_text() == "odd"
    names = {"Makefile", "Kbuild", "hard", "out", 'a "b"\\\n.c'}
    assert {path.name for path in src.iterdir()} == names
    assert state(tmp_path) == before


@pytest.mark.parametrize("name", ["../evil", "l/../../evil", "/evil"])
def test_hostile_names_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.tar").write_bytes(tar_of(*KERNEL, member(name, b"x")))
    with pytest.raises(UserError, match="refused"):
        outcome(f"tree:{tmp_path}/x.tar")


@pytest.mark.parametrize(
    ("limit", "most", "words"),
    [
        ("ARCHIVE_DEPTH", 64, "more than 64 folders in each other"),
        ("SOURCE_FILES", 2, "more than 2 files"),
        ("SOURCE_BYTES", 1 << 10, "more than 0 MiB"),
    ],
)
def test_archive_beyond_a_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, words: str
) -> None:
    monkeypatch.setattr(f"kdelta.kernels.sources.archive.{limit}", most)
    deep = member("l/" + "d/" * 100 + "a.c", b"x")
    (tmp_path / "x.tar").write_bytes(tar_of(*KERNEL, deep))
    with pytest.raises(UserError, match=words):
        outcome(f"tree:{tmp_path}/x.tar")


@pytest.mark.parametrize("suffix", [".tar.xz", ".tar.gz", ".tar.zst", ".tar"])
@pytest.mark.parametrize("block", [4, 5, 6, 6.5])
@pytest.mark.slow
def test_archive_that_is_cut_off(tree: Path, suffix: str, block: float, own_cache: Path) -> None:
    """In a file, in a header, between two files."""
    archive = packed(tree, suffix)
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(block * 512) if suffix == ".tar" else len(whole) - 200])
    with pytest.raises(UserError, match="is damaged"):
        outcome(f"tree:{archive}")
    assert list(own_cache.rglob("source.json")) == []
    archive.write_bytes(whole)
    assert sorted(files(source(f"tree:{archive}"))) == LISTED


def test_files_that_are_no_source(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"\x7fELF" + bytes(600))
    with pytest.raises(UserError, match="neither a folder nor an archive") as caught:
        outcome(f"tree:{tmp_path}/image")
    assert f"image:{tmp_path}/image" in caught.value.hint
    (tmp_path / "x.tar").write_bytes(tar_of(member("l/README", b"x")))
    with pytest.raises(UserError, match="no kernel tree"):
        outcome(f"tree:{tmp_path}/x.tar")


class Mirror:
    """A faked apt that has packages with source."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state: dict[str, Any] = {
            "packages": {
                PACKAGE: {"6.12.1-1": {"deb": self._package("6.12.1")}},
                "linux-source": {"6.12.1-1": {"depends": f"{PACKAGE} (= 6.12.1-1)"}},
                "linux-source-6.1": {"6.1.9-1": {"deb": self._package(None)}},
            },
            "network": True,
            "calls": str(folder / "calls"),
            "own_lists": {},
        }
        self.change()

    def _package(self, version: str | None) -> str:
        inner = member("./usr/share/doc/README", b"no source")
        if version:
            tree = write_tree(self.folder / version / "linux-source-6.12")
            content = packed(tree).read_bytes()
            inner = member("./usr/src/linux-source-6.12.tar.xz", content)
        path = self.folder / f"{version}.deb"
        path.write_bytes(deb([member("./usr/src/linux-patch-6.12-rt.patch.xz", b"x"), inner]))
        return str(path)

    def change(self, **values: object) -> None:
        self.state.update(values)
        (self.folder / "apt.json").write_text(json.dumps(self.state))

    def downloads(self) -> int:
        calls = Path(self.state["calls"])
        return len(calls.read_text().splitlines()) if calls.exists() else 0


@pytest.fixture
def mirror(tmp_path: Path, fake_program: FakeProgram, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    monkeypatch.setattr("kdelta.kernels.packages.apt.SYSTEM_LISTS", tmp_path)
    for name in ("apt-get", "apt-cache"):
        fake_program(name, fake_apt.script(name, tmp_path / "apt.json"))
    return Mirror(tmp_path)


def test_package_with_source(mirror: Mirror) -> None:
    found = source(f"deb-src:{PACKAGE}")
    assert sorted(files(found)) == LISTED
    assert found.name == f"{PACKAGE} 6.12.1-1"
    assert sorted(path.name for path in found.folder.iterdir()) == ["git", "source.json"]
    assert source(f"deb-src:{PACKAGE}=6.12.1-1") == found
    assert source("deb-src:linux-source") == found
    assert mirror.downloads() == 1


def test_the_folders_name_is_that_of_the_package_and_version(mirror: Mirror) -> None:
    assert mirror.downloads() == 0
    # SHA-256 of "deb-src:linux-source-6.12=6.12.1-1".
    assert source(f"deb-src:{PACKAGE}").folder.name == f"{PACKAGE}-8db924ab42d2"


def test_from_the_cache_without_network(mirror: Mirror) -> None:
    found = source(f"deb-src:{PACKAGE}")
    mirror.change(network=False)
    assert source(f"deb-src:{PACKAGE}") == found
    mirror.change(packages={})
    assert source(f"deb-src:{PACKAGE}=6.12.1-1") == found


def test_patch_on_a_packages_source(mirror: Mirror, tmp_path: Path) -> None:
    plain = source(f"deb-src:{PACKAGE}")
    (tmp_path / "x.patch").write_text("--- a/Kconfig\n+++ b/Kconfig\n@@ -1 +1 @@\n-config A\n+b\n")
    changed = source(f"deb-src:{PACKAGE} +{tmp_path}/x.patch")
    assert changed.folder == plain.folder
    assert files(changed)["Kconfig"] == "b\n"
    assert mirror.downloads() == 1


def test_what_cannot_be_had(mirror: Mirror, own_cache: Path) -> None:
    with pytest.raises(UserError, match="holds no packed source") as caught:
        outcome("deb-src:linux-source-6.1")
    assert "linux-source" in caught.value.hint
    with pytest.raises(UserError, match=r"no package linux-source-6\.11") as caught:
        outcome("deb-src:linux-source-6.11")
    assert PACKAGE in caught.value.hint
    with pytest.raises(UserError, match="has no version 7"):
        outcome(f"deb-src:{PACKAGE}=7")
    mirror.change(network=False)
    with pytest.raises(LabError, match="cannot be fetched"):
        outcome(f"deb-src:{PACKAGE}")
    assert list(own_cache.rglob("*.deb")) == []
    assert list(own_cache.rglob("source.json")) == []


FETCH = """
import sys
from kdelta.kernels.sources.source import source_of
from kdelta.spec.kernel import parse_kernel_spec
source_of(parse_kernel_spec(sys.argv[1]), lambda line: None)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("step", ["download", "unpack"])
@pytest.mark.slow
def test_interrupted_fetch(
    mirror: Mirror, fake_program: FakeProgram, own_cache: Path, how: signal.Signals, step: str
) -> None:
    """Stopped in the middle of the download, or of unpacking: the next time leaves no trace."""
    pipe = mirror.folder / "started"
    os.mkfifo(pipe)
    stop = f"echo $$ > {pipe}; exec sleep 600"
    if step == "download":
        mirror.change(before_download=f"echo half > half.deb; {stop}")
    else:
        packer = fake_program("xz", f"#!/bin/sh\n{stop}\n")
    argv = [sys.executable, "-c", FETCH, f"deb-src:{PACKAGE}"]
    with subprocess.Popen(argv, start_new_session=True) as process:
        stand_in = int(pipe.read_text())
        os.killpg(process.pid, how)
    with suppress(ProcessLookupError):  # it reads nothing, so it would not see that kdelta ended
        os.kill(stand_in, signal.SIGKILL)
    assert process.returncode != 0
    assert list(own_cache.rglob("source.json")) == []
    mirror.change(before_download=":")
    if step == "unpack":
        packer.unlink()
    found = source(f"deb-src:{PACKAGE}")
    assert isinstance(found, Source)
    assert sorted(files(found)) == LISTED
    assert sorted(path.name for path in found.folder.iterdir()) == ["git", "source.json"]
    assert list(own_cache.rglob("tmp_*")) == []
    assert list(own_cache.rglob("fast_import_crash*")) == []


@pytest.mark.slow
@pytest.mark.network
def test_real_package(own_cache: Path) -> None:
    """The distribution's own, whatever its version: 150 MB, so it is asked for but not fetched."""
    with pytest.raises(UserError, match="has no version 0") as caught:
        outcome(f"deb-src:{PACKAGE}=0")
    assert "there is: 6.12." in caught.value.hint
    assert list(own_cache.rglob("*.deb")) == []
