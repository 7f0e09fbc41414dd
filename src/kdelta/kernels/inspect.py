# SPDX-License-Identifier: GPL-2.0-or-later
"""Tells what a file is: a kernel for x86-64, one for another architecture, or no kernel."""

import mmap
import re
import struct
from pathlib import Path
from typing import IO

import msgspec
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import NoteSegment

from kdelta.spec.errors import UserError

NEEDED = "a 64-bit x86 bzImage or vmlinux is needed"

# Documentation/arch/x86/boot.rst, "The Real-Mode Kernel Header": offsets in the file.
_BOOT_FLAG, _HEADER_MAGIC, _PROTOCOL, _KERNEL_VERSION, _XLOADFLAGS = (
    0x1FE,
    0x202,
    0x206,
    0x20E,
    0x236,
)
_XLF_KERNEL_64 = 1
_PROTOCOL_WITH_XLOADFLAGS = 0x20C

# Xen's public elfnote.h: XEN_ELFNOTE_PHYS32_ENTRY, by which a PVH loader finds its entry.
_PVH_NOTE_OWNER, _PVH_NOTE_TYPE = "Xen", 18

_BANNER = re.compile(rb"Linux version ([0-9][^\s%]*) [^\n\0%]{1,500}")

# (offset, bytes there, what it is): kernels of other kinds and what is taken for one by mistake.
_OTHERS = (
    (0x38, b"ARM\x64", "a kernel for arm64"),
    (0x24, b"\x18\x28\x6f\x01", "a kernel for 32-bit ARM (zImage)"),
    (0x24, b"\x01\x6f\x28\x18", "a kernel for big-endian 32-bit ARM (zImage)"),
    (0x30, b"RISCV\0\0\0", "a kernel for RISC-V"),
    (0x00, b"MZ\0\0zimg", "a compressed EFI kernel of an architecture other than x86"),
    (0x00, b"\x27\x05\x19\x56", "a U-Boot image (uImage)"),
    (0x00, b"\xd0\x0d\xfe\xed", "a device tree or FIT image"),
    (0x00, b"\x1f\x8b", "a gzip file"),
    (0x00, b"\xfd7zXZ\0", "an xz file"),
    (0x00, b"\x28\xb5\x2f\xfd", "a zstd file"),
    (0x00, b"!<arch>\ndebian", "a Debian package"),
    (0x00, b"070701", "a cpio archive, perhaps an initramfs"),
    (0x00, b"MZ", "an EFI or DOS program"),
    (0x00, b"#!", "a script"),
)


class ImageFacts(msgspec.Struct, frozen=True):
    """What a kernel image says about itself."""

    image_format: str
    release: str
    banner: str


def inspect(path: Path) -> ImageFacts:
    """The facts of an image that the lab can boot; UserError, saying what it is, otherwise."""
    if path.is_dir():
        raise _refusal(path, "a folder", _image_below(path))
    try:
        with path.open("rb") as file:
            if not path.is_file():
                raise _refusal(path, "not a file")
            head = file.read(0x400)
            if not head:
                raise _refusal(path, "empty")
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as image:
                if head.startswith(b"\x7fELF"):
                    return _inspect_elf(path, file, image)
                if head[_HEADER_MAGIC : _HEADER_MAGIC + 4] == b"HdrS":
                    return _inspect_bzimage(path, image)
    except FileNotFoundError as error:
        raise UserError(f"no such file: {path}") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    for offset, magic, what in _OTHERS:
        if head.startswith(magic, offset):
            raise _refusal(path, what)
    raise _refusal(path, "not a kernel")


def _refusal(path: Path, what: str, hint: str = "") -> UserError:
    return UserError(f"{path} cannot be booted: it is {what}", hint or NEEDED)


def _image_below(folder: Path) -> str:
    for below in ("arch/x86/boot/bzImage", "vmlinux"):
        if (folder / below).is_file():
            return f"write image:{folder / below}"
    return ""


def _inspect_bzimage(path: Path, image: mmap.mmap) -> ImageFacts:
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
        raise _refusal(path, "a damaged kernel (it does not tell its release)")
    return ImageFacts("bzImage", banner.split()[0], " ".join(banner.split()))


def _inspect_elf(path: Path, file: IO[bytes], image: mmap.mmap) -> ImageFacts:
    try:
        elf = ELFFile(file)
        machine = elf.header["e_machine"]
        kind = elf.header["e_type"]
        if machine != "EM_X86_64" or elf.elfclass != 64:
            name = str(machine).removeprefix("EM_")
            raise _refusal(
                path, f"an ELF file for another architecture ({name}, {elf.elfclass} bit)"
            )
        if kind == "ET_REL":
            raise _refusal(path, "an object file or kernel module")
        banner = _BANNER.search(image)
        if banner is None:
            raise _refusal(path, "a program, not a kernel")
        if not _has_pvh_note(elf):
            raise _refusal(
                path,
                "a vmlinux without a PVH entry",
                "build it with CONFIG_PVH=y, or name its bzImage (arch/x86/boot/bzImage)",
            )
    except (ELFError, struct.error, KeyError, UnicodeDecodeError) as error:
        raise _refusal(path, f"a damaged ELF file ({error})") from error
    text = banner.group(0).decode("utf-8", "replace").removeprefix("Linux version ")
    return ImageFacts("vmlinux", banner.group(1).decode("utf-8", "replace"), " ".join(text.split()))


def _has_pvh_note(elf: ELFFile) -> bool:
    for segment in elf.iter_segments(type="PT_NOTE"):
        if not isinstance(segment, NoteSegment):
            continue
        for note in segment.iter_notes():
            if note["n_name"] == _PVH_NOTE_OWNER and note["n_type"] in (
                _PVH_NOTE_TYPE,
                str(_PVH_NOTE_TYPE),
            ):
                return True
    return False
