# SPDX-License-Identifier: GPL-2.0-or-later
"""A bundle: a folder of static programs that a shell alone can run and time on their machine."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from kdelta.host.command import quiet
from kdelta.host.files import lab_errors, new_folder, sha256_file
from kdelta.spec.errors import LabError
from kdelta.spec.identity import identity
from kdelta.spec.timings import ProgramFacts
from kdelta.workloads.calibration.generate import BEFORE, PASSES, ProgramSource
from kdelta.workloads.calibration.link import all_linked, compiled, compiled_file, footprint_bytes
from kdelta.workloads.calibration.link import linked as linked_once

HELPERS = ("facts", "specials")
ROUNDS = 1
PROCESSES = 24
LEAST_PROCESSES = 4
"""How many processes each link has, at most and at least: docs/calibration/timings.md."""
BUDGET_SECONDS = 300
"""So long after the beginning programs still wait for a core that is theirs alone, and more of them
are begun.
"""


class ManifestProgram(ProgramFacts, frozen=True):
    """A program of a bundle; of each link the file's hash, from seed 1 on."""

    sha256: tuple[str, ...]


class Manifest(msgspec.Struct, frozen=True):
    """What a bundle has, and how often each of its programs is run: in so many processes, each of
    which times so many rounds of `passes` passes, after `warm_rounds` that are not timed.
    """

    arch: str
    processes: int
    rounds: int
    passes: int
    programs: tuple[ManifestProgram, ...]
    warm_rounds: int = 3

    @property
    def id(self) -> str:
        """By which results are known to be of these programs."""
        return identity(self)


def make_bundle(
    folder: Path,
    programs: Sequence[ProgramSource],
    *,
    arch: str,
    relinks: int = 30,
    processes: int = PROCESSES,
    budget_seconds: int = BUDGET_SECONDS,
    talk: Callable[[str], None] = quiet,
) -> Manifest:
    """Makes `folder` with all that run.sh needs, each program linked as often as it asks for, and
    at most `relinks` times; what was there is gone. LabError when it cannot be built.
    """
    with new_folder(folder) as made:
        links = {}
        for code in {program.code: program for program in programs}.values():
            talk(f"compiling and linking {code.code}")
            objects = compiled(code, made / "objects", arch=arch)
            wanted = max(one.relinks for one in programs if one.code == code.code)
            links[code.code] = all_linked(objects, min(wanted, relinks), made / "links" / code.code)
            shutil.rmtree(made / "objects")
        manifest = Manifest(
            arch=arch,
            processes=processes,
            rounds=ROUNDS,
            passes=PASSES,
            programs=tuple(_described(program, links[program.code]) for program in programs),
            warm_rounds=BEFORE,
        )
        _add_helpers(made, arch)
        _write_texts(made, manifest, budget_seconds)
    return manifest


def harness() -> dict[str, str]:
    """The hashes of the texts that all programs of a bundle share, by their names."""
    folder = Path(__file__).parent
    texts = sorted(path for path in folder.iterdir() if path.suffix in {".c", ".h", ".sh"})
    return {path.name: sha256_file(path) for path in texts}


def complete_bundle(folder: Path, manifest: Manifest) -> None:
    """Adds to a folder that has links/CODE/SEED, of programs made elsewhere, what else run.sh
    needs. LabError when it cannot be built.
    """
    _add_helpers(folder, manifest.arch)
    _write_texts(folder, manifest, BUDGET_SECONDS)


def _described(program: ProgramSource, links: Sequence[Path]) -> ManifestProgram:
    return ManifestProgram(
        name=program.name,
        code=program.code,
        flow=program.flow,
        functions=program.functions,
        statements=program.statements,
        data=program.data,
        data_bytes=program.data_bytes,
        footprint_bytes=footprint_bytes(links[0]),
        arguments=program.arguments,
        sha256=tuple(sha256_file(link) for link in links[: program.relinks]),
    )


def _add_helpers(folder: Path, arch: str) -> None:
    here = Path(__file__).parent
    for name in HELPERS:
        text = (here / f"{name}.c").read_text()
        linked_once([compiled_file(name, text, folder / "objects", arch=arch)], 0, folder / name)
    shutil.rmtree(folder / "objects")
    shutil.copyfile(here / "run.sh", folder / "run.sh")
    (folder / "run.sh").chmod(0o755)


def _write_texts(folder: Path, manifest: Manifest, budget_seconds: int) -> None:
    with lab_errors("writing", folder):
        text = msgspec.json.encode(manifest) + b"\n"
        (folder / "manifest.json").write_bytes(text)
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
