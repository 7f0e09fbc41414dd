# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel is once it has been obtained: files that can boot, and an identity."""

import msgspec

from kdelta.spec.identity import identity


class Kernel(msgspec.Struct, frozen=True):
    """A bootable kernel. Paths are absolute; `modules` is the folder lib/modules/RELEASE. `banner`
    is what the kernel says of its build, starting with its release. `image_format` is "bzImage",
    "zImage", "Image" or "vmlinux". `device_trees` is the folder below which its device trees lie,
    where the architecture has any. `built` is the key of the record of one that was built from
    source.
    """

    identity: str
    spec: str
    image: str
    arch: str
    release: str
    config: str | None = None
    modules: str | None = None
    banner: str = ""
    image_format: str = "bzImage"
    built: str | None = None
    device_trees: str | None = None


def kernel_identity(arch: str, image_sha256: str, modules_sha256: dict[str, str] | None) -> str:
    """A kernel's identity: its content, wherever it lies and however it was obtained.

    `modules_sha256` maps each module's path below its folder to the hash of its file.
    """
    return identity(
        {
            "arch": arch,
            "image": image_sha256,
            "modules": None if modules_sha256 is None else identity(modules_sha256),
        }
    )
