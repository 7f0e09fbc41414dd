# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes what kernels come in: headers of images, and packages good and hostile."""

import io
import struct
import tarfile
from collections.abc import Iterable
from pathlib import Path

RELEASE = "6.1.0-99-fake-amd64"
BANNER = f"{RELEASE} (someone@example.org) #1 SMP PREEMPT_DYNAMIC Fake 6.1.99-1"


def bzimage(banner: str = BANNER, *, xloadflags: int = 1, protocol: int = 0x20F) -> bytes:
    """What a bzImage begins with (Documentation/arch/x86/boot.rst), and zeros."""
    image = bytearray(0x1000)
    image[0x1F1] = 4
    struct.pack_into("<H", image, 0x1FE, 0xAA55)
    image[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", image, 0x206, protocol)
    struct.pack_into("<H", image, 0x20E, 0x800 - 0x200)
    struct.pack_into("<H", image, 0x236, xloadflags)
    image[0x800 : 0x800 + len(banner)] = banner.encode()
    return bytes(image)


def elf_header(machine: int, *, bits: int = 64, kind: int = 2, big_endian: bool = False) -> bytes:
    """The header of an ELF file without any section or segment."""
    order = ">" if big_endian else "<"
    ident = b"\x7fELF" + bytes([2 if bits == 64 else 1, 2 if big_endian else 1, 1]) + bytes(9)
    if bits == 64:
        rest = struct.pack(
            f"{order}HHIQQQIHHHHHH", kind, machine, 1, 0, 0, 0, 0, 64, 56, 0, 64, 0, 0
        )
    else:
        rest = struct.pack(
            f"{order}HHIIIIIHHHHHH", kind, machine, 1, 0, 0, 0, 0, 52, 32, 0, 40, 0, 0
        )
    return ident + rest + bytes(0x400)


def member(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    """One entry of an archive; `fields` are those of TarInfo."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def kernel_members(release: str = RELEASE) -> list[tuple[tarfile.TarInfo, bytes]]:
    """What a kernel package holds."""
    modules = f"./lib/modules/{release}"
    return [
        member("./boot", type=tarfile.DIRTYPE),
        member(f"./boot/vmlinuz-{release}", bzimage(BANNER.replace(RELEASE, release))),
        member(f"./boot/config-{release}", b"CONFIG_64BIT=y\n"),
        member(f"./boot/System.map-{release}", b"stub"),
        member(f"{modules}/kernel/net/dummy.ko", b"module"),
        member(f"{modules}/modules.builtin", b"kernel/fs/ext4/ext4.ko\n"),
        member(f"{modules}/build", type=tarfile.SYMTYPE, linkname="/usr/src/linux-headers"),
        member("./usr/share/doc/fake/copyright", b"text"),
    ]


def deb(members: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """A binary package (deb(5)) with these members, whatever they are."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    control = io.BytesIO()
    with tarfile.open(fileobj=control, mode="w") as archive:
        text = b"Package: fake\nVersion: 1\nArchitecture: amd64\nMaintainer: x\nDescription: x\n"
        info, content = member("./control", text)
        archive.addfile(info, io.BytesIO(content))
    parts = [("debian-binary", b"2.0\n"), ("control.tar", control.getvalue())]
    return _ar([*parts, ("data.tar", data.getvalue())])


def _ar(members: Iterable[tuple[str, bytes]]) -> bytes:
    out = b"!<arch>\n"
    for name, content in members:
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        out += content + b"\n" * (len(content) % 2)
    return out


def tree(folder: Path) -> set[str]:
    """All that is in a folder, by relative path."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
