# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta clock`: a workload as a file for other machines, and what came of it there."""

import itertools
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec

from kdelta.cli.options import one_kernel
from kdelta.cli.output import emit
from kdelta.cli.plain_options import PrintOptions
from kdelta.cli.progress import shown_progress
from kdelta.cli.publish import publish, run_study
from kdelta.cli.reading import one_of
from kdelta.host.command import log_to_stderr
from kdelta.host.target import target
from kdelta.lab.lab import open_store
from kdelta.lab.plan import guest_compiler
from kdelta.measures.clock.bundle import bundle_of, bundle_of_program, write_bundle
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument, option
from kdelta.spec.run import MachineOptions
from kdelta.studies.clock.floor import run_floor
from kdelta.studies.clock.request import ClockRequest, FloorRequest
from kdelta.studies.clock.study import run_clock
from kdelta.studies.counters.request import CountersRequest
from kdelta.studies.counters.study import run_counters
from kdelta.workloads.catalog import find_workload

_ACTIONS = ("pack", "judge", "floor", "check")
_CHECK = "kdelta clock check --counts KERNEL [FILE...]"


_TAKES = {
    "pack": ("--workload", "--program", "--arch", "--output"),
    "judge": ("--operation", "--margin"),
    "floor": ("--workload", "--operation", "--margin", "--pairs"),
    "check": ("--counts", "--workload", "--operation", "--margin"),
}
"""By action, the options besides those of printing."""


class PackOptions(msgspec.Struct, frozen=True):
    """What is packed, and where to."""

    workload: Annotated[
        str, option("-w", "--workload", help="Take this workload: syscalls or aes.")
    ] = "syscalls"
    arch: Annotated[str, option("--arch", help="Pack it for this architecture.")] = "x86_64"
    program: Annotated[
        Path | None,
        option(
            "--program",
            metavar="FILE",
            values="FILE",
            help="Pack this static program instead of a workload.",
        ),
    ] = None
    output: Annotated[Path | None, option("--output", help="Write the tar there.")] = None


class ClockCheckOptions(msgspec.Struct, frozen=True):
    """What is checked."""

    counts: Annotated[
        bool, option("--counts", help="With check: compare counters with exact counts.")
    ] = False


def clock(
    words: Annotated[
        list[str],
        Argument(
            metavar="pack | judge BASE OTHER | floor | check KERNEL [FILE...]",
            help="What to do; to judge, a folder of each kernel's files.",
            values="pack|judge|floor|check|FILE",
        ),
    ],
    *,
    packed: PackOptions,
    asked: ClockRequest,
    floor: partial[FloorRequest],
    checked: ClockCheckOptions,
    printed: PrintOptions,
) -> int:
    """Pack operations to be timed on any machine, and judge their times.

    `pack` makes one static program in a tar file. On the machine, `./bundle run >A/1.json` under
    the one kernel and `./bundle run >B/1.json` under the other, boot by boot, in an order drawn at
    random. `judge A B` compares the two folders, after as many boots as one likes: it may be asked
    after each. `floor` times the workload here, in pairs of runs under the kernel that runs: which
    differences of times this machine can show. `check --counts KERNEL FILE...` compares what the
    counters of a CPU say in such files, or here without one, with exact counts of the same kernel.
    """
    action, *folders = words
    _must_take(one_of("ACTION", action, _ACTIONS), packed, asked, floor)
    if checked.counts is not (action == "check"):
        raise UserError("--counts is what check does, and nothing else", _CHECK)
    if action == "check":
        check = _check_request(folders, packed.workload, asked)
        run_study("counters", run_counters, check, printed)
        return 0
    if action != "judge" and folders:
        hint = f"kdelta clock {action} --help"
        raise UserError(f"{action} takes no folder: {folders[0]}", hint)
    if action == "pack":
        return _pack(packed)
    if action == "floor":
        request = floor(workload=packed.workload, operations=asked.operations, margin=asked.margin)
        with shown_progress() as progress:
            report = run_floor(request, progress)
    else:
        if len(folders) != 2:
            raise UserError(f"{len(folders)} folders, not two", "kdelta clock judge A B")
        base, other = map(Path, folders)
        report = run_clock(msgspec.structs.replace(asked, base=base, other=other))
    with open_store() as store:
        publish(store, "clock", [report], printed)
    return 0


def _must_take(
    action: str, packed: PackOptions, asked: ClockRequest, floor: partial[FloorRequest]
) -> None:
    """Raise UserError for an option that the action makes nothing of."""
    usual = PackOptions(), ClockRequest()
    given = {
        "--workload": packed.workload != usual[0].workload,
        "--arch": packed.arch != usual[0].arch,
        "--program": packed.program is not None,
        "--output": packed.output is not None,
        "--operation": bool(asked.operations),
        "--margin": asked.margin != usual[1].margin,
        "--pairs": floor(workload="").pairs != FloorRequest(workload="").pairs,
    }
    odd = [name for name, is_given in given.items() if is_given and name not in _TAKES[action]]
    if odd:
        raise UserError(f"{action} takes no {odd[0]}", f"it takes {', '.join(_TAKES[action])}")
    if given["--workload"] and given["--program"]:
        raise UserError("--program and --workload: one of them is packed", "leave out the other")


def _check_request(words: Sequence[str], workload: str, asked: ClockRequest) -> CountersRequest:
    """Return the request of a kernel's words, and of files behind them."""
    if not words:
        raise UserError("check needs a kernel", _CHECK)
    changes = list(itertools.takewhile(lambda word: word.startswith("+"), words[1:]))
    return CountersRequest(
        kernel=one_kernel([words[0], *changes], _CHECK),
        files=tuple(map(Path, words[1 + len(changes) :])),
        workload=workload,
        operations=asked.operations,
        margin=asked.margin,
    )


def _pack(asked: PackOptions) -> int:
    if asked.output is None:
        raise UserError("pack needs a file to write", "kdelta clock pack --output bundle.tar")
    arch = target(asked.arch).name
    by = guest_compiler(arch, MachineOptions(), log_to_stderr)
    if asked.program:
        bundle, name = bundle_of_program(asked.program, by, log_to_stderr), asked.program.name
    else:
        bundle, name = bundle_of(find_workload(asked.workload), by, log_to_stderr), asked.workload
    size = write_bundle(bundle, arch, asked.output)
    emit(f"{asked.output}: {size / 1e6:.1f} MB, {name} for {arch}\n")
    return 0
