# SPDX-License-Identifier: GPL-2.0-or-later
"""image:FOLDER and image:ARCHIVE: what KernelCI, 0-day and make dir-pkg or tar-pkg leave."""

import io
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.host.command import quiet
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.kernel import parse_kernel_spec
from tests.kernels.packages.test_members import FILE, cpio, tar
from tests.kernels.samples import BANNER, RELEASE, bzimage, member

pytestmark = pytest.mark.usefixtures("own_cache")

MODULE = f"lib/modules/{RELEASE}/kernel/net/dummy.ko"


def kernel(text: str) -> Kernel:
    found = obtain(parse_kernel_spec(text), quiet)
    assert isinstance(found, Kernel)
    return found


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def modules_tar() -> bytes:
    return lzma.compress(tar([member(f"./{MODULE}", b"module")]))


IMAGE = bzimage(BANNER)
FOLDERS: dict[str, Callable[[], dict[str, bytes]]] = {
    "KernelCI": lambda: {
        "bzImage": IMAGE,
        "kernel.config": b"CONFIG_64BIT=y\n",
        "modules.tar.xz": modules_tar(),
        "vmlinux": b"not looked at",
        "System.map": b"",
    },
    "tuxmake": lambda: {
        "bzImage": IMAGE,
        "config": b"CONFIG_64BIT=y\n",
        "modules.tar.xz": modules_tar(),
        "vmlinux.xz": b"not looked at",
        "metadata.json": b"{}",
    },
    "0-day": lambda: {
        f"vmlinuz-{RELEASE}": IMAGE,
        f"config-{RELEASE}": b"CONFIG_64BIT=y\n",
        "modules.cgz": cpio([(MODULE, b"module", FILE)]),
    },
    "dir-pkg": lambda: {
        f"boot/vmlinuz-{RELEASE}": IMAGE,
        f"boot/vmlinux-{RELEASE}": b"not looked at",
        f"boot/config-{RELEASE}": b"CONFIG_64BIT=y\n",
        MODULE: b"module",
    },
    "openSUSE": lambda: {
        f"usr/lib/modules/{RELEASE}/vmlinuz": IMAGE,
        f"usr/lib/modules/{RELEASE}/config": b"CONFIG_64BIT=y\n",
        f"usr/{MODULE}": b"module",
    },
}


@pytest.mark.parametrize("given", ["vmlinuz,modules={}", "", "../../../../boot/vmlinuz-linux"])
def test_config_next_to_the_image_or_with_the_modules(given: str, tmp_path: Path) -> None:
    folder = tmp_path / "usr/lib/modules" / RELEASE
    write(tmp_path, {**FOLDERS["openSUSE"](), "boot/vmlinuz-linux": IMAGE})
    found = kernel(f"image:{folder / given.format(folder)}")
    assert found.config is not None
    assert Path(found.config).read_bytes() == b"CONFIG_64BIT=y\n"
    assert (found.modules is None) is ("boot" in given)


def test_config_with_the_modules_that_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "away/lib/modules" / RELEASE
    files = {f"away/{MODULE}": b"module", f"away/lib/modules/{RELEASE}/config": b"CONFIG_64BIT=y\n"}
    write(tmp_path, {"vmlinuz-linux": IMAGE, **files})
    assert kernel(f"image:{tmp_path}/vmlinuz-linux").config is None
    found = kernel(f"image:{tmp_path}/vmlinuz-linux,modules={folder}")
    assert found.config == str(folder / "config")


@pytest.mark.parametrize("name", FOLDERS)
def test_folder_of_artifacts(name: str, tmp_path: Path) -> None:
    write(tmp_path, FOLDERS[name]())
    found = kernel(f"image:{tmp_path}")
    assert (found.release, found.image_format) == (RELEASE, "bzImage")
    assert found.config is not None
    assert Path(found.config).read_bytes() == b"CONFIG_64BIT=y\n"
    assert found.modules is not None
    assert (Path(found.modules) / "kernel/net/dummy.ko").read_bytes() == b"module"


def test_all_ways_give_one_identity(tmp_path: Path) -> None:
    identities = set()
    for name, files in FOLDERS.items():
        write(tmp_path / name, files())
        identities.add(kernel(f"image:{tmp_path / name}").identity)
    assert len(identities) == 1


def test_archive_of_tar_pkg(tmp_path: Path) -> None:
    files = FOLDERS["dir-pkg"]()
    archive = tmp_path / "linux-6.1.0-x86.tar.xz"
    archive.write_bytes(lzma.compress(tar([member(*one) for one in files.items()])))
    found = kernel(f"image:{archive}")
    write(tmp_path / "same", files)
    assert found.identity == kernel(f"image:{tmp_path}/same").identity
    assert found.config is not None


def test_modules_in_an_archive_that_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"a/bzImage": IMAGE, "b/m.tar.xz": modules_tar()})
    found = kernel(f"image:{tmp_path}/a/bzImage,modules={tmp_path}/b/m.tar.xz")
    assert found.modules is not None
    assert found.modules.endswith(f"lib/modules/{RELEASE}")


def test_folder_without_a_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="it has no kernel image") as raised:
        kernel(f"image:{tmp_path}")
    assert "bzImage" in raised.value.hint


def test_folder_with_several_kernels_names_them(tmp_path: Path) -> None:
    write(tmp_path, {"vmlinuz-1": IMAGE, "vmlinuz-2": IMAGE})
    with pytest.raises(UserError, match="several kernels: vmlinuz-1, vmlinuz-2") as raised:
        kernel(f"image:{tmp_path}")
    assert raised.value.hint == f"name one: image:{tmp_path}/vmlinuz-1"


def test_modules_of_another_kernel_are_refused(tmp_path: Path) -> None:
    other = tar([member("lib/modules/5.10.0/a.ko", b"x")])
    write(tmp_path, {"bzImage": IMAGE, "modules.tar": other})
    with pytest.raises(UserError, match=f"has no modules of {RELEASE}") as raised:
        kernel(f"image:{tmp_path}")
    assert "5.10.0" in raised.value.hint


def test_hostile_archive_writes_nothing(tmp_path: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        info, content = member("lib/modules/x/../../../../../victim", b"hostile")
        archive.addfile(info, io.BytesIO(content))
    write(tmp_path, {"bzImage": IMAGE, "modules.tar": made.getvalue()})
    with pytest.raises(LabError, match="refused: it holds the path"):
        kernel(f"image:{tmp_path}")
    assert not list(tmp_path.rglob("victim"))
