# SPDX-License-Identifier: GPL-2.0-or-later
"""The device tree of a board, from those that come with a kernel; and what such a file says.

The format is that of the Devicetree Specification, chapter 5: a header of big-endian words, and a
structure block of tokens with names and properties.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kdelta.host.files import sha256_file, user_errors
from kdelta.kernels.model import Kernel
from kdelta.machines.arch import DeviceTree, arch_machine
from kdelta.spec.errors import UserError
from kdelta.spec.limits import DEVICE_TREE_BYTES

_MAGIC = 0xD00DFEED
_BEGIN_NODE, _END_NODE, _PROPERTY, _NOP, _END = 1, 2, 3, 4, 9


class DeviceTreeFile(msgspec.Struct, frozen=True):
    """A device tree for a guest; its identity is the hash of its bytes."""

    path: str
    identity: str


def device_tree(kernel: Kernel, cpu: str) -> DeviceTreeFile | None:
    """The device tree for that kernel on the board with that CPU; None where QEMU makes it.

    UserError when it did not come with the kernel, or is for another board.
    """
    wanted = arch_machine(kernel.arch).board(cpu).device_tree
    if wanted is None:
        return None
    path = _find(kernel, wanted)
    _must_fit(path, wanted)
    return DeviceTreeFile(str(path), sha256_file(path))


def _find(kernel: Kernel, wanted: DeviceTree) -> Path:
    # Since Linux 6.5 there is a folder a vendor.
    folder = Path(kernel.device_trees) if kernel.device_trees else None
    places = (f"{wanted.name}.dtb", f"*/{wanted.name}.dtb")
    found = [path for place in places for path in folder.glob(place)] if folder else []
    if not found:
        raise UserError(
            f"{kernel.spec} comes without the device tree {wanted.name}.dtb of its machine",
            f"put it next to the image; a tree makes it by `make {wanted.name}.dtb`",
        )
    return found[0]


def _must_fit(path: Path, wanted: DeviceTree) -> None:
    with user_errors(path), path.open("rb") as file:
        content = file.read(DEVICE_TREE_BYTES)
    try:
        properties = dict(read_properties(content))
    except ValueError as error:
        raise UserError(
            f"{path} is no device tree: {error}", "make it again in the kernel's tree: make dtbs"
        ) from error
    given = properties.get("/compatible", b"").split(b"\0")
    if wanted.compatible.encode() not in given:
        said = ", ".join(name.decode("ascii", "replace") for name in given if name) or "no board"
        raise UserError(
            f"the device tree {path} does not fit: it is for {said}",
            f"the machine is {wanted.compatible}",
        )


def read_properties(content: bytes) -> Iterator[tuple[str, bytes]]:
    """The properties of a flattened device tree: path of the node and name, with a slash between;
    and value. ValueError, saying why, if it is none or damaged.
    """
    try:
        magic, size, at, strings = struct.unpack_from(">4I", content)
        if magic != _MAGIC:
            raise ValueError("it does not begin as one")
        if size > len(content):
            raise ValueError("it has been cut off")
        yield from _walk(content, at, strings)
    except (struct.error, IndexError) as error:
        raise ValueError(f"it is damaged ({error})") from error


def _walk(content: bytes, at: int, strings: int) -> Iterator[tuple[str, bytes]]:
    path: list[str] = []
    while True:
        (token,) = struct.unpack_from(">I", content, at)
        at += 4
        if token == _BEGIN_NODE:
            name = _text(content, at)
            path.append(name.decode("ascii", "replace"))
            at = _aligned(at + len(name) + 1)
        elif token == _END_NODE:
            path.pop()
        elif token == _PROPERTY:
            length, name_at = struct.unpack_from(">2I", content, at)
            value = content[at + 8 : at + 8 + length]
            name = _text(content, strings + name_at)
            yield "/".join([*path, name.decode("ascii", "replace")]), value
            at = _aligned(at + 8 + length)
        elif token == _END:
            return
        elif token != _NOP:
            raise ValueError(f"it is damaged (token {token})")


def _text(content: bytes, at: int) -> bytes:
    end = content.find(b"\0", at)
    if end < 0:
        raise ValueError("it is damaged (a name without end)")
    return content[at:end]


def _aligned(at: int) -> int:
    return -(-at // 4) * 4
