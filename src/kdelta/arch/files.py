# SPDX-License-Identifier: GPL-2.0-or-later
"""The data files of architectures: NAME.toml, with a table for each room that reads one.

[host]     what compiles programs for its guests, and what runs them: host/target.py
[build]    how its kernels are built: kernels/arches.py, with NAME-lab.config and NAME-small.config,
           which kernels/config/lab_config.py reads
[machine]  its boards, and the kernel's symbols that are watched: machines/arch.py

What is no data is in kernels/objects/elf_machines.py (relocations), kernels/packages/inspect.py
(what its images begin with), native/plugin (its instructions) and native/include (the marks and
its clock).
"""

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Any, Literal, TypeVar

import msgspec

T = TypeVar("T")

Table = Literal["host", "build", "machine"]

_FOLDER = resources.files("kdelta.arch")
_SUFFIX = ".toml"


class _ArchFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    host: dict[str, Any]
    build: dict[str, Any]
    machine: dict[str, Any]


@functools.cache
def _files() -> Mapping[str, _ArchFile]:
    """All files by the architecture's name, in the order of the names."""
    return {
        file.name.removesuffix(_SUFFIX): msgspec.toml.decode(file.read_bytes(), type=_ArchFile)
        for file in sorted(_FOLDER.iterdir(), key=lambda file: file.name)
        if file.name.endswith(_SUFFIX)
    }


def tables(table: Table, of: type[T]) -> dict[str, T]:
    """Returns that table of each architecture, by the architecture's name."""
    return {name: msgspec.convert(getattr(file, table), of) for name, file in _files().items()}


def fragment(name: str, kind: str) -> str:
    """Returns the options of an architecture's NAME-KIND.config; "" if it has none."""
    file = _FOLDER / f"{name}-{kind}.config"
    return file.read_text(encoding="utf-8") if file.is_file() else ""
