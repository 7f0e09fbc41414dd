# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel is once it has been obtained: files that can boot, and an identity."""

import re
from collections.abc import Sequence

import msgspec

from kdelta.spec.identity import identity
from kdelta.spec.note import SpecNote

_VERSION = re.compile(r"\d+(?:\.\d+)+(?:-rc\d+)?")


class Kernel(msgspec.Struct, frozen=True):
    """A bootable kernel. Paths are absolute; `modules` is the folder lib/modules/RELEASE. `banner`
    is what the kernel says of its build, starting with its release. `image_format` is "bzImage",
    "zImage", "Image" or "vmlinux". `device_trees` is the folder below which its device trees lie,
    where the architecture has any. `built` is the key of the record of one that was built from
    source. `parameters` are what it is booted with besides kdelta's own, part of its identity.
    `notes`: what came of the changes of `spec` otherwise than may be expected.
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
    parameters: tuple[str, ...] = ()
    notes: tuple[SpecNote, ...] = ()

    @property
    def version(self) -> str:
        """Return the version of the source, 6.12.0-rc3 of 6.12.0-rc3-00012-gabc; empty for none."""
        found = _VERSION.match(self.release)
        return found.group() if found else ""

    @property
    def title(self) -> str:
        """Its release and parameters, as progress names it."""
        return " ".join((self.release, *self.parameters))


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


def booted_identity(files: str, parameters: Sequence[str]) -> str:
    """The identity of a kernel whose files have that one, when it is booted with parameters."""
    if not parameters:
        return files
    return identity({"kernel": files, "parameters": list(parameters)})


def booted_with(kernel: Kernel, parameters: Sequence[str], spec: str) -> Kernel:
    """That kernel, which has none yet, with boot parameters; `spec` is what asked for it so."""
    return msgspec.structs.replace(
        kernel,
        identity=booted_identity(kernel.identity, parameters),
        spec=spec,
        parameters=tuple(parameters),
    )
