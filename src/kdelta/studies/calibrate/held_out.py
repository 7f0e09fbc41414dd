# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of the user's, linked many times: what --check is given."""

import concurrent.futures
import os
from pathlib import Path

import msgspec

from kdelta.host.command import find_program, run
from kdelta.host.files import lab_errors
from kdelta.host.machine import cores
from kdelta.spec.errors import LabError, UserError
from kdelta.workloads.calibration.bundle import DATA_STAYS, LINKER, SHUFFLED

TRIAL_SECONDS = 120.0
"""The longest that one round of a program's passes may take."""

_SUFFIX = ".toml"


class HeldOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A static program as its objects, which were compiled with -ffunction-sections.

    Its main() ends in timing_main() of timing.h (docs/calibration), so that it can be timed and
    traced. name: a word. libs: for the linker, after the objects. arguments: of the program, after
    those of timing_main. driver: what links it.
    """

    name: str
    objects: tuple[str, ...]
    libs: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    driver: str = "gcc"


def held_out(text: str) -> HeldOut:
    """What --check says: NAME=OBJECT,OBJECT,... or a TOML file, whose paths are from its folder.

    UserError for what is neither, and for objects that are not there.
    """
    name, equals, objects = text.partition("=")
    if equals and "/" not in name:
        found = HeldOut(name, tuple(part for part in objects.split(",") if part))
    elif text.endswith(_SUFFIX):
        found = _from_file(Path(text))
    else:
        raise UserError(
            f"{text} is no program to be checked", "write NAME=OBJECT,OBJECT,... or a .toml file"
        )
    if not found.name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise UserError(f"{found.name!r} cannot name a program", "use letters, digits and -")
    if not found.objects:
        raise UserError(f"{found.name} has no objects", "write NAME=OBJECT,OBJECT,...")
    for path in found.objects:
        if not Path(path).is_file():
            raise UserError(f"{found.name}: no such object: {path}")
    return found


def _from_file(path: Path) -> HeldOut:
    try:
        found = msgspec.toml.decode(path.read_bytes(), type=HeldOut)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}", "docs/calibration describes the file") from error
    objects = tuple(str(path.parent / one) for one in found.objects)
    return msgspec.structs.replace(found, objects=objects)


def linked_all(program: HeldOut, seeds: int, folder: Path) -> tuple[Path, ...]:
    """`folder`/SEED for the seeds from 1 on. UserError when it cannot be linked."""
    with lab_errors("making", folder):
        folder.mkdir(parents=True, exist_ok=True)
    find_program(LINKER)
    with concurrent.futures.ThreadPoolExecutor(cores()) as pool:
        futures = [
            pool.submit(_linked, program, seed, folder / str(seed)) for seed in range(1, seeds + 1)
        ]
        return tuple(future.result() for future in futures)


def must_time(program: HeldOut, link: Path, *, seconds: float = TRIAL_SECONDS) -> None:
    """Runs a link once, as it will be timed. UserError when it is no program of timing_main()."""
    core = max(os.sched_getaffinity(0))
    hint = "its main() has to end in timing_main() of timing.h: docs/calibration, Held-out programs"
    try:
        done = run([link, "time", str(core), "1", "0", *program.arguments], seconds=seconds)
    except LabError as error:
        raise UserError(f"{program.name} cannot be timed: {error.message}", hint) from error
    if done.ok and done.stdout.startswith("clock ") and done.stdout.endswith("done\n"):
        return
    why = f"it ended with {done.returncode} and printed no times"
    raise UserError(f"{program.name} cannot be timed: {why}", hint)


def _linked(program: HeldOut, seed: int, output: Path) -> Path:
    linker = ",".join((*DATA_STAYS, f"--shuffle-sections={SHUFFLED}={seed}"))
    flags = ["-static", "-no-pie", "-fuse-ld=lld", f"-Wl,{linker}"]
    done = run(
        [find_program(program.driver), *flags, "-o", output, *program.objects, *program.libs]
    )
    if not done.ok:
        raise UserError(
            f"{program.name} cannot be linked: {done.last_words(1)}",
            "it has to be linked statically, by lld; -v shows the command",
        )
    return output
