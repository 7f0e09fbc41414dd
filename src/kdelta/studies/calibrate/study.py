# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta calibrate: programs are linked many times, timed by a clock, traced and priced.

The clock may be another machine's: over SSH, or of a bundle that was run there.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kdelta import __version__
from kdelta.counts.trace import Trace
from kdelta.cpus.model import CPU
from kdelta.host.dirs import cache_dir
from kdelta.host.files import lab_errors, sha256_file, write_atomic
from kdelta.host.interrupt import interruptible
from kdelta.host.lock import locked_if_free
from kdelta.infer.calibration.fit import fit
from kdelta.infer.calibration.model import Fitted, ProgramRows
from kdelta.machines.clock import over_ssh, read_results, run_here
from kdelta.spec.errors import UserError
from kdelta.spec.identity import identity
from kdelta.spec.timings import TimedProgram, Timings
from kdelta.store.store import Store
from kdelta.studies.calibrate.host_file import based_on, write_host
from kdelta.studies.calibrate.model import CalibrationReport
from kdelta.studies.calibrate.traced import DEFAULT_KERNEL, TracedWork, rows_of, traced_programs
from kdelta.studies.documents import document_text
from kdelta.studies.lab.progress import Progress
from kdelta.studies.lab.request import LabRequest
from kdelta.workloads.calibration import bundle
from kdelta.workloads.calibration.bundle import DATA_STAYS
from kdelta.workloads.calibration.generate import ProgramSource, programs

RELINKS = 30


class CalibrateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How a machine is calibrated.

    kernel: under which programs are traced. cpu: whose geometry the replay has; None: the one of
    kdelta's that is nearest to the machine's. relinks: links of a program, at most. quick: fewer
    programs, of fewer links. ssh: the machine whose clock it is; results: what a bundle's run.sh
    wrote there; neither: this host. write: where a CPU file is written; None: where `--cpu host`
    finds it.
    """

    kernel: str = DEFAULT_KERNEL
    cpu: CPU | None = None
    arch: str = "x86_64"
    relinks: int = RELINKS
    quick: bool = False
    busy_ok: bool = False
    ssh: str = ""
    results: Path | None = None
    write: Path | None = None
    lab: LabRequest = LabRequest(perturbations=1)


def chosen_programs(request: CalibrateRequest) -> tuple[ProgramSource, ...]:
    """The generated programs, with as many links as are wanted."""
    return tuple(
        msgspec.structs.replace(one, relinks=min(one.relinks, request.relinks))
        for one in programs(quick=request.quick)
    )


def make_bundle(request: CalibrateRequest, folder: Path, progress: Progress) -> str:
    """Makes the folder with all that runs on another machine; returns what is in it, in words.
    UserError for a folder that has things.
    """
    with lab_errors("reading", folder):
        taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if taken:
        what = "not empty" if folder.is_dir() else "no folder"
        raise UserError(f"{folder} is {what}", "name a folder that is not there yet")
    chosen = chosen_programs(request)
    with interruptible():
        bundle.make_bundle(
            folder, chosen, arch=request.arch, relinks=request.relinks, log=progress.log
        )
    return described(chosen)


async def run_calibrate(
    request: CalibrateRequest, store: Store, progress: Progress
) -> CalibrationReport:
    """The report; a CPU file with the prices is written. UserError when another calibration is
    under way, when the machine is too busy, and for results of other programs.
    """
    with alone():
        folder = _folder(request, progress)
        timings = await _timed(request, folder, progress)
        base = request.cpu or based_on(timings.machine)
        lab = msgspec.structs.replace(request.lab, data_lines=True)
        traced = msgspec.structs.replace(request, lab=lab)
        traces = await traced_first(
            traced, timings, (folder, base), store=store, progress=progress, region="pass"
        )
        rows = await asyncio.to_thread(_rows, timings, traces, folder, base)
        progress.begin("fit")
        fitted = await asyncio.to_thread(fit, rows)
        progress.end("fit", f"{len(fitted.prices)} prices")
    report = CalibrationReport(
        when=timings.when,
        machine=timings.machine,
        quiet=timings.quiet,
        cpu=base.name,
        kernel=request.kernel,
        relinks=max(len(one.links) for one in timings.programs),
        fitted=fitted,
        specials=timings.specials,
        rows=tuple(rows),
        notes=_notes(timings, fitted),
    )
    return _written(base, report, request.write)


def _written(base: CPU, report: CalibrationReport, path: Path | None) -> CalibrationReport:
    """Writes the CPU file, and next to it the document that has all that its prices are from."""
    written = write_host(base, report, path, by=f"kdelta {__version__}")
    if written is None:
        return report
    report = msgspec.structs.replace(report, written=str(written))
    write_atomic(written.with_suffix(".json"), document_text(report, __version__).encode())
    return report


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """UserError while another calibration is under way: each would slow the other."""
    with locked_if_free("calibrate") as free:
        if not free:
            raise UserError(
                "another calibration is under way on this host", "wait until it has ended"
            )
        yield


def _folder(request: CalibrateRequest, progress: Progress) -> Path:
    """Where the links are: next to the results, or in the cache, where they are made once."""
    if request.results is not None:
        if not request.results.is_file():
            raise UserError(
                f"{request.results} is no file", "it is RESULTS, which run.sh of a bundle writes"
            )
        folder = request.results.parent
        if not (folder / "links").is_dir():
            raise UserError(
                f"there are no links next to {request.results}",
                "put it into the folder that kdelta calibrate --bundle made",
            )
        return folder
    chosen = chosen_programs(request)
    made_of = [list(DATA_STAYS), bundle.harness(), [msgspec.structs.asdict(one) for one in chosen]]
    folder = cache_dir("calibration") / f"{request.arch}-{identity(made_of)[:16]}"
    if not (folder / "manifest.json").exists():
        with interruptible():
            bundle.make_bundle(
                folder, chosen, arch=request.arch, relinks=request.relinks, log=progress.log
            )
    return folder


async def _timed(request: CalibrateRequest, folder: Path, progress: Progress) -> Timings:
    if request.results is not None:
        return read_results(request.results, busy_ok=request.busy_ok)
    if request.ssh:
        with interruptible():
            return over_ssh(request.ssh, folder, busy_ok=request.busy_ok, log=progress.log)
    progress.begin("clock")
    with interruptible():
        found = run_here(
            folder, busy_ok=request.busy_ok, log=lambda line: progress.doing("clock", line)
        )
    progress.end("clock", f"{len(found.programs)} programs in {found.quiet.seconds:.0f} s")
    return found


def links_of(folder: Path, program: TimedProgram) -> list[Path]:
    """The files of a program's links. UserError unless they are those that were timed."""
    found = []
    for link in program.links:
        path = folder / "links" / program.code / str(link.seed)
        if not path.exists() or sha256_file(path) != link.sha256:
            raise UserError(
                f"{path} is not what was timed as {program.name}, seed {link.seed}",
                "put the results into the very folder that kdelta calibrate --bundle made",
            )
        found.append(path)
    return found


async def traced_first(
    request: CalibrateRequest,
    timings: Timings,
    made: tuple[Path, CPU],
    *,
    store: Store,
    progress: Progress,
    region: str = "",
) -> dict[str, Trace]:
    """The trace of each program's first link; `region` as in TracedWork."""
    folder, cpu = made
    works = [
        TracedWork(one.name, links_of(folder, one)[0], ("trace", *one.arguments), region)
        for one in timings.programs
    ]
    return await traced_programs(
        works, kernel=request.kernel, cpu=cpu, lab=request.lab, store=store, progress=progress
    )


def _rows(
    timings: Timings, traces: Mapping[str, Trace], folder: Path, cpu: CPU
) -> list[ProgramRows]:
    return [
        rows_of(program, traces[program.name], links_of(folder, program), cpu)
        for program in timings.programs
    ]


def _notes(timings: Timings, fitted: Fitted) -> tuple[str, ...]:
    notes = []
    if timings.machine.hypervisor:
        notes.append(
            "a virtual machine: what the hypervisor does on traps (cpuid) is in the prices of "
            "special instructions, and neighbours on the core's other thread are not seen"
        )
    if not fitted.prices:
        notes.append("no price was found: model cycles of this machine are path cost alone")
    return tuple(notes)


def described(sources: Sequence[ProgramSource]) -> str:
    """How much of it there is, in words."""
    links = sum(one.relinks for one in {one.code: one for one in sources}.values())
    return f"{len(sources)} programs of {links} links"
