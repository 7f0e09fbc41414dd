# SPDX-License-Identifier: GPL-2.0-or-later
"""What real kernel packages of distributions hold, by recorded lists of their files: of each, the
image, the config and the modules are found, and nothing that no kernel needs is unpacked.
"""

import re
from pathlib import Path

import pytest

from kdelta.kernels.packages.cached import record_of
from kdelta.kernels.packages.image import obtain_image
from kdelta.kernels.packages.unpack import unpack_kernel
from kdelta.spec.kernel import ImageSpec
from tests.kernels.samples import bzimage, deb, member

LISTS = Path(__file__).parent / "recorded/lists"
_IMAGE = re.compile(r"/vmlinuz(-|$)")


def recorded(name: str) -> list[str]:
    """The paths of regular files in a list, relative: lines are PATH, or BYTES PATH."""
    lines = (LISTS / f"{name}.txt").read_text().splitlines()
    paths = [line.split()[-1] for line in lines if line[:1] != "#" and " -> " not in line]
    return [path.removeprefix("./").removeprefix("/") for path in paths]


@pytest.mark.parametrize(
    ("name", "release", "modules"),
    [
        ("debian-bookworm", r"6\.1\.0-\d+-cloud-amd64", 5),
        ("debian-trixie", r"6\.12\.[\d+a-z]+-cloud-amd64", 5),
        ("debian-forky", r"7\.2\.12\+deb14-cloud-amd64", 5),
        ("fedora-39", r"6\.6\.6-200\.fc39\.x86_64", 0),
        ("centos-stream-9", r"5\.14\.0-354\.el9\.x86_64", 0),
    ],
)
def test_kernel_of_a_recorded_list(name: str, release: str, modules: int, tmp_path: Path) -> None:
    paths = recorded(name)
    if name.startswith(("fedora", "centos")):  # what is a ghost is not in the package
        paths = [path for path in paths if not path.startswith("boot/")]
    found = re.search(release, " ".join(paths))
    assert found
    banner = f"{found[0]} (someone@example.org) #1 SMP"
    content = [member(path, bzimage(banner) if _IMAGE.search(path) else b"x") for path in paths]
    (tmp_path / "all.deb").write_bytes(deb(content))
    folder = tmp_path / "unpacked"
    folder.mkdir()
    unpack_kernel(tmp_path / "all.deb", folder)
    entry = record_of(folder, name, "1", "")
    assert (entry.release, entry.image_format) == (found[0], "bzImage")
    if any(Path(path).name.startswith("config") for path in paths):
        assert entry.config is not None
        assert Path(entry.config).name.startswith("config")
    assert entry.modules == f"lib/modules/{found[0]}"
    assert len(list((folder / entry.modules).rglob("*.ko*"))) == modules
    assert not (folder / "usr").exists()


@pytest.mark.parametrize("packed", [True, False])
def test_arm64_image_of_opensuse_lies_with_the_modules(tmp_path: Path, *, packed: bool) -> None:
    """As its kernel-binary.spec installs it: Image, and a vmlinux.xz for debuggers."""
    release = "6.4.0-150600.23.25-default"
    image = bytes(0x38) + b"ARM\x64" + bytes(0x400) + f"Linux version {release} (x@y) #1\0".encode()
    at = f"usr/lib/modules/{release}"
    contents = {"Image": image, "vmlinux.xz": b"x", "config": b"y", "kernel/net/dummy.ko.zst": b"z"}
    if packed:
        package = tmp_path / "kernel-default.deb"
        package.write_bytes(deb([member(f"{at}/{name}", contents[name]) for name in contents]))
        (tmp_path / "made").mkdir()
        unpack_kernel(package, tmp_path / "made")
        entry = record_of(tmp_path / "made", "kernel-default", "1", "")
        assert (entry.arch, entry.release, entry.image) == (
            "arm64",
            release,
            f"lib/modules/{release}/Image",
        )
        return
    for name, content in contents.items():
        path = tmp_path / at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    kernel = obtain_image(ImageSpec(str(tmp_path)))
    assert (kernel.arch, kernel.release, kernel.image) == (
        "arm64",
        release,
        str(tmp_path / at / "Image"),
    )
    assert (kernel.config, kernel.modules) == (str(tmp_path / at / "config"), str(tmp_path / at))
