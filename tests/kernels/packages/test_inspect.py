# SPDX-License-Identifier: GPL-2.0-or-later
"""What a file is: kernels that can be booted, those that cannot, and what is no kernel."""

import gzip
import lzma
import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.kernels.model import Kernel
from kdelta.kernels.packages.image import check_image
from kdelta.kernels.packages.inspect import inspect
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import ImageSpec
from tests.kernels.samples import BANNER, RELEASE, bzimage, elf_header

VMLINUX_SOURCE = """
const char banner[] = "Linux version 6.12.5-test (someone@example.org) (gcc 12) #1 SMP Monday\\n";
const char format[] = "Linux version %s (%s)\\n";
int _start(void) { return banner[0] + format[0]; }
"""
PVH_NOTE = '.section .note.Xen,"a",@note\n.long 4, 8, 18\n.asciz "Xen"\n.quad 0x1000000\n'


def refused(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "image"
    path.write_bytes(content)
    with pytest.raises(UserError) as raised:
        inspect(path)
    assert str(path) in raised.value.message
    assert raised.value.hint
    return raised.value.message


def link(tmp_path: Path, *assembly: str, source: str = VMLINUX_SOURCE) -> Path:
    (tmp_path / "a.c").write_text(source)
    (tmp_path / "b.s").write_text("".join(assembly))
    argv = ["gcc", "-nostdlib", "-static", "-no-pie", "-o", "vmlinux", "a.c", "b.s"]
    subprocess.run(argv, cwd=tmp_path, check=True)
    return tmp_path / "vmlinux"


@pytest.mark.parametrize("read", [inspect, lambda path: check_image(ImageSpec(str(path)))])
def test_pipe_is_refused_and_not_waited_for(tmp_path: Path, read: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="cannot be booted: it is not a file"):
        read(tmp_path / "pipe")


def test_bzimage(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(bzimage())
    facts = inspect(path)
    assert (facts.image_format, facts.release, facts.banner) == ("bzImage", RELEASE, BANNER)


@pytest.mark.parametrize("release", ["6.1/../../etc", "6.1\x1b[2J", "6." + "1" * 400, "6.1*"])
def test_bzimage_release_that_is_no_name_is_refused(tmp_path: Path, release: str) -> None:
    banner = f"{release} (a@b) #1"
    assert "a kernel whose release is no name" in refused(tmp_path, bzimage(banner))


def test_vmlinux_with_pvh(tmp_path: Path) -> None:
    facts = inspect(link(tmp_path, PVH_NOTE))
    assert (facts.image_format, facts.release) == ("vmlinux", "6.12.5-test")
    assert facts.banner.startswith("6.12.5-test (someone@example.org)")


def test_vmlinux_without_pvh(tmp_path: Path) -> None:
    path = link(tmp_path, PVH_NOTE.replace("18", "7"))
    with pytest.raises(UserError, match="without a PVH entry") as raised:
        inspect(path)
    assert "CONFIG_PVH=y" in raised.value.hint


def test_program_is_no_kernel(tmp_path: Path) -> None:
    path = link(tmp_path, source="int _start(void) { return 0; }")
    assert "a program, not a kernel" in refused(tmp_path, path.read_bytes())


def at(offset: int, magic: bytes) -> bytes:
    return bytes(offset) + magic + bytes(0x400)


TEXT = b"Linux version 6.12.5-test (someone@example.org) (gcc 12) #1 SMP Monday\n\0"
ZIMAGE = bytes(0x24) + struct.pack("<I", 0x016F2818) + bytes(100)
NOISE = bytes(range(256)) * 16


@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        lambda data: lzma.compress(data, lzma.FORMAT_XZ),
        lambda data: lzma.compress(data, lzma.FORMAT_ALONE),
    ],
)
def test_zimage_tells_its_release_when_unpacked(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "zImage"
    # What looks packed and is not comes first, as in real ones; the packed size comes after.
    head = ZIMAGE + b"\xfd7zXZ\0 is what xz begins with; \x1f\x8b\x08 too"
    path.write_bytes(head + pack(NOISE + TEXT + NOISE) + b"\0\x10\0\0" + NOISE)
    facts = inspect(path)
    assert (facts.arch, facts.image_format) == ("arm", "zImage")
    assert facts.release == "6.12.5-test"
    assert facts.banner == "6.12.5-test (someone@example.org) (gcc 12) #1 SMP Monday"
    assert facts.unpacked is None


@pytest.mark.parametrize(
    ("arch", "head"), [("arm64", at(0x38, b"ARM\x64")), ("riscv64", at(0x30, b"RISCV\0\0\0"))]
)
def test_images_plain_and_in_a_gzip_file(tmp_path: Path, arch: str, head: bytes) -> None:
    image = head + NOISE + TEXT
    (tmp_path / "Image").write_bytes(image)
    (tmp_path / "Image.gz").write_bytes(gzip.compress(image))
    plain, packed = (inspect(tmp_path / name) for name in ("Image", "Image.gz"))
    assert (plain.arch, plain.image_format, plain.release) == (arch, "Image", "6.12.5-test")
    assert plain.unpacked is None
    assert packed.unpacked == image
    assert packed.banner == plain.banner


def zboot(packed: bytes, method: str) -> bytes:
    """An EFI zboot image: what loaders look at of its header, and what is packed."""
    head = bytearray(0x1000)
    head[:8] = b"MZ\0\0zimg"
    struct.pack_into("<II", head, 8, len(head), len(packed))
    head[24 : 24 + len(method)] = method.encode()
    # The size of what was packed follows, which is no part of it.
    return bytes(head) + packed + struct.pack("<I", 0x4000)


def unified(kernel: bytes, section: bytes = b".linux") -> bytes:
    """A unified kernel image: a PE file with the kernel as a section, padded, after another."""
    head = bytearray(0x400)
    head[:2] = b"MZ"
    struct.pack_into("<I", head, 0x3C, 0x80)
    struct.pack_into("<4sHHIIIHH", head, 0x80, b"PE\0\0", 0xAA64, 2, 0, 0, 0, 16, 0)
    struct.pack_into("<8sIIII", head, 0x80 + 24 + 16, b".osrel", 4, 0, 4, 0x200)
    place = len(kernel), 0x1000, len(kernel) + 0x100, len(head)
    struct.pack_into("<8sIIII", head, 0x80 + 24 + 16 + 40, section, *place)
    return bytes(head) + kernel + bytes(0x100)


def by_zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize("wrap", [lambda made: made, unified])
@pytest.mark.parametrize(
    ("method", "pack"),
    [
        ("gzip", gzip.compress),
        ("xzkern", lambda data: lzma.compress(data, lzma.FORMAT_XZ)),
        ("lzma", lambda data: lzma.compress(data, lzma.FORMAT_ALONE)),
        ("zstd22", by_zstd),
        ("none", lambda data: data),
    ],
)
def test_images_for_efi_firmware_are_unpacked(
    tmp_path: Path, method: str, pack: Callable[[bytes], bytes], wrap: Callable[[bytes], bytes]
) -> None:
    image = b"MZ" + at(0x36, b"ARM\x64") + NOISE + TEXT
    (tmp_path / "vmlinuz.efi").write_bytes(wrap(zboot(pack(image), method)))
    facts = inspect(tmp_path / "vmlinuz.efi")
    assert (facts.arch, facts.image_format, facts.release) == ("arm64", "Image", "6.12.5-test")
    assert facts.unpacked == image


def test_unified_kernel_image_holds_a_kernel_of_any_architecture(tmp_path: Path) -> None:
    (tmp_path / "linux.efi").write_bytes(unified(bzimage()))
    facts = inspect(tmp_path / "linux.efi")
    assert (facts.arch, facts.image_format) == ("x86_64", "bzImage")
    assert facts.unpacked == bzimage()


@pytest.mark.parametrize(("machine", "image"), [(40, "zImage"), (183, "Image"), (243, "Image")])
def test_vmlinux_of_another_architecture_names_its_image(
    tmp_path: Path, machine: int, image: str
) -> None:
    path = tmp_path / "vmlinux"
    path.write_bytes(elf_header(machine, bits=32 if machine == 40 else 64) + TEXT)
    with pytest.raises(UserError, match="which QEMU does not boot as Linux") as raised:
        inspect(path)
    assert image in raised.value.hint


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\n", "not a kernel"),
        (bytes(4096), "not a kernel"),
        (at(0x38, b"ARM\x64"), "arm64 that is damaged"),
        (b"MZ" + at(0x36, b"ARM\x64"), "arm64"),
        (at(0x24, struct.pack("<I", 0x016F2818)), "32-bit ARM that is damaged, or packed in a way"),
        (at(0x24, struct.pack(">I", 0x016F2818)), "big-endian 32-bit ARM"),
        (at(0x30, b"RISCV\0\0\0"), "riscv64 that is damaged"),
        (at(0, b"MZ\0\0zimg"), "damaged kernel for EFI firmware (cut off)"),
        (zboot(b"lz4 or so", "lz4"), "not understood; its header says lz4)"),
        (zboot(gzip.compress(NOISE, mtime=0)[:-20], "gzip"), "damaged kernel for EFI firmware"),
        (zboot(gzip.compress(NOISE, mtime=0), "gzip"), "an EFI or DOS program"),
        (gzip.compress(b"something else", mtime=0), "a gzip file without a kernel in it"),
        (gzip.compress(at(0x38, b"ARM\x64"), mtime=0)[:-12], "damaged gzip file"),
        (at(0, struct.pack(">I", 0x27051956)), "uImage"),
        (at(0, b"\x1f\x8b\x08"), "gzip"),
        (at(0, b"!<arch>\ndebian-binary"), "Debian package"),
        (at(0, b"070701"), "cpio"),
        (unified(b"nothing"), "EFI or DOS program"),
        (unified(bzimage(), b".text"), "EFI or DOS program"),
        (unified(bzimage())[:0x9C], "damaged kernel for EFI firmware (cut off)"),
        (unified(bzimage() + NOISE)[:-0x101], "damaged kernel for EFI firmware (cut off)"),
        (unified(unified(unified(bzimage()))), "EFI or DOS program"),
        (bzimage(xloadflags=0), "32-bit x86"),
        (bzimage(protocol=0x204), "32-bit x86, or older"),
        (bzimage()[:0x210], "cut off"),
        (bzimage(banner=""), "does not report its release"),
        (elf_header(3, bits=32), "another architecture (386, 32 bit)"),
        (elf_header(183), "another architecture (AARCH64, 64 bit)"),
        (elf_header(22, big_endian=True), "another architecture (S390, 64 bit)"),
        (elf_header(62, bits=32), "another architecture (X86_64, 32 bit)"),
        (elf_header(62, kind=1), "kernel module"),
        (b"\x7fELF" + bytes(20), "damaged ELF"),
        (b"\x7fELF\x02\x01\x01" + b"\xff" * 200, "ELF"),
    ],
)
def test_what_cannot_be_booted(tmp_path: Path, content: bytes, said: str) -> None:
    assert said in refused(tmp_path, content)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        inspect(tmp_path / "none")


def test_build_folder_names_its_image(tmp_path: Path) -> None:
    image = tmp_path / "arch/x86/boot/bzImage"
    image.parent.mkdir(parents=True)
    image.write_bytes(bzimage())
    with pytest.raises(UserError, match="it is a folder") as raised:
        inspect(tmp_path)
    assert raised.value.hint == f"write image:{image}"


@pytest.mark.slow
@pytest.mark.network
def test_vmlinux_inside_a_real_bzimage(real_kernel: Kernel, tmp_path: Path) -> None:
    """The boot protocol's payload_offset and payload_length say where it is; zstd there."""
    image = Path(real_kernel.image).read_bytes()
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (image[0x1F1] + 1) * 512 + offset
    # The build appends the unpacked size, 4 bytes.
    payload = image[start : start + length - 4]
    done = subprocess.run(["zstd", "-dcq"], input=payload, capture_output=True, check=True)
    (tmp_path / "vmlinux").write_bytes(done.stdout)
    facts = inspect(tmp_path / "vmlinux")
    assert (facts.image_format, facts.release) == ("vmlinux", real_kernel.release)
