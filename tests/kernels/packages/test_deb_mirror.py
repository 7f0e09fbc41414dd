# SPDX-License-Identifier: GPL-2.0-or-later
"""deb: kernels from the mirrors that this host has."""

from pathlib import Path

import pytest

from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.kernels.packages.apt import Apt
from kdelta.spec.kernel import parse_kernel_spec

pytestmark = pytest.mark.network


@pytest.mark.slow
def test_real_mirror(own_cache: Path) -> None:
    said: list[str] = []
    kernel = obtain(parse_kernel_spec("deb:linux-image-cloud-amd64"), said.append)
    assert isinstance(kernel, Kernel)
    assert kernel.release.endswith("-cloud-amd64")
    assert any(line.startswith("linux-image-cloud-amd64 ") for line in said)
    assert kernel.modules is not None
    assert list(Path(kernel.modules).rglob("*.ko*"))
    kept = [path.name for path in (own_cache / "kernels").iterdir() if path.is_dir()]
    assert kept == [kernel.spec.removeprefix("deb:")]


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
def test_a_kernel_of_another_release() -> None:
    kernel = obtain(parse_kernel_spec("deb:linux-image-cloud-amd64@trixie"), print)
    assert isinstance(kernel, Kernel)
    assert kernel.release.endswith("+deb13-cloud-amd64")


@pytest.mark.slow
def test_own_lists_need_no_root(own_cache: Path) -> None:
    assert own_cache
    apt = Apt.with_own_lists()
    apt.update(print, "linux-image-")
    assert "linux-image-cloud-amd64" in apt.names("linux-image-")
    assert apt.candidate("linux-image-cloud-amd64") in apt.versions("linux-image-cloud-amd64")
