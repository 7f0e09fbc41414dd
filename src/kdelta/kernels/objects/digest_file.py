# SPDX-License-Identifier: GPL-2.0-or-later
"""Digests in files: a few MB, read in less than a second.

A file begins with the rules that it was made by: the hash of the code that reads objects. Digests
by other rules would differ in what did not change, so they are not compared.
"""

import functools
import hashlib
import zlib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import msgspec

from kdelta.host.files import lab_errors, write_atomic
from kdelta.kernels.objects.digest import Digest, GeneratedFile, ObjectDigest
from kdelta.kernels.objects.objects import CodePiece
from kdelta.spec.errors import LabError

_LEVEL = 6
_RULES = (
    *("digest", "objects", "references", "records", "elf", "elf_machines", "cmdfiles"),
    "digest_file",
)
_HEAD = b"kdelta digest "

_StoredCode = tuple[int, int, int, int, list[int]]  # name, hash, size, section, refs


class _StoredObject(msgspec.Struct, array_like=True, gc=False):
    path: str
    source: str
    module: str
    options: bytes  # a bit an option
    generated: list[int]
    is_assembler: bool
    is_opaque: bool
    functions: list[_StoredCode]
    data: list[_StoredCode]
    collected: list[_StoredCode]
    alignments: list[tuple[int, int]]  # section, bytes


class _StoredGenerated(msgspec.Struct, array_like=True):
    path: str
    sha256: str
    options: bytes
    target: str


class _Stored(msgspec.Struct):
    names: list[str]
    options: list[str]
    objects: list[_StoredObject]
    generated: list[_StoredGenerated]


@functools.cache
def _head() -> bytes:
    """The first line of a digest that is made by the present rules."""
    code = resources.files(__package__)
    hashes = [hashlib.sha256((code / f"{name}.py").read_bytes()).hexdigest() for name in _RULES]
    return _HEAD + hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:16].encode() + b"\n"


def is_current(path: Path) -> bool:
    """Whether that file is there and has a digest by the present rules."""
    if not path.is_file():
        return False
    with lab_errors("reading", path), path.open("rb") as file:
        return file.read(len(_head())) == _head()


class _Names:
    """Names by number, in order of their first use."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    def codes(self, codes: Mapping[str, CodePiece]) -> list[_StoredCode]:
        return [
            (self(name), code.hash, code.size, self(code.section), [self(ref) for ref in code.refs])
            for name, code in codes.items()
        ]


def save_digest(digest: Digest, path: Path) -> None:
    """Writes it compressed, whole or not at all; LabError when it cannot be written."""
    names = _Names()
    used = [thing.options for thing in digest.objects.values()]
    used += [file.options for file in digest.generated.values()]
    options = sorted(frozenset().union(*used))
    bits = {option: 1 << number for number, option in enumerate(options)}

    def mask(chosen: frozenset[str]) -> bytes:
        return sum(bits[option] for option in chosen).to_bytes(len(options) // 8 + 1, "little")

    stored = _Stored(
        names=[],
        options=options,
        objects=[
            _StoredObject(
                path=thing.path,
                source=thing.source,
                module=thing.module,
                options=mask(thing.options),
                generated=sorted(names(file) for file in thing.generated),
                is_assembler=thing.is_assembler,
                is_opaque=thing.is_opaque,
                functions=names.codes(thing.functions),
                data=names.codes(thing.data),
                collected=names.codes(thing.collected),
                alignments=[(names(name), held) for name, held in thing.alignments.items()],
            )
            for thing in digest.objects.values()
        ],
        generated=[
            _StoredGenerated(path, file.sha256, mask(file.options), file.target)
            for path, file in digest.generated.items()
        ],
    )
    stored.names = list(names.numbers)
    write_atomic(path, _head() + zlib.compress(msgspec.msgpack.encode(stored), _LEVEL))


def load_digest(path: Path) -> Digest:
    """Reads it; LabError for a damaged one or one that was made by other rules."""
    with lab_errors("reading", path):
        content = path.read_bytes()
    again = f"remove {path.parent} and build that kernel again"
    if content and not content.startswith(_head()):
        raise LabError(f"the digest {path} was made by another version of kdelta", again)
    try:
        packed = zlib.decompress(content[len(_head()) :])
        return _restore(msgspec.msgpack.decode(packed, type=_Stored))
    except (zlib.error, msgspec.DecodeError, IndexError) as error:
        raise LabError(f"the digest {path} is damaged: {error}", again) from error


def _restore(stored: _Stored) -> Digest:
    names = stored.names
    sets: dict[bytes, frozenset[str]] = {}

    def options(mask: bytes) -> frozenset[str]:
        if mask not in sets:
            bits = int.from_bytes(mask, "little")
            sets[mask] = frozenset(
                option for number, option in enumerate(stored.options) if bits >> number & 1
            )
        return sets[mask]

    def codes(rows: list[_StoredCode]) -> dict[str, CodePiece]:
        return {
            names[name]: CodePiece(
                hashed, size, names[section], tuple([names[ref] for ref in refs])
            )
            for name, hashed, size, section, refs in rows
        }

    objects = {
        thing.path: ObjectDigest(
            path=thing.path,
            source=thing.source,
            module=thing.module,
            options=options(thing.options),
            generated=frozenset(names[file] for file in thing.generated),
            is_assembler=thing.is_assembler,
            is_opaque=thing.is_opaque,
            functions=codes(thing.functions),
            data=codes(thing.data),
            collected=codes(thing.collected),
            alignments={names[name]: held for name, held in thing.alignments},
        )
        for thing in stored.objects
    }
    generated = {
        file.path: GeneratedFile(file.sha256, options(file.options), file.target)
        for file in stored.generated
    }
    return Digest(objects, generated)
