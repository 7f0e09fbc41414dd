# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles the programs of the calibration, and links each under many orders of its functions."""

import concurrent.futures
from collections.abc import Sequence
from pathlib import Path

from elftools.elf.elffile import ELFFile

from kdelta.host.command import find_program, run
from kdelta.host.machine import cores
from kdelta.host.native import native_folder
from kdelta.host.target import target
from kdelta.spec.errors import LabError
from kdelta.workloads.calibration.generate import ProgramSource, copy_prefix

LINKER = "ld.lld"
DATA_STAYS = ("-z", "separate-loadable-segments")
"""Else data begin where the text ends, and another order of functions moves them within their page:
that alone made 20 % of a program's cycles, where an array came to straddle two pages.
"""

SHUFFLED = ".text.*"
CFLAGS = (
    *("-std=gnu11", "-O2", "-ffreestanding", "-ffunction-sections", "-fno-pie"),
    *("-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-jump-tables"),
)
ARCH_CFLAGS = {"riscv64": ("-mno-relax",)}
"""ld.lld has no relaxation for it."""
SHARED = ("data", "data_mask")
"""What copies of an object have in common."""


def compiled(source: ProgramSource, folder: Path, *, arch: str) -> tuple[Path, ...]:
    """The program's objects in `folder`, each function in a section of its own. LabError when the
    compiler or objcopy is missing or refuses.
    """
    built = target(arch)
    bodies = compiled_file("bodies", source.bodies, folder, arch=arch)
    main = compiled_file("main", source.c_source, folder, arch=arch)
    copies = []
    for copy in range(source.copies):
        copies.append(folder / f"copy{copy}.o")
        prefix = copy_prefix(copy)
        shared = [f"--redefine-sym={prefix}{name}={name}" for name in SHARED]
        renamed = folder / "renamed.o"
        _must([built.tool("objcopy"), f"--prefix-symbols={prefix}", bodies, renamed])
        _must([built.tool("objcopy"), *shared, renamed, copies[-1]])
    return (main, *copies)


def compiled_file(name: str, text: str, folder: Path, *, arch: str) -> Path:
    """The object of a C text."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.c").write_text(text)
    output = folder / f"{name}.o"
    includes = (f"-I{Path(__file__).parent}", f"-I{native_folder() / 'include'}")
    compiler = target(arch).find_compiler()
    _must(
        [
            compiler,
            *CFLAGS,
            *ARCH_CFLAGS.get(arch, ()),
            *includes,
            "-c",
            folder / f"{name}.c",
            "-o",
            output,
        ]
    )
    return output


def linked(objects: Sequence[Path], seed: int, output: Path) -> Path:
    """`output`, linked by ld.lld with the functions in the order of that seed: from 1 on, or 0 for
    the order in which the objects have them. LabError when there is no ld.lld, or it refuses.
    """
    shuffle = [f"--shuffle-sections={SHUFFLED}={seed}"] if seed else []
    find_program(LINKER)
    _must([LINKER, "-static", *DATA_STAYS, *shuffle, "-o", output, *objects])
    return output


def all_linked(objects: Sequence[Path], relinks: int, folder: Path) -> tuple[Path, ...]:
    """`folder`/SEED for the seeds 1 to `relinks`, on all cores at once."""
    folder.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(cores()) as pool:
        one = [
            pool.submit(linked, objects, seed, folder / str(seed)) for seed in range(1, relinks + 1)
        ]
        return tuple(future.result() for future in one)


def footprint_bytes(path: Path) -> int:
    """The bytes of code that a link has, in all."""
    with path.open("rb") as stream:
        sections = ELFFile(stream).iter_sections()
        return sum(one["sh_size"] for one in sections if one["sh_flags"] & 4)


def _must(argv: Sequence[str | Path]) -> None:
    result = run(argv)
    if not result.ok:
        raise LabError(
            f"{argv[0]} failed: {result.last_words(1)}", f"it was: {' '.join(map(str, argv))}"
        )
