# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that a distribution splits into several packages."""

from pathlib import Path

import pytest

from tests.kernels.packages.conftest import IMAGE, Lab
from tests.kernels.samples import BANNER, RELEASE, bzimage, deb, member


def test_kernel_that_is_split_into_packages(lab: Lab) -> None:
    """As Debian 14's are: the image package holds nothing itself."""
    at = f"./usr/lib/modules/{RELEASE}"
    members = {
        "base": [member(f"{at}/config", b"CONFIG_X86=y\n")],
        "binary": [member(f"{at}/vmlinuz", bzimage(BANNER))],
        "modules": [member(f"{at}/kernel/net/dummy.ko", b"module")],
    }
    parts = {f"linux-{kind}-{RELEASE}": deb(content) for kind, content in members.items()}
    depends = ", ".join(f"{name} (= 3)" for name in (*parts, "linux-doc"))
    (lab.folder / "image.deb").write_bytes(deb([]))
    lab.state["packages"][IMAGE] = {"3": {"deb": str(lab.folder / "image.deb"), "depends": depends}}
    for name, content in parts.items():
        (lab.folder / f"{name}.deb").write_bytes(content)
        lab.state["packages"][name] = {"3": {"deb": str(lab.folder / f"{name}.deb")}}
    lab.save()
    kernel = lab.obtain(f"deb:{IMAGE}")
    assert (kernel.release, kernel.spec) == (RELEASE, f"deb:{IMAGE}=3")
    assert kernel.config is not None
    assert Path(kernel.config).read_text() == "CONFIG_X86=y\n"
    assert kernel.modules is not None
    assert (Path(kernel.modules) / "kernel/net/dummy.ko").is_file()
    assert lab.downloads() == [f"download {name}=3" for name in (IMAGE, *parts)]
    assert kernel == lab.obtain(f"deb:{IMAGE}=3")


UBUNTU = "5.4.0-144-generic"


@pytest.mark.parametrize("image", [f"linux-image-{UBUNTU}", f"linux-image-unsigned-{UBUNTU}"])
def test_kernel_of_ubuntu(lab: Lab, image: str) -> None:
    """Its modules are in packages that it depends on in any version, or that only a package for all
    of it names. Depends is that of Ubuntu's linux-image-5.4.0-144-generic (apt-cache show).
    """
    depends = f"kmod, linux-base (>= 4.5ubuntu1~16.04.1), linux-modules-{UBUNTU}"
    at = f"./lib/modules/{UBUNTU}"
    members = {
        image: [member(f"./boot/vmlinuz-{UBUNTU}", bzimage(f"{UBUNTU} (buildd@x) #161 SMP"))],
        f"linux-modules-{UBUNTU}": [
            member(f"./boot/config-{UBUNTU}", b"CONFIG_X86=y\n"),
            member(f"{at}/kernel/net/dummy.ko", b"module"),
        ],
        f"linux-modules-extra-{UBUNTU}": [member(f"{at}/kernel/net/rare.ko", b"module")],
    }
    for name, content in members.items():
        path = lab.folder / f"{name}.deb"
        path.write_bytes(deb(content))
        lab.state["packages"][name] = {"5.4.0-144.161": {"deb": str(path)}}
    lab.state["packages"][image]["5.4.0-144.161"]["depends"] = depends
    lab.state["packages"]["linux-image-generic"] = {"5.4.0.144.142": {"depends": image}}
    lab.save()
    kernel = lab.obtain("deb:linux-image-generic")
    assert (kernel.release, kernel.spec) == (UBUNTU, f"deb:{image}=5.4.0-144.161")
    assert kernel.config is not None
    assert Path(kernel.config).read_text() == "CONFIG_X86=y\n"
    assert kernel.modules is not None
    found = Path(kernel.modules).rglob("*.ko")
    assert sorted(path.name for path in found) == ["dummy.ko", "rare.ko"]
    assert lab.downloads() == [f"download {name}=5.4.0-144.161" for name in members]
