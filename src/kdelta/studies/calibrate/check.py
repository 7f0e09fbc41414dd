# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta calibrate --check: programs that took no part in the fit, compared with the prices."""

import asyncio
import concurrent.futures
import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from kdelta.counts.trace import Trace
from kdelta.cpus.catalog import HOST, load_cpu, user_path
from kdelta.cpus.model import CPU, FRONT_END_KINDS, MISS_KINDS
from kdelta.host.command import find_program, run
from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors, sha256_file
from kdelta.host.interrupt import interruptible
from kdelta.host.machine import cores, machine_hash
from kdelta.infer.calibration.fit import predicted
from kdelta.infer.calibration.model import FittedPrice, ProgramRows
from kdelta.machines.clock import check_host, run_here
from kdelta.replay.programs import placed_program, program_layouts, program_text
from kdelta.replay.simulate import PreparedTrace
from kdelta.report.cpus import of_another_machine
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.timings import Timings
from kdelta.store.store import Store
from kdelta.studies.calibrate.model import (
    CheckedLink,
    CheckedProgram,
    CheckReport,
    read_calibration,
)
from kdelta.studies.calibrate.study import CalibrateRequest, alone, links_of, traced_first
from kdelta.studies.calibrate.traced import rows_of
from kdelta.studies.lab.progress import Progress
from kdelta.workloads.calibration.bundle import (
    DATA_STAYS,
    LINKER,
    SHUFFLED,
    Manifest,
    ManifestProgram,
    complete_bundle,
    footprint_bytes,
)

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


RELINKS = 16

_PROCESSES, _ROUNDS, _WARM_ROUNDS = 10, 12, 3

_PASSES = 8
"""As most programs have them; what one has is told by its results and by its trace."""

_WORST, _NAMED = 3, 3


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
    if missing := [path for path in found.objects if not Path(path).is_file()]:
        raise UserError(f"{found.name}: no such object: {missing[0]}")
    return found


def _from_file(path: Path) -> HeldOut:
    try:
        found = msgspec.toml.decode(path.read_bytes(), type=HeldOut)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}", "docs/calibration describes the file") from error
    return msgspec.structs.replace(
        found, objects=tuple(str(path.parent / one) for one in found.objects)
    )


def linked_all(program: HeldOut, seeds: int, folder: Path) -> tuple[Path, ...]:
    """`folder`/SEED for the seeds from 1 on. UserError when it cannot be linked."""
    with lab_errors("making", folder):
        folder.mkdir(parents=True, exist_ok=True)
    find_program(LINKER)
    with concurrent.futures.ThreadPoolExecutor(cores()) as pool:
        return tuple(
            pool.map(lambda seed: _linked(program, seed, folder / str(seed)), range(1, seeds + 1))
        )


def must_time(program: HeldOut, link: Path, *, seconds: float = TRIAL_SECONDS) -> None:
    """Runs a link once, as it will be timed. UserError when it is no program of timing_main()."""
    core = max(os.sched_getaffinity(0))
    hint = "its main() has to end in timing_main() of timing.h: docs/calibration, Held-out programs"
    try:
        done = run([link, "time", str(core), "1", "0", *program.arguments], seconds=seconds)
    except LabError as error:
        raise UserError(f"{program.name} cannot be timed: {error.message}", hint) from error
    if not (done.ok and done.stdout.startswith("clock ") and done.stdout.endswith("done\n")):
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


async def run_check(
    request: CalibrateRequest, wanted: Sequence[HeldOut], store: Store, progress: Progress
) -> CheckReport:
    """Links each program `request.relinks` times, times and traces it, and predicts its links.

    UserError for a CPU without prices that were measured, for the host's when these are another
    machine's, and for what `run_calibrate` refuses.
    """
    cpu = request.cpu or _this_host()
    prices = prices_of(cpu, user_path(HOST).with_suffix(".json"))
    if not request.busy_ok:
        check_host()
    with alone(), _folder() as folder:
        with interruptible():
            _bundle(wanted, folder, request)
        progress.begin("clock")
        with interruptible():
            timings = run_here(
                folder, busy_ok=request.busy_ok, log=lambda line: progress.doing("clock", line)
            )
        progress.end("clock", f"{len(timings.programs)} programs")
        traces = await traced_first(request, timings, (folder, cpu), store=store, progress=progress)
        programs = await asyncio.to_thread(_checked, timings, traces, (folder, cpu), prices)
    return CheckReport(
        when=timings.when,
        machine=timings.machine,
        quiet=timings.quiet,
        cpu=cpu.name,
        kernel=request.kernel,
        prices=prices,
        programs=programs,
    )


def _this_host() -> CPU:
    """The CPU of --cpu host. UserError when it was measured on another machine."""
    cpu = load_cpu(HOST)
    if of_another_machine(cpu.calibration, machine_hash()):
        raise UserError(
            "the prices of this host were measured on another machine",
            f"kdelta calibrate measures this one; --cpu {HOST} goes by those all the same",
        )
    return cpu


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Where the links are made; gone afterwards, unless an error's words name what is in it."""
    folder = cache_dir("calibration") / "check"
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            yield folder
        except LabError:
            stack.pop_all()
            raise


def prices_of(cpu: CPU, document: Path) -> dict[str, FittedPrice]:
    """The prices of the CPU's calibration: those of its document, if it is that very calibration's,
    or else the middles of the intervals that do not begin at nothing. UserError without any.
    """
    if cpu.calibration is None:
        raise UserError(
            f"the prices of {cpu.name} were not measured", "kdelta calibrate measures this host's"
        )
    if document.is_file():
        try:
            found = read_calibration(document.read_bytes())
        except (OSError, msgspec.DecodeError) as error:
            raise UserError(f"{document}: {error}", "calibrate again") from error
        if (found.when, found.machine.id) == (cpu.calibration.when, cpu.calibration.machine):
            return found.prices
    return {
        kind: FittedPrice(kind, (price.hidden + price.exposed) / 2, price.hidden, price.exposed)
        for kind, price in cpu.misses.items()
        if price.calibrated and price.hidden > 0 and kind in {*MISS_KINDS, *FRONT_END_KINDS}
    }


def _bundle(wanted: Sequence[HeldOut], folder: Path, request: CalibrateRequest) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    programs = []
    for program in wanted:
        links = linked_all(program, request.relinks, folder / "links" / program.name)
        must_time(program, links[0])
        programs.append(
            ManifestProgram(
                name=program.name,
                code=program.name,
                flow="mixed",
                functions=0,
                statements=0,
                data="its own",
                data_bytes=0,
                footprint_bytes=footprint_bytes(links[0]),
                arguments=program.arguments,
                sha256=tuple(sha256_file(link) for link in links),
            )
        )
    complete_bundle(
        folder,
        Manifest(
            arch=request.arch,
            processes=_PROCESSES,
            rounds=_ROUNDS,
            passes=_PASSES,
            programs=tuple(programs),
            warm_rounds=_WARM_ROUNDS,
        ),
    )


def _checked(
    timings: Timings,
    traces: Mapping[str, Trace],
    made: tuple[Path, CPU],
    prices: dict[str, FittedPrice],
) -> tuple[CheckedProgram, ...]:
    folder, cpu = made
    found = []
    for program in timings.programs:
        links = links_of(folder, program)
        rows = rows_of(program, traces[program.name], links, cpu)
        functions = _by_function(traces[program.name], links, cpu)
        worst = worst_links(rows, prices, [link.seed for link in program.links], functions)
        found.append(CheckedProgram(predicted(prices, rows), worst, rows))
    return tuple(found)


def _by_function(
    trace: Trace, links: Sequence[Path], cpu: CPU
) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """Misses of the L1I by function, an iteration, beyond the mean of the links: (n_links,)."""
    texts = [program_text(path.name, path.read_bytes()) for path in links]
    placement = placed_program(trace, texts[0])
    layouts = program_layouts(placement, texts[0], texts)
    misses = PreparedTrace(trace, placement.placed).replay(layouts, cpu.l1i).by_function
    if misses is None:
        return {}
    apart = (misses - misses.mean(axis=0)) / max(1, trace.iterations)
    moved = np.flatnonzero(np.ptp(apart, axis=0))
    return {placement.labels[int(index)]: apart[:, index] for index in moved}


def worst_links(
    rows: ProgramRows,
    prices: Mapping[str, FittedPrice],
    seeds: Sequence[int],
    functions: Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]],
) -> tuple[CheckedLink, ...]:
    """The links whose cycles are farthest from the prediction, with the events and the functions
    that are farthest from the mean of all links, in its standard deviations and in misses.
    """
    guess = np.zeros(len(rows.cycles))
    for name, price in prices.items():
        if name in rows.events:
            guess = guess + price.value * rows.events[name]
    measured, guess = rows.cycles - np.median(rows.cycles), guess - np.median(guess)
    off = measured - guess
    order = np.argsort(-np.abs(off - np.median(off)), kind="stable")[:_WORST]
    apart = {name: of - of.mean() for name, of in rows.events.items() if np.ptp(of) > 0}
    found = []
    for link in order.tolist():
        events = sorted(apart, key=lambda name: -abs(apart[name][link]) / float(apart[name].std()))
        named = sorted(functions, key=lambda name: -abs(functions[name][link]))
        found.append(
            CheckedLink(
                seeds[link],
                float(measured[link]),
                float(guess[link]),
                tuple((name, float(apart[name][link])) for name in events[:_NAMED]),
                tuple((name, float(functions[name][link])) for name in named[:_NAMED]),
            )
        )
    return tuple(found)
