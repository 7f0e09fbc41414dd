# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU that cannot be used is refused before a kernel is fetched or built."""

import os
from pathlib import Path

import pytest

from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import arch_of
from kdelta.lab.lab import Lab
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.spec.errors import KdeltaError
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.run import MachineOptions
from kdelta.store.store import Store
from tests.cli.studies import kdelta

DEB, ARM64 = "deb:linux-image-cloud-amd64@bookworm", "deb:linux-image-cloud-arm64:arm64@bookworm"


@pytest.fixture
def obtained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that were to be fetched or built: none is."""
    wanted: list[str] = []

    def obtain(spec: object, _: object) -> Kernel:
        wanted.append(str(spec))
        return Kernel("0" * 64, str(spec), "/vmlinuz", "x86_64", "6.12")

    monkeypatch.setattr("kdelta.lab.steps.obtain", obtain)
    monkeypatch.setattr("kdelta.kernels.obtain.check_deb", lambda *_: None)
    return wanted


@pytest.mark.parametrize(
    "words",
    [
        ["compare", DEB, ARM64],
        ["gate", DEB, DEB],
        ["profile", DEB],
        ["run", DEB, "--", "/bin/true"],
    ],
)
@pytest.mark.parametrize("qemu", ["/nonesuch", "/bin/true", "folder"])
@pytest.mark.slow
def test_commands_refuse_it_before_a_kernel_is_fetched(
    words: list[str], qemu: str, obtained: list[str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = str(tmp_path) if qemu == "folder" else qemu
    at = words.index("--") if "--" in words else len(words)
    assert kdelta(*words[:at], "--qemu", path, *words[at:]) in (2, 3, 255)  # 255: see gate
    said = capsys.readouterr().err
    assert f"cannot use {'' if qemu == '/bin/true' else '--qemu '}{path}" in said
    assert "hint: " in said
    assert obtained == []


def test_an_image_shows_its_architecture_itself(obtained: list[str], own_data: Path) -> None:
    request = LabRequest(machine=MachineOptions(qemu="/nonesuch"), perturbations=1)
    with Store.open(own_data) as store, pytest.raises(KdeltaError, match="cannot use --qemu"):
        Lab(store, Silent(), request).kernel("image:/vmlinuz")
    assert obtained == ["image:/vmlinuz"]


@pytest.mark.parametrize(
    ("text", "arch"),
    [
        (ARM64, "arm64"),
        ("deb:linux-image-armmp:armhf", "arm"),
        ("deb:linux-image-powerpc64le:ppc64el", ""),
        ("tree:/src/linux +ARCH=riscv", "riscv64"),
        ("git:/src/linux@v6.12 +ARCH=arm +ARCH=arm64", "arm64"),
        ("tree:/src/linux +ARCH=sparc", ""),
        ("image:/vmlinuz", ""),
    ],
)
def test_architecture_is_known_by_the_spec(text: str, arch: str) -> None:
    assert arch_of(parse_kernel_spec(text)) == arch


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the host is of another architecture")
@pytest.mark.parametrize("text", [DEB, "tree:/src/linux", "deb-src:linux-source-6.12"])
def test_architecture_is_the_hosts_unless_it_is_named(text: str) -> None:
    assert arch_of(parse_kernel_spec(text)) == "x86_64"
