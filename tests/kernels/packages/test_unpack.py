# SPDX-License-Identifier: GPL-2.0-or-later
"""Packages, hostile ones too: nothing is ever written outside the folder."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.kernels.packages.unpack import unpack_kernel, wanted_path
from kdelta.spec.errors import LabError
from tests.kernels.samples import RELEASE, deb, kernel_members, member, tree

Member = tuple[tarfile.TarInfo, bytes]
MODULES = f"lib/modules/{RELEASE}"


class Sandbox:
    """A folder whose surroundings are looked at after an unpacking."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.inside = root / "above" / "inside"
        self.inside.mkdir(parents=True)
        self.package = root / "package.deb"
        (root / "victim").write_text("kept")

    def unpack(self, members: list[Member]) -> set[str]:
        self.package.write_bytes(deb(members))
        before = {path for path in tree(self.root) if not path.startswith("above/inside/")}
        try:
            unpack_kernel(self.package, self.inside)
        finally:
            after = {path for path in tree(self.root) if not path.startswith("above/inside/")}
            assert after == before
            assert (self.root / "victim").read_text() == "kept"
        return tree(self.inside)


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    yield Sandbox(tmp_path)
    assert not any(path.is_symlink() for path in tmp_path.rglob("*"))


def test_only_the_kernel_is_unpacked(sandbox: Sandbox) -> None:
    files = {path for path in sandbox.unpack(kernel_members()) if (sandbox.inside / path).is_file()}
    assert files == {
        f"boot/vmlinuz-{RELEASE}",
        f"boot/config-{RELEASE}",
        f"{MODULES}/kernel/net/dummy.ko",
        f"{MODULES}/modules.builtin",
    }


def test_modules_below_usr_are_found(sandbox: Sandbox) -> None:
    assert f"{MODULES}/a.ko" in sandbox.unpack([member(f"./usr/{MODULES}/a.ko", b"module")])


def test_modes_of_the_archive_are_not_taken(sandbox: Sandbox) -> None:
    sandbox.unpack([member(f"./{MODULES}/a.ko", b"x", mode=0o6777, uid=1000)])
    mode = (sandbox.inside / MODULES / "a.ko").stat().st_mode
    assert mode & 0o7111 == 0


@pytest.mark.parametrize(
    "name",
    [
        "../victim",
        "./../../victim",
        "lib/modules/x/../../../../../victim",
        "/victim",
        "//boot/vmlinuz-x",
        "boot/vmlinuz-x/../../../victim",
    ],
)
def test_paths_that_lead_outside_are_refused(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(LabError, match="refused: it holds the path"):
        sandbox.unpack([member(name, b"hostile")])


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("target", ["{root}/victim", "../../../victim", "../../../../.."])
def test_links_are_left_out(sandbox: Sandbox, kind: bytes, target: str) -> None:
    link = member(
        f"./{MODULES}/build", type=kind, linkname=target.format(root=sandbox.root), size=0
    )
    assert f"{MODULES}/build" not in sandbox.unpack([link])


def test_file_through_a_link_stays_inside(sandbox: Sandbox) -> None:
    link = member(f"./{MODULES}/build", type=tarfile.SYMTYPE, linkname=str(sandbox.root))
    files = sandbox.unpack([link, member(f"./{MODULES}/build/victim", b"hostile")])
    assert f"{MODULES}/build/victim" in files


def test_link_in_place_of_the_image(sandbox: Sandbox) -> None:
    link = member("./boot/vmlinuz-1", type=tarfile.SYMTYPE, linkname=str(sandbox.root / "victim"))
    assert sandbox.unpack([link]) == set()


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_are_left_out(sandbox: Sandbox, kind: bytes) -> None:
    device = member(f"./{MODULES}/a.ko", type=kind, devmajor=1, devminor=3)
    assert sandbox.unpack([device]) == set()


def test_file_named_twice_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(LabError, match=r"unpacking .*File exists"):
        sandbox.unpack([member("./boot/vmlinuz-1", b"one"), member("./boot/vmlinuz-1", b"two")])


def test_file_as_a_folder_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(LabError, match="unpacking"):
        sandbox.unpack([member(f"./{MODULES}/a", b"x"), member(f"./{MODULES}/a/b", b"y")])


def test_names_that_no_module_has_are_refused(sandbox: Sandbox) -> None:
    deep = f"{MODULES}/{'d/' * 1500}a.ko"
    with pytest.raises(LabError, match=r"package\.deb is refused: it holds the path"):
        sandbox.unpack([*kernel_members(), member(deep, b"module")])
    assert not (sandbox.inside / MODULES / "d").exists()
    with pytest.raises(LabError, match="is refused: it holds the path"):
        wanted_path(f"{MODULES}/a\0b.ko", "package.rpm")


def test_too_many_files_are_refused(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdelta.kernels.packages.unpack.MAX_FILES", 2)
    with pytest.raises(LabError, match="too large"):
        sandbox.unpack([member(f"./{MODULES}/{n}.ko") for n in range(3)])


def test_too_many_bytes_are_refused(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdelta.kernels.packages.unpack.MAX_BYTES", 1000)
    with pytest.raises(LabError, match="too large"):
        sandbox.unpack([member(f"./{MODULES}/{n}.ko", bytes(600)) for n in range(2)])


@pytest.mark.parametrize("keep", [0, 7, 200, 12_000])
def test_cut_off_package(sandbox: Sandbox, keep: int) -> None:
    sandbox.package.write_bytes(deb(kernel_members())[:keep])
    with pytest.raises(LabError, match="damaged"):
        unpack_kernel(sandbox.package, sandbox.inside)


@given(st.text(st.sampled_from("./ab\\"), max_size=30), st.sampled_from(["", "./", "boot/", "/"]))
def test_no_name_leads_outside(tail: str, head: str) -> None:
    for name in (head + tail, f"{head}lib/modules/{tail}"):
        try:
            path = wanted_path(name, "package")
        except LabError:
            assert name.startswith("/") or ".." in name
        else:
            assert path is None or (
                path.startswith(("boot/", "lib/modules/")) and "/../" not in path
            )
