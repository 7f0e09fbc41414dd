# SPDX-License-Identifier: GPL-2.0-or-later
"""A bundle: a folder of static programs that a shell alone can run and time on their machine, each
linked under many orders of its functions.
"""

import concurrent.futures
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kdelta.host.command import find_program, quiet, run
from kdelta.host.files import lab_errors, new_folder, sha256_file
from kdelta.host.machine import cores
from kdelta.host.native import native_folder
from kdelta.host.target import target
from kdelta.measures.clock.model import ProgramFacts
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.identity import identity

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
ROUNDS = 1
WARM_ROUNDS = 2
PROCESSES = 24
LEAST_PROCESSES = 4
"""How many processes each link has, at most and at least."""
BUDGET_SECONDS = 300
"""So long after the beginning programs still wait for a core that is theirs alone, and more of them
are begun.
"""


class ProgramSource(ProgramFacts, frozen=True, kw_only=True):
    """A program of a bundle to be.

    c_source  its text: it begins with start.h and timing.h, and main() ends in timing_main(). All
              programs of one `code` have the same
    relinks   how many links are made of it, each with its functions in another order
    """

    c_source: str
    relinks: int = 1


def compiled_file(name: str, text: str, folder: Path, *, arch: str) -> Path:
    """The object of a C text."""
    folder.mkdir(parents=True, exist_ok=True)
    source, output = folder / f"{name}.c", folder / f"{name}.o"
    source.write_text(text)
    includes = (f"-I{Path(__file__).parent}", f"-I{native_folder() / 'include'}")
    flags = (*CFLAGS, *ARCH_CFLAGS.get(arch, ()), *includes)
    _must([target(arch).find_compiler(), *flags, "-c", source, "-o", output])
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
        seeds = range(1, relinks + 1)
        return tuple(pool.map(lambda seed: linked(objects, seed, folder / str(seed)), seeds))


def _must(argv: Sequence[str | Path]) -> None:
    result = run(argv)
    if not result.ok:
        raise LabError(
            f"{argv[0]} failed: {result.last_words(1)}", f"it was: {' '.join(map(str, argv))}"
        )


class ManifestProgram(ProgramFacts, frozen=True, kw_only=True):
    """A program of a bundle; of each link the file's hash, from seed 1 on."""

    sha256: tuple[str, ...]


class Manifest(msgspec.Struct, frozen=True):
    """What a bundle has, and how often each of its programs is run: in so many processes, each of
    which times so many rounds of its passes, after `warm_rounds` that are not timed.
    """

    arch: str
    processes: int
    rounds: int
    programs: tuple[ManifestProgram, ...]
    warm_rounds: int = WARM_ROUNDS

    @property
    def id(self) -> str:
        """By which results are known to be of these programs."""
        return identity(self)


def make_bundle(
    folder: Path,
    programs: Sequence[ProgramSource],
    *,
    arch: str,
    processes: int = PROCESSES,
    budget_seconds: int = BUDGET_SECONDS,
    log: Callable[[str], None] = quiet,
) -> Manifest:
    """Makes `folder`, and what was there is gone: links/CODE/SEED (static programs, each linked as
    often as it asks for), manifest.json, facts, and run.sh, which writes RESULTS there without
    Python. A link runs in a guest as `SEED trace ARGUMENTS`: one
    region "pass" whose iterations are the passes that are timed. While another thread of its core
    is busy, which is waited out, no more than `budget_seconds` from the beginning on are spent on
    waiting. UserError without a linker, LabError when it cannot be built.
    """
    try:
        find_program(LINKER)
    except LabError as error:
        raise UserError(f"no {LINKER}: it links functions in another order", error.hint) from error
    with new_folder(folder) as made:
        links = {}
        for code in {program.code: program for program in programs}.values():
            log(f"compiling and linking {code.code}")
            objects = [compiled_file("main", code.c_source, made / "objects", arch=arch)]
            wanted = max(one.relinks for one in programs if one.code == code.code)
            links[code.code] = all_linked(objects, wanted, made / "links" / code.code)
            shutil.rmtree(made / "objects")
        manifest = Manifest(
            arch=arch,
            processes=processes,
            rounds=ROUNDS,
            programs=tuple(_described(program, links[program.code]) for program in programs),
        )
        _add_helpers(made, arch)
        _write_texts(made, manifest, budget_seconds)
    return manifest


def _described(program: ProgramSource, links: Sequence[Path]) -> ManifestProgram:
    return ManifestProgram(
        **{name: getattr(program, name) for name in ProgramFacts.__struct_fields__},
        sha256=tuple(sha256_file(link) for link in links[: program.relinks]),
    )


def _add_helpers(folder: Path, arch: str) -> None:
    here = Path(__file__).parent
    text = (here / "facts.c").read_text()
    linked([compiled_file("facts", text, folder / "objects", arch=arch)], 0, folder / "facts")
    shutil.rmtree(folder / "objects")
    shutil.copyfile(here / "run.sh", folder / "run.sh")
    (folder / "run.sh").chmod(0o755)


def _write_texts(folder: Path, manifest: Manifest, budget_seconds: int) -> None:
    with lab_errors("writing", folder):
        (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest) + b"\n")
        numbers = {
            "PROCESSES": manifest.processes,
            "LEAST": min(LEAST_PROCESSES, manifest.processes),
            "ROUNDS": manifest.rounds,
            "WARM": manifest.warm_rounds,
            "BUDGET": budget_seconds,
        }
        (folder / "settings").write_text(
            "".join(f"{name}={number}\n" for name, number in numbers.items())
        )
        (folder / "plan").write_text(
            "".join(
                f"{one.name} {one.code} {len(one.sha256)} {' '.join(one.arguments)}\n"
                for one in manifest.programs
            )
        )


def read_manifest(text: bytes, source: str) -> Manifest:
    """A bundle's manifest; LabError, which names `source`, if it is none."""
    try:
        return msgspec.json.decode(text, type=Manifest)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise LabError(f"{source} has no manifest: {error}", "make the bundle again") from error
