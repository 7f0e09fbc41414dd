# SPDX-License-Identifier: GPL-2.0-or-later
"""A part of a kernel's source that a guest compiles: made ready once, then in the cache.

The compiler is the guest's own, out of its packages. So make finds all that it checks up to date,
and each object that it makes in the guest must be, byte for byte, the one that was made here.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from kdelta.guests.job import JobFile
from kdelta.guests.tree_preparation import (
    HOST_COMPILER,
    RULES,
    TREE,
    Preparation,
    make_words,
)
from kdelta.guests.userland import Userland
from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors, new_folder, write_atomic
from kdelta.host.lock import locked
from kdelta.host.native import compiler_identity
from kdelta.kernels.sources.source import PatchFailure, source_of
from kdelta.spec.errors import LabError
from kdelta.spec.identity import identity
from kdelta.spec.kernel import DebSrcSpec, GitSpec, TreeSpec, parse_kernel_spec
from kdelta.workloads.catalog import KernelTreeWanted

Talk = Callable[[str], None]

_RECORD = "tree.json"
_BESIDES = ("objects", "make")


class KernelTree(msgspec.Struct, frozen=True):
    """Files of a guest, and of which source they are."""

    files: tuple[JobFile, ...]
    source: str


class _Record(msgspec.Struct, frozen=True):
    """What the cache has, and from what."""

    source: str


def kernel_tree(
    wanted: KernelTreeWanted, workload: Path, programs: Userland, talk: Talk
) -> KernelTree:
    """The tree that `wanted` describes, made ready unless the cache has it; `workload` is the
    folder of the workload, `programs` its userland, which the guest's compiler is of.

    Next to the tree lie PLACE.objects, a line of CRC-32 (hexadecimal) and path for each object, and
    PLACE.make, a line for each word that make is to be given.
    LabError when the source cannot be had, or does not compile here.
    """
    spec = parse_kernel_spec(wanted.source)
    if not isinstance(spec, DebSrcSpec | TreeSpec | GitSpec):
        raise LabError(f"{wanted.source} is no source", "name one in workload.toml")
    source = source_of(spec, talk)
    assert not isinstance(source, PatchFailure)
    with lab_errors("reading", workload / wanted.config):
        config = (workload / wanted.config).read_text()
    facts = {
        "rules": RULES,
        "tree": source.tree,
        "config": config,
        "wanted": msgspec.to_builtins(wanted),
        "packages": programs.packages,
        # It makes the tree's own programs (fixdep), which run in the guest.
        "host_compiler": compiler_identity(HOST_COMPILER),
    }
    folder = cache_dir("kernel-trees") / identity(facts)[:32]
    if not folder.is_dir():
        with locked(folder.name, f"preparing {source.name}", talk):
            if not folder.is_dir():
                talk(f"preparing {source.name} to be compiled in guests")
                with new_folder(folder) as partial:
                    made = Preparation(wanted, source, config, partial).make_ready(programs.files)
                    objects = [f"{crc:08x} {name}" for name, crc in made.items()]
                    for name, lines in zip(_BESIDES, (objects, make_words(wanted)), strict=True):
                        write_atomic(partial / name, "".join(f"{li}\n" for li in lines).encode())
                    write_atomic(partial / _RECORD, msgspec.json.encode(_Record(source.name)))
    return _kept(wanted, folder)


def _kept(wanted: KernelTreeWanted, folder: Path) -> KernelTree:
    tree = folder / TREE
    with lab_errors("reading", folder):
        record = msgspec.json.decode((folder / _RECORD).read_bytes(), type=_Record)
        files = [
            JobFile(path, f"{wanted.place}/{path.relative_to(tree)}", path.stat().st_mode & 0o777)
            for path in sorted(tree.rglob("*"))
            if path.is_file()
        ]
    besides = [JobFile(folder / name, f"{wanted.place}.{name}") for name in _BESIDES]
    return KernelTree((*files, *besides), record.source)
