# SPDX-License-Identifier: GPL-2.0-or-later
"""What a finished build's objects hold and which options each depends on: enough to tell what an
option can reach without building again.
"""

from pathlib import Path

import msgspec

from kdelta.kernels.objects import Code


class ObjectDigest(msgspec.Struct, frozen=True):
    """One object of vmlinux or of a module.

    `path` is relative to the output folder and names its make target; `source` is relative to the
    source tree, or to the output folder where it is generated. `options` are the CONFIG_ options
    that it was compiled with a look at, those of the files it is made from included (not those of
    generated headers: `generated` names these). `module` is "" for vmlinux. `is_opaque`: not an
    object that can be read.
    """

    path: str
    source: str
    module: str
    options: frozenset[str]
    generated: frozenset[str]
    is_assembler: bool
    is_opaque: bool
    functions: dict[str, Code]
    data: dict[str, Code]
    collected: dict[str, Code]


class GeneratedFile(msgspec.Struct, frozen=True):
    """A header, linker script or the like that the build made: the SHA-256 of its text, the options
    that its making looked at, and the make target that makes it.
    """

    sha256: str
    options: frozenset[str]
    target: str


class Digest(msgspec.Struct, frozen=True):
    """All objects by path, and the generated files that they include by path."""

    objects: dict[str, ObjectDigest]
    generated: dict[str, GeneratedFile]


def digest_of(out: Path) -> Digest:
    """The digest of a finished build in kbuild's output folder; LabError when it is not one."""
    raise NotImplementedError


def save_digest(digest: Digest, path: Path) -> None:
    """Writes it compressed, whole or not at all; LabError when it cannot be written."""
    raise NotImplementedError


def load_digest(path: Path) -> Digest:
    """Reads it; LabError for a damaged one or one of another format."""
    raise NotImplementedError
