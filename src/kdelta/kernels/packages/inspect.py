# SPDX-License-Identifier: GPL-2.0-or-later
"""Tells what a file is: a kernel that a machine of the lab boots, another one, or no kernel."""

import mmap
import re
import struct
from pathlib import Path
from typing import IO

import msgspec
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import NoteSegment

from kdelta.host.files import lab_errors
from kdelta.kernels.packages.packed import METHODS, PackedError, payloads, unpacked_image
from kdelta.kernels.packages.wrapped import inner_image
from kdelta.spec.errors import LabError, UserError

NEEDED = (
    "what is needed: a bzImage or vmlinux for x86-64, a zImage for ARM, "
    "an Image for arm64 or RISC-V"
)

# Documentation/arch/x86/boot.rst, "The Real-Mode Kernel Header": offsets in the file.
_BOOT_FLAG, _HEADER_MAGIC = 0x1FE, 0x202
_PROTOCOL, _KERNEL_VERSION, _XLOADFLAGS = 0x206, 0x20E, 0x236
_XLF_KERNEL_64 = 1
_PROTOCOL_WITH_XLOADFLAGS = 0x20C

# Xen's public elfnote.h: XEN_ELFNOTE_PHYS32_ENTRY, by which a PVH loader finds its entry.
_PVH_NOTE_OWNER, _PVH_NOTE_TYPE = "Xen", 18

# linux_banner of init/version.c; its format, with %s in it, is a string of the kernel, too.
_BANNER = re.compile(rb"Linux version (([0-9][^\s%]*) [^\n\0%]{1,500})")

# include/uapi/linux/utsname.h: __NEW_UTS_LEN.
_UTS_LEN = 64
_RELEASE = re.compile(rf"[0-9][\w.+~:-]{{0,{_UTS_LEN - 1}}}", re.ASCII)

# What the heads of images of other architectures hold, and where: arch/arm/boot/compressed/head.S;
# Documentation/arch/arm64/booting.rst, Documentation/arch/riscv/boot-image-header.rst.
_ZIMAGE = (0x24, b"\x18\x28\x6f\x01")
_ARM64_IMAGE = (0x38, b"ARM\x64")
_RISCV_IMAGE = (0x30, b"RISCV\0\0\0")
_BZIMAGE = (_HEADER_MAGIC, b"HdrS")
_ELF = (0, b"\x7fELF")
_GZIP = (0, b"\x1f\x8b")

# (offset, bytes there, what it is): kernels of other kinds and what is taken for one by mistake.
_OTHERS = (
    (0x24, b"\x01\x6f\x28\x18", "a kernel for big-endian 32-bit ARM (zImage)"),
    (0x00, b"\x27\x05\x19\x56", "a U-Boot image (uImage)"),
    (0x00, b"\xd0\x0d\xfe\xed", "a device tree or FIT image"),
    (0x00, b"\xfd7zXZ\0", "an xz file"),
    (0x00, b"\x28\xb5\x2f\xfd", "a zstd file"),
    (0x00, b"!<arch>\ndebian", "a Debian package"),
    (0x00, b"070701", "a cpio archive, perhaps an initramfs"),
    (0x00, b"MZ", "an EFI or DOS program"),
    (0x00, b"#!", "a script"),
)


_MOST_WRAPPERS = 2
"""A unified kernel image may hold a zboot image."""


class ImageFacts(msgspec.Struct, frozen=True):
    """What a kernel image says about itself. `arch` is the machine's name of its architecture.
    `unpacked` is the image, when the file holds it packed and no machine takes it so.
    """

    arch: str
    image_format: str
    release: str
    banner: str
    unpacked: bytes | None = None


def inspect(path: Path) -> ImageFacts:
    """The facts of an image that the lab can boot; UserError, saying what it is, otherwise."""
    if path.is_dir():
        raise _refusal(path, "a folder", _image_below(path))
    check_file(path)
    try:
        with path.open("rb") as file:
            if not (head := file.read(0x400)):
                raise _refusal(path, "empty")
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as image:
                if found := _inspect_known(path, file, image):
                    return _with_a_name(path, found)
    except FileNotFoundError as error:
        raise UserError(f"no such file: {path}") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    known = (what for offset, magic, what in _OTHERS if head.startswith(magic, offset))
    raise _refusal(path, next(known, "not a kernel"))


def check_file(path: Path) -> None:
    """UserError for what is there and no file: who opens a pipe would wait for its other end."""
    if path.exists() and not path.is_file():
        raise _refusal(path, "not a file")


def _inspect_known(path: Path, file: IO[bytes], image: mmap.mmap) -> ImageFacts | None:
    """The facts of a file of a known kind, None for another."""
    if _has(image, _ELF):
        return _inspect_elf(path, file, image)
    return _inspect_content(path, image, _MOST_WRAPPERS)


def _inspect_content(path: Path, image: mmap.mmap | bytes, wrappers: int) -> ImageFacts | None:
    """The same of anything but an ELF file, within at most so many wrappers."""
    if _has(image, _GZIP):
        return _inspect_gzip(path, image)
    kinds = {_BZIMAGE: _inspect_bzimage, _ZIMAGE: _inspect_zimage}
    inspected = next((kinds[sign] for sign in kinds if _has(image, sign)), _inspect_plain)
    found = inspected(path, image)
    if found is not None or not wrappers:
        return found
    try:
        inner = inner_image(image)
    except PackedError as error:
        raise _refusal(path, f"a damaged kernel for EFI firmware ({error})") from error
    if inner is None:
        return None
    facts = _inspect_content(path, inner, wrappers - 1)
    return facts and msgspec.structs.replace(facts, unpacked=facts.unpacked or inner)


def _with_a_name(path: Path, facts: ImageFacts) -> ImageFacts:
    """The facts, unless no folder of modules could have the name of the release."""
    if not _RELEASE.fullmatch(facts.release):
        raise _refusal(
            path,
            f"a kernel whose release is no name: {facts.release[:_UTS_LEN]!r}",
            "a release has at most 64 letters, digits and any of . _ + ~ - : build it again with "
            "another CONFIG_LOCALVERSION",
        )
    return facts


def _refusal(path: Path, what: str, hint: str = "") -> UserError:
    return UserError(f"{path} cannot be booted: it is {what}", hint or NEEDED)


def _image_below(folder: Path) -> str:
    boot = ("x86/boot/bzImage", "arm/boot/zImage", "arm64/boot/Image", "riscv/boot/Image")
    places = (*(folder / "arch" / below for below in boot), folder / "vmlinux")
    return next((f"write image:{place}" for place in places if place.is_file()), "")


def _has(head: bytes | mmap.mmap, sign: tuple[int, bytes]) -> bool:
    at, magic = sign
    return head[at : at + len(magic)] == magic


def _inspect_zimage(path: Path, image: mmap.mmap | bytes) -> ImageFacts:
    """The release is in what the zImage unpacks, and nowhere else."""
    for payload in payloads(image[:]):
        if found := _banner(payload):
            return ImageFacts("arm", "zImage", *found)
    raise _refusal(
        path,
        "a kernel for 32-bit ARM that is damaged, or packed in a way that is not understood",
        f"build it with a kernel compression mode of {METHODS}",
    )


def _inspect_plain(path: Path, image: mmap.mmap | bytes) -> ImageFacts | None:
    """An Image of arm64 or RISC-V; None if it is none."""
    arch = next((arch for arch, sign in _PLAIN.items() if _has(image, sign)), None)
    if arch is None:
        return None
    if found := _banner(image):
        return ImageFacts(arch, "Image", *found)
    raise _refusal(path, f"a kernel for {arch} that is damaged or has been cut off")


_PLAIN = {"arm64": _ARM64_IMAGE, "riscv64": _RISCV_IMAGE}


def _inspect_gzip(path: Path, packed: mmap.mmap | bytes) -> ImageFacts:
    """An Image.gz, as arm64 and RISC-V have them."""
    try:
        content = unpacked_image(packed[:])
    except PackedError as error:
        raise _refusal(path, f"a damaged gzip file ({error})") from error
    if facts := _inspect_plain(path, content):
        return msgspec.structs.replace(facts, unpacked=content)
    raise _refusal(path, "a gzip file without a kernel in it")


def _banner(content: bytes | mmap.mmap) -> tuple[str, str] | None:
    """The kernel's release, and what it says of its build, which begins with that."""
    if (found := _BANNER.search(content)) is None:
        return None
    banner, release = (part.decode("utf-8", "replace") for part in found.groups())
    return release, " ".join(banner.split())


def banner_of(vmlinux: Path) -> tuple[str, str]:
    """The release of a vmlinux of any architecture, and all that it says of its build; LabError if
    it says nothing.
    """
    with (
        lab_errors("reading", vmlinux),
        vmlinux.open("rb") as file,
        mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content,
    ):
        if found := _banner(content):
            return found
    raise LabError(f"{vmlinux} does not report its release", "build it again")


def _inspect_bzimage(path: Path, image: mmap.mmap | bytes) -> ImageFacts:
    if len(image) < 0x260:
        raise _refusal(path, "a kernel that has been cut off")
    protocol, version_at, flags = (
        struct.unpack_from("<H", image, at)[0] for at in (_PROTOCOL, _KERNEL_VERSION, _XLOADFLAGS)
    )
    if struct.unpack_from("<H", image, _BOOT_FLAG)[0] != 0xAA55:
        raise _refusal(path, "a damaged kernel (no boot flag)")
    if protocol < _PROTOCOL_WITH_XLOADFLAGS or not flags & _XLF_KERNEL_64:
        raise _refusal(path, "a kernel for 32-bit x86, or older than Linux 3.8")
    start = version_at + 0x200
    banner = image[start : start + 512].split(b"\0")[0].decode("utf-8", "replace")
    if not version_at or not banner[:1].isdigit():
        raise _refusal(path, "a damaged kernel (it does not report its release)")
    return ImageFacts("x86_64", "bzImage", banner.split()[0], " ".join(banner.split()))


_PACKED_ARCHES = {
    "EM_ARM": ("32-bit ARM", "zImage (arch/arm/boot/zImage)"),
    "EM_AARCH64": ("arm64", "Image (arch/arm64/boot/Image)"),
    "EM_RISCV": ("RISC-V", "Image (arch/riscv/boot/Image)"),
}


def _inspect_elf(path: Path, file: IO[bytes], image: mmap.mmap) -> ImageFacts:
    try:
        elf = ELFFile(file)
        machine, kind = elf.header["e_machine"], elf.header["e_type"]
        if machine in _PACKED_ARCHES and kind == "ET_EXEC" and _banner(image):
            raise _refusal(
                path,
                f"a vmlinux for {_PACKED_ARCHES[machine][0]}, which QEMU does not boot as Linux",
                f"name its {_PACKED_ARCHES[machine][1]}",
            )
        if machine != "EM_X86_64" or elf.elfclass != 64:
            what = f"{str(machine).removeprefix('EM_')}, {elf.elfclass} bit"
            raise _refusal(path, f"an ELF file for another architecture ({what})")
        if kind == "ET_REL":
            raise _refusal(path, "an object file or kernel module")
        if (found := _banner(image)) is None:
            raise _refusal(path, "a program, not a kernel")
        if not _has_pvh_note(elf):
            raise _refusal(
                path,
                "a vmlinux without a PVH entry",
                "build it with CONFIG_PVH=y, or name its bzImage (arch/x86/boot/bzImage)",
            )
    except (ELFError, struct.error, KeyError, UnicodeDecodeError) as error:
        raise _refusal(path, f"a damaged ELF file ({error})") from error
    return ImageFacts("x86_64", "vmlinux", *found)


def _has_pvh_note(elf: ELFFile) -> bool:
    segments = elf.iter_segments(type="PT_NOTE")
    notes = (note for one in segments if isinstance(one, NoteSegment) for note in one.iter_notes())
    kinds = (_PVH_NOTE_TYPE, str(_PVH_NOTE_TYPE))
    return any(n["n_name"] == _PVH_NOTE_OWNER and n["n_type"] in kinds for n in notes)
