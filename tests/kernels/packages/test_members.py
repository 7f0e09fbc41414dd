# SPDX-License-Identifier: GPL-2.0-or-later
"""Archives of other package managers, hostile ones: nothing is written outside the folder, and no
claim of an archive is believed.
"""

import bz2
import gzip
import io
import lzma
import struct
import subprocess
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.kernels.packages import members, packed
from kdelta.kernels.packages.unpack import unpack_kernel
from kdelta.spec.errors import LabError
from tests.kernels.samples import RELEASE, member, tree

MODULES = f"lib/modules/{RELEASE}"
FILE, LINK, DEVICE = 0o100644, 0o120777, 0o020600
Entry = tuple[str, bytes, int]


def cpio(entries: list[Entry], *, claimed: int | None = None) -> bytes:
    """An archive in the format newc; `claimed` is how long it says that each file is."""
    packed = b""
    for name, content, mode in [*entries, ("TRAILER!!!", b"", 0)]:
        size = len(content) if claimed is None or not mode else claimed
        fields = [0, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, len(name.encode()) + 1, 0]
        head = b"070701" + b"".join(b"%08x" % one for one in fields) + name.encode() + b"\0"
        packed += head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)
    return packed


def rpm(payload: bytes, *, kind: int = 0, form: bytes = b"cpio") -> bytes:
    """A package without hashes, as rpm before 4.14 made them."""
    lead = struct.pack(">4sBBhh66shh16x", b"\xed\xab\xee\xdb", 3, 0, kind, 1, b"fake", 1, 5)
    header = b"\x8e\xad\xe8\x01" + bytes(4)
    signatures = header + struct.pack(">II", 0, 0)
    store = form + b"\0"
    tags = struct.pack(">IIII", 1124, 6, 0, 1)
    return lead + signatures + header + struct.pack(">II", 1, len(store)) + tags + store + payload


def tar(entries: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


def zstd(content: bytes) -> bytes:
    return subprocess.run(["zstd", "-qc"], input=content, capture_output=True, check=True).stdout


class Sandbox:
    """A folder whose surroundings must stay as they are."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.inside = root / "above/inside"
        self.inside.mkdir(parents=True)
        (root / "victim").write_text("kept")

    def unpack(self, content: bytes) -> set[str]:
        package = self.root / "package"
        package.write_bytes(content)
        try:
            unpack_kernel(package, self.inside)
        finally:
            around = tree(self.root) - {f"above/inside/{one}" for one in tree(self.inside)}
            assert around == {"above", "above/inside", "package", "victim"}
            assert (self.root / "victim").read_text() == "kept"
            assert not any(path.is_symlink() for path in self.inside.rglob("*"))
        return {one for one in tree(self.inside) if (self.inside / one).is_file()}


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


PACKERS: list[Callable[[bytes], bytes]] = [bytes, gzip.compress, bz2.compress, lzma.compress, zstd]


@pytest.mark.parametrize("pack", PACKERS)
def test_cpio_and_tar_are_read_by_their_content(
    sandbox: Sandbox, pack: Callable[[bytes], bytes]
) -> None:
    name = f"{MODULES}/a.ko"
    assert sandbox.unpack(rpm(pack(cpio([(f"./{name}", b"one", FILE)])))) == {name}
    assert (sandbox.inside / name).read_bytes() == b"one"
    other = f"{MODULES}/b.ko"
    assert sandbox.unpack(pack(tar([member(f"usr/{other}", b"two")]))) == {name, other}


@pytest.mark.parametrize(
    "name", ["../victim", f"{MODULES}/../../../../../victim", "/victim", "//boot/vmlinuz-x"]
)
def test_paths_that_lead_outside_are_refused(sandbox: Sandbox, name: str) -> None:
    for content in (rpm(cpio([(name, b"hostile", FILE)])), tar([member(name, b"hostile")])):
        with pytest.raises(LabError, match="refused: it holds the path"):
            sandbox.unpack(content)


def test_links_and_devices_are_left_out(sandbox: Sandbox) -> None:
    link = (f"{MODULES}/build", str(sandbox.root).encode(), LINK)
    through = (f"{MODULES}/build/victim", b"hostile", FILE)
    device = (f"{MODULES}/a.ko", b"", DEVICE)
    assert sandbox.unpack(rpm(cpio([link, device, through]))) == {f"{MODULES}/build/victim"}


def test_file_named_twice_is_refused(sandbox: Sandbox) -> None:
    twice = [("boot/vmlinuz-1", b"one", FILE), ("boot/vmlinuz-1", b"two", FILE)]
    with pytest.raises(LabError, match=r"unpacking .*File exists"):
        sandbox.unpack(rpm(cpio(twice)))


def test_claimed_size_is_not_believed(sandbox: Sandbox) -> None:
    entry = (f"{MODULES}/a.ko", b"short", FILE)
    with pytest.raises(LabError, match="damaged: it is cut off"):
        sandbox.unpack(rpm(cpio([entry], claimed=1 << 20)))
    with pytest.raises(LabError, match="no header of cpio's"):
        sandbox.unpack(rpm(cpio([(f"{MODULES}/b.ko", b"longer than that", FILE)], claimed=4)))


@pytest.mark.parametrize("pack", PACKERS)
def test_what_unpacks_to_too_much_is_refused(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    """Also where it is nothing that a kernel needs, and nothing of it would be written."""
    monkeypatch.setattr(members, "MAX_BYTES", 1 << 20)
    bomb = [("usr/share/zeros", bytes(4 << 20), FILE)]
    with pytest.raises(LabError, match="unpacks to more than"):
        sandbox.unpack(rpm(pack(cpio(bomb))))
    with pytest.raises(LabError, match="unpacks to more than"):
        sandbox.unpack(pack(tar([member("usr/share/zeros", bytes(4 << 20))])))


def test_kernel_that_is_too_large_is_refused(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdelta.kernels.packages.unpack.MAX_BYTES", 1000)
    entries = [(f"{MODULES}/{number}.ko", bytes(600), FILE) for number in range(2)]
    with pytest.raises(LabError, match="too large for a kernel"):
        sandbox.unpack(rpm(cpio(entries)))


def test_header_of_tar_that_is_too_large_is_refused(sandbox: Sandbox) -> None:
    """It would be read into memory as a whole."""
    long = member(f"{MODULES}/a.ko", b"x", pax_headers={"comment": "y" * (2 << 20)})
    with pytest.raises(LabError, match="a header that is too large"):
        sandbox.unpack(tar([long]))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (rpm(b"", kind=1), "it is a source package"),
        (rpm(b"", form=b"drpm"), "in the format drpm"),
        (rpm(b""), "no header of cpio's|empty|cut off"),
        (rpm(b"")[:96] + b"\x8e\xad\xe8\x01" + bytes(4) + b"\xff" * 8, "no header of rpm's"),
        (rpm(cpio([("x" * 5000, b"", FILE)])), "a name that is too long"),
        (gzip.compress(cpio([]))[:-9], "end-of-stream|cut off|ended"),
        (zstd(b"neither"), "empty|truncated|invalid|file"),
        (b"", "empty|file"),
    ],
)
def test_what_is_no_package_is_refused(sandbox: Sandbox, content: bytes, said: str) -> None:
    with pytest.raises(LabError, match=f"the package package is damaged: .*({said})"):
        sandbox.unpack(content)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.slow
def test_an_image_that_unpacks_without_end_is_given_up(
    pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "MAX_BYTES", 1 << 20)
    bomb = pack(bytes(64 << 20))
    tracemalloc.start()
    assert list(packed.payloads(bomb)) == []
    assert tracemalloc.get_traced_memory()[1] < 48 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "headers",
    [
        {"GNU.sparse.map": "abc"},
        {"GNU.sparse.size": "x"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "x"},
    ],
)
def test_damaged_extended_headers_are_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    info = tarfile.TarInfo("boot/vmlinuz-1")
    info.size, info.pax_headers = 3, headers
    package = tmp_path / "package.pkg.tar"
    package.write_bytes(tar([(info, b"abc")]))
    with pytest.raises(LabError, match=r"package\.pkg\.tar is damaged"):
        unpack_kernel(package, tmp_path / "inside")


def test_sparse_files_are_left_out(tmp_path: Path) -> None:
    info = tarfile.TarInfo("boot/vmlinuz-1")
    info.size = 3
    info.pax_headers = {"GNU.sparse.map": "0,3", "GNU.sparse.size": str(1 << 30)}
    package = tmp_path / "package.pkg.tar"
    package.write_bytes(tar([(info, b"abc")]))
    unpack_kernel(package, tmp_path / "inside")
    assert not (tmp_path / "inside").exists()
