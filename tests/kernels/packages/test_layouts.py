# SPDX-License-Identifier: GPL-2.0-or-later
"""What real kernel packages of distributions hold, by recorded lists of their files: of each, the
image, the config and the modules are found, and nothing that no kernel needs is unpacked.
"""

import re
from pathlib import Path

import pytest

from kdelta.kernels.packages.cached import record_of
from kdelta.kernels.packages.unpack import unpack_kernel
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
    ],
)
def test_kernel_of_a_recorded_list(name: str, release: str, modules: int, tmp_path: Path) -> None:
    paths = recorded(name)
    if name.startswith("fedora"):  # what is a ghost is not in the package
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
    assert entry.config is not None
    assert Path(entry.config).name.startswith("config")
    assert entry.modules == f"lib/modules/{found[0]}"
    assert len(list((folder / entry.modules).rglob("*.ko*"))) == modules
    assert not (folder / "usr").exists()
