# SPDX-License-Identifier: GPL-2.0-or-later
"""Digests in files: a few MB, read in less than a second."""

import zlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kdelta.host.files import lab_errors, write_atomic
from kdelta.kernels.digest import Digest, GeneratedFile, ObjectDigest
from kdelta.kernels.objects import Code
from kdelta.spec.errors import LabError

FORMAT = 1
_LEVEL = 6
_AGAIN = "build that kernel again"

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


class _StoredGenerated(msgspec.Struct, array_like=True):
    path: str
    sha256: str
    options: bytes
    target: str


class _Stored(msgspec.Struct):
    format: int
    names: list[str]
    options: list[str]
    objects: list[_StoredObject]
    generated: list[_StoredGenerated]


class _Names:
    """Names by number, in order of their first use."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    def codes(self, codes: Mapping[str, Code]) -> list[_StoredCode]:
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
        format=FORMAT,
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
            )
            for thing in digest.objects.values()
        ],
        generated=[
            _StoredGenerated(path, file.sha256, mask(file.options), file.target)
            for path, file in digest.generated.items()
        ],
    )
    stored.names = list(names.numbers)
    write_atomic(path, zlib.compress(msgspec.msgpack.encode(stored), _LEVEL))


def load_digest(path: Path) -> Digest:
    """Reads it; LabError for a damaged one or one of another format."""
    with lab_errors("reading", path):
        content = path.read_bytes()
    try:
        stored = msgspec.msgpack.decode(zlib.decompress(content), type=_Stored)
        if stored.format == FORMAT:
            return _restore(stored)
    except (zlib.error, msgspec.DecodeError, IndexError) as error:
        raise LabError(
            f"the digest {path} is damaged: {error}", "build that kernel again"
        ) from error
    raise LabError(
        f"the digest {path} has format {stored.format}, and this kdelta knows {FORMAT}",
        _AGAIN,
    )


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

    def codes(rows: list[_StoredCode]) -> dict[str, Code]:
        return {
            names[name]: Code(hashed, size, names[section], tuple([names[ref] for ref in refs]))
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
        )
        for thing in stored.objects
    }
    generated = {
        file.path: GeneratedFile(file.sha256, options(file.options), file.target)
        for file in stored.generated
    }
    return Digest(objects, generated)
