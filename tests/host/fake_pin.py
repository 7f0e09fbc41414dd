# SPDX-License-Identifier: GPL-2.0-or-later
"""A pin of one package, whose QEMU is a script, without a compiler."""

import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from kdelta.host.pin import Package, Pin, qemu_part

QEMU = "qemu-system-x86_64"
FILE = "pool/main/q/qemu/qemu-system-x86_10.0.99+ds-1~deb13u1_amd64.deb"
NAME = FILE.rpartition("/")[2]
PART = qemu_part("x86_64")
RELEASE, VERSION = "trixie", "1:10.0.99+ds-1~deb13u1"
SCRIPT = '#!/bin/sh\necho "plugin-api x86_64 2 4"\n'
HOST_SCRIPT = """\
#!/bin/sh
case "$*" in
*--version*) echo "QEMU emulator version 99.1" ;;
*) echo "plugin-api x86_64 2 4" ;;
esac
"""
"""A QEMU of the host's."""
_PROGRAM = {f"./usr/bin/{QEMU}": SCRIPT, "./usr/share/doc/qemu/news": "unneeded"}


def deb(files: Mapping[str, str]) -> bytes:
    """A .deb with these programs, and an absolute link, as some packages have it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        if f"./usr/bin/{QEMU}" in files:
            link = tarfile.TarInfo("./usr/bin/link")
            link.type, link.linkname = tarfile.SYMTYPE, f"/usr/bin/{QEMU}"
            archive.addfile(link)
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text), 0o755
            archive.addfile(member, io.BytesIO(text.encode("latin-1")))
    # The first member has an odd length, after which an ar archive has a byte that is none's.
    members = {"debian-binary": b"2.0", "control.tar": b"even", "data.tar.xz": packed.getvalue()}
    return b"!<arch>\n" + b"".join(
        f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        + content
        + b"\n" * (len(content) % 2)
        for name, content in members.items()
    )


def make_pin(folder: Path, content: bytes = b"", *, host: str = "x86_64") -> Pin:
    """Writes the package into a folder, below `pool` as a mirror has it; returns the pin."""
    package = make_package(folder, FILE, content or deb(_PROGRAM), PART)
    return Pin(qemu="10.0.99", gcc="14.0", release=RELEASE, host=host, packages=(package,))


def make_package(folder: Path, file: str, content: bytes, *parts: str) -> Package:
    """Writes a package into a folder, as a mirror has it; it is needed for these parts."""
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return Package(file, VERSION, hashlib.sha256(content).hexdigest(), len(content), parts)
