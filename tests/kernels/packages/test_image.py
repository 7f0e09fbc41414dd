# SPDX-License-Identifier: GPL-2.0-or-later
"""image:PATH: identity by content, modules and config where they may lie, advice on options."""

import gzip
import os
from pathlib import Path

import pytest

from kdelta.host.command import quiet
from kdelta.kernels.config.lab_config import missing_options
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.kernels.packages.image import check_image, obtain_image
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import ImageSpec, parse_kernel_spec
from tests.kernels.samples import RELEASE, bzimage


def kernel(text: str) -> Kernel:
    found = obtain(parse_kernel_spec(text), quiet)
    assert isinstance(found, Kernel)
    return found


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "boot/bzImage"
    path.parent.mkdir()
    path.write_bytes(bzimage())
    return path


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    folder = tmp_path / "root/lib/modules" / RELEASE
    (folder / "kernel").mkdir(parents=True)
    (folder / "kernel/dummy.ko").write_bytes(b"module")
    (folder / "build").symlink_to("/usr/src")
    return folder


def test_identity_is_that_of_the_content(image: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.write_bytes(image.read_bytes())
    first, second = kernel(f"image:{image}"), kernel(f"image:{copy}")
    assert first.identity == second.identity
    assert first.image != second.image
    copy.write_bytes(image.read_bytes() + b"\0")
    assert kernel(f"image:{copy}").identity != first.identity


def test_boot_parameters_are_part_of_the_identity_and_of_the_spec(image: Path) -> None:
    plain = kernel(f"image:{image}")
    one = kernel(f"image:{image} +cmdline:a=1 +cmdline:b")
    same = kernel(f"image:{image} '+cmdline:a=1 b'")
    assert one.spec == f"image:{image} +cmdline:a=1 +cmdline:b"
    assert (one.image, one.parameters) == (plain.image, ("a=1", "b"))
    assert one.identity == same.identity
    other = kernel(f"image:{image} +cmdline:b +cmdline:a=1")
    assert len({plain.identity, one.identity, other.identity}) == 3


def test_relative_path_becomes_absolute(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(image.parent)
    assert kernel("image:bzImage").image == str(image)


def test_modules_by_root_by_parent_or_by_own_folder(image: Path, modules: Path) -> None:
    named = [modules, modules.parent, modules.parents[2]]
    found = [kernel(f"image:{image},modules={folder}") for folder in named]
    assert [k.modules for k in found] == [str(modules)] * 3
    assert len({k.identity for k in found}) == 1
    assert found[0].identity != kernel(f"image:{image}").identity


def test_a_changed_module_is_another_kernel(image: Path, modules: Path) -> None:
    first = kernel(f"image:{image},modules={modules}")
    (modules / "kernel/dummy.ko").write_bytes(b"other")
    assert kernel(f"image:{image},modules={modules}").identity != first.identity


def test_modules_of_another_release(image: Path, tmp_path: Path) -> None:
    (tmp_path / "root/lib/modules/5.10.0").mkdir(parents=True)
    with pytest.raises(UserError, match=f"no modules of {RELEASE}") as raised:
        kernel(f"image:{image},modules={tmp_path / 'root'}")
    assert "5.10.0" in raised.value.hint


def test_no_modules_folder(image: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        kernel(f"image:{image},modules={tmp_path / 'none'}")


def test_config_besides_the_image(image: Path) -> None:
    assert kernel(f"image:{image}").config is None
    config = image.with_name(f"config-{RELEASE}")
    config.write_text("")
    assert kernel(f"image:{image}").config == str(config)


def test_config_of_a_build(tmp_path: Path) -> None:
    path = tmp_path / "arch/x86/boot/bzImage"
    path.parent.mkdir(parents=True)
    path.write_bytes(bzimage())
    (tmp_path / ".config").write_text("")
    assert kernel(f"image:{path}").config == str(tmp_path / ".config")


GOOD = """
CONFIG_64BIT=y
CONFIG_BLK_DEV_INITRD=y
CONFIG_BINFMT_ELF=y
CONFIG_PRINTK=y
CONFIG_TTY=y
CONFIG_SERIAL_8250=y
CONFIG_SERIAL_8250_CONSOLE=y
CONFIG_PROC_FS=y
CONFIG_SYSFS=y
CONFIG_DEVTMPFS=y
CONFIG_TMPFS=y
CONFIG_KALLSYMS=y
"""


def missing(config: str, image_format: str = "bzImage") -> list[str]:
    return [option.option for option in missing_options(config, image_format)]


def test_nothing_is_missing() -> None:
    assert missing(GOOD) == []


@pytest.mark.parametrize("option", GOOD.split())
def test_each_option_is_missed(option: str) -> None:
    name = option.removesuffix("=y")
    without = GOOD.replace(f"{option}\n", f"# {name} is not set\n")
    assert missing(without) == [name]


def test_module_is_not_enough() -> None:
    assert missing(GOOD.replace("SERIAL_8250=y", "SERIAL_8250=m")) == ["CONFIG_SERIAL_8250"]


def test_vmlinux_needs_pvh() -> None:
    assert missing(GOOD, "vmlinux") == ["CONFIG_PVH"]
    assert missing(f"{GOOD}CONFIG_PVH=y\n", "vmlinux") == []


@pytest.mark.network
def test_real_kernel_lacks_nothing(real_kernel: Kernel) -> None:
    assert real_kernel.config is not None
    assert missing(Path(real_kernel.config).read_text(), "vmlinux") == []


@pytest.mark.network
def test_package_and_its_files_are_the_same_kernel(real_kernel: Kernel) -> None:
    again = kernel(f"image:{real_kernel.image},modules={real_kernel.modules}")
    assert again.identity == real_kernel.identity
    assert (again.release, again.config) == (real_kernel.release, real_kernel.config)


ARM = bytes(0x24) + b"\x18\x28\x6f\x01" + bytes(64)
ARM64 = bytes(0x38) + b"ARM\x64" + bytes(64)
TEXT = f"Linux version {RELEASE} (someone@example.org) (gcc 12) #1 SMP\n\0".encode()


@pytest.fixture
def zimage(tmp_path: Path) -> Path:
    path = tmp_path / "boot/vmlinuz"
    path.parent.mkdir()
    path.write_bytes(ARM + gzip.compress(TEXT))
    return path


@pytest.mark.parametrize(
    ("below", "found"),
    [
        ("boot/vexpress-v2p-ca9.dtb", "boot"),
        (
            f"usr/lib/linux-image-{RELEASE}/vexpress-v2p-ca9.dtb",
            f"usr/lib/linux-image-{RELEASE}",
        ),
        (
            f"usr/lib/linux-image-{RELEASE}/arm/vexpress-v2p-ca9.dtb",
            f"usr/lib/linux-image-{RELEASE}",
        ),
        ("usr/lib/linux-image-5.10.0/vexpress-v2p-ca9.dtb", None),
        (
            f"usr/lib/modules/{RELEASE}/dtb/vexpress-v2p-ca9.dtb",
            f"usr/lib/modules/{RELEASE}/dtb",
        ),
    ],
)
def test_device_trees_where_packages_have_them(
    zimage: Path, tmp_path: Path, below: str, found: str | None
) -> None:
    (tmp_path / below).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / below).write_bytes(b"tree")
    expected = str(tmp_path / found) if found else None
    assert kernel(f"image:{zimage}").device_trees == expected


def test_device_trees_and_config_where_a_build_makes_them(tmp_path: Path) -> None:
    image = tmp_path / "arch/arm/boot/zImage"
    (image.parent / "dts/arm").mkdir(parents=True)
    image.write_bytes(ARM + gzip.compress(TEXT))
    (image.parent / "dts/arm/vexpress-v2p-ca9.dtb").write_bytes(b"tree")
    (tmp_path / ".config").write_text("CONFIG_ARM=y\n")
    found = kernel(f"image:{image}")
    assert (found.arch, found.image_format) == ("arm", "zImage")
    assert found.device_trees == str(image.parent / "dts")
    assert found.config == str(tmp_path / ".config")


@pytest.mark.usefixtures("own_cache")
def test_an_image_in_a_gzip_file_is_unpacked_for_the_machine(tmp_path: Path) -> None:
    content = ARM64 + TEXT
    (tmp_path / "Image").write_bytes(content)
    (tmp_path / "Image.gz").write_bytes(gzip.compress(content))
    plain, packed = kernel(f"image:{tmp_path}/Image"), kernel(f"image:{tmp_path}/Image.gz")
    assert plain.image == str(tmp_path / "Image")
    assert Path(packed.image).read_bytes() == content
    Path(packed.image).write_bytes(b"cut")
    assert Path(kernel(f"image:{tmp_path}/Image.gz").image).read_bytes() == content


def test_a_pipe_is_no_image_and_no_archive_of_modules(image: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "bzImage"
    os.mkfifo(pipe)
    spec = parse_kernel_spec(f"image:{pipe}")
    assert isinstance(spec, ImageSpec)
    for attempt in (check_image, obtain_image):
        with pytest.raises(UserError, match="bzImage cannot be booted: it is not a file"):
            attempt(spec)
    os.mkfifo(image.parent / "modules.tar")
    assert kernel(f"image:{image.parent}").modules is None
