# SPDX-License-Identifier: GPL-2.0-or-later
"""deb: kernels of other architectures than the host's."""

import gzip
from pathlib import Path

import pytest

from kdelta.cli.kernels import kernels_text
from kdelta.host.target import host_target
from kdelta.kernels.packages.cached import cached_kernels
from kdelta.spec.errors import UserError
from tests.kernels.packages.conftest import IMAGE, Lab
from tests.kernels.samples import deb, member

ARM_IMAGE = "linux-image-6.1.0-99-armmp"
ARM_RELEASE = "6.1.0-99-armmp"


@pytest.fixture(params=[f"linux-image-{ARM_RELEASE}", f"modules/{ARM_RELEASE}/dtb"])
def arm_lab(lab: Lab, request: pytest.FixtureRequest) -> Lab:
    """The mirror has a kernel for ARM, and the system's lists have not. Its device trees are where
    Debian had them until 13, and has them since 14.
    """
    text = f"Linux version {ARM_RELEASE} (someone@example.org) (gcc 12) #1 SMP\n\0".encode()
    zimage = bytes(0x24) + b"\x18\x28\x6f\x01" + gzip.compress(text)
    trees = f"./usr/lib/{request.param}"
    path = lab.folder / "arm.deb"
    members = [
        member(f"./boot/vmlinuz-{ARM_RELEASE}", zimage),
        member(f"./lib/modules/{ARM_RELEASE}/kernel/net/dummy.ko", b"module"),
        member(f"{trees}/vexpress-v2p-ca9.dtb", b"tree"),
        member(f"{trees}/other-board.dtb", b"tree"),
    ]
    path.write_bytes(deb(members))
    lab.change(own_lists={ARM_IMAGE: {"3-1": {"deb": str(path)}}})
    return lab


@pytest.mark.slow
def test_a_package_of_another_architecture(arm_lab: Lab, own_cache: Path) -> None:
    kernel = arm_lab.obtain(f"deb:{ARM_IMAGE}:armhf")
    assert (kernel.arch, kernel.release, kernel.image_format) == ("arm", ARM_RELEASE, "zImage")
    assert kernel.spec == f"deb:{ARM_IMAGE}:armhf=3-1"
    assert kernel.device_trees is not None
    assert [p.name for p in Path(kernel.device_trees).iterdir()] == ["vexpress-v2p-ca9.dtb"]
    assert [p.name for p in own_cache.rglob("*.dtb")] == ["vexpress-v2p-ca9.dtb"]
    # The lists of that architecture are loaded, and kdelta's own of this host are left alone.
    assert (own_cache / "apt-armhf/updated").exists()
    assert not (own_cache / "apt/updated").exists()
    arm_lab.change(network=False)
    assert arm_lab.obtain(kernel.spec) == kernel
    assert arm_lab.obtain(f"deb:{ARM_IMAGE}:armhf") == kernel


@pytest.mark.slow
def test_the_list_names_a_kernel_as_it_is_asked_for(arm_lab: Lab) -> None:
    kernel = arm_lab.obtain(f"deb:{ARM_IMAGE}:armhf")
    assert kernels_text(cached_kernels(), []).startswith(f"{kernel.spec}\n")


@pytest.mark.slow
def test_architectures_have_kernels_of_their_own(arm_lab: Lab) -> None:
    arm_lab.obtain(f"deb:{ARM_IMAGE}:armhf")
    with pytest.raises(UserError, match=f"apt knows no package {ARM_IMAGE}"):
        arm_lab.obtain(f"deb:{ARM_IMAGE}")
    with pytest.raises(UserError, match=f"apt knows no package {IMAGE}") as raised:
        arm_lab.obtain(f"deb:{IMAGE}:armhf")
    assert ARM_IMAGE in raised.value.hint


def test_the_architecture_of_the_host_may_be_named(lab: Lab) -> None:
    of = host_target()
    assert of is not None
    assert lab.obtain(f"deb:{IMAGE}:{of.dpkg}") == lab.obtain(f"deb:{IMAGE}")


def test_a_distribution_without_the_architecture(lab: Lab) -> None:
    with pytest.raises(UserError, match=r"no linux-image-\* packages for riscv64") as raised:
        lab.obtain(f"deb:{IMAGE}:riscv64")
    assert "image:PATH" in raised.value.hint


def test_an_architecture_without_a_machine(lab: Lab) -> None:
    with pytest.raises(UserError, match="kernels for ppc64el cannot be run") as raised:
        lab.obtain(f"deb:{IMAGE}:ppc64el")
    assert "armhf" in raised.value.hint
    assert lab.downloads() == []
