# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta place`: its arguments."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from kdelta.cli import options
from kdelta.cli.guard import RUNS_FAILED
from kdelta.cli.layout import ModelCpu, Seed
from kdelta.cli.named_cpu import named_cpu
from kdelta.cli.publish import run_study
from kdelta.cpus.catalog import DEFAULT_CPU
from kdelta.replay.order import DEFAULT_EVALUATIONS
from kdelta.spec.errors import UserError
from kdelta.studies.lab.request import LabRequest
from kdelta.studies.place.request import PlaceRequest
from kdelta.studies.place.study import run_place


@options.makes_runs(without=options.SINGLE)
def place(
    words: Annotated[
        list[str],
        typer.Argument(metavar="KERNEL [+CHANGE...]", help="Kernel spec, perhaps changed."),
    ],
    *,
    file: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where the order is written.")
    ],
    workload: Annotated[
        list[str] | None,
        options.workload_option(help="See kdelta workloads; may be repeated.  [default: syscalls]"),
    ] = None,
    operation: Annotated[
        list[str] | None,
        typer.Option(
            "--operation",
            metavar="NAME",
            help="Only this one; may be repeated.  [default: all of the workloads]",
        ),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            "--weight",
            metavar="OPERATION=N",
            help="How much this one counts; 0: it is only shown. May be repeated.  [default: 1]",
        ),
    ] = None,
    cpu: ModelCpu = DEFAULT_CPU,
    effort: Annotated[
        int,
        typer.Option("--effort", metavar="N", min=0, max=10**7, help="Orders to judge, at most."),
    ] = DEFAULT_EVALUATIONS,
    layouts: Annotated[
        int, options.layouts_option(help="Random layouts that the order is compared with.")
    ] = options.DEFAULT_LAYOUTS,
    data: Annotated[
        bool,
        typer.Option(
            "--data",
            help="Also record data accesses, and show L2 misses; the order is not looked for by "
            "them. The run takes about 5 times longer.",
        ),
    ] = False,
    apply: Annotated[
        bool,
        typer.Option(
            "--apply",
            help="Relink the kernel in that order, run it, and count its misses: for a source "
            "with +sections.",
        ),
    ] = False,
    seed: Seed = 1,
    lab: LabRequest,
    json: options.Json = False,
    html: options.HtmlFile = None,
) -> int:
    """Find a better order for a kernel's functions, and write it for the linker.

    Runs the workloads once, recorded, and looks for an order of the executed functions under which
    the recording misses least. FILE is a symbol ordering file: TREE +order:FILE links a kernel so,
    and --apply does that at once and measures it.
    """
    request = PlaceRequest(
        kernel=options.one_kernel(words, "an order is for one kernel"),
        cpu=named_cpu(cpu),
        file=file,
        workloads=tuple(workload or ("syscalls",)),
        operations=tuple(operation or ()),
        weights=weights_of(weight or ()),
        evaluations=effort,
        layouts=layouts,
        seed=seed,
        apply=apply,
        lab=msgspec.structs.replace(lab, data_lines=data),
    )
    report = run_study("place", run_place, request, json=json, html=html)
    failed = not report.regions or (report.applied is not None and not report.applied.regions)
    return RUNS_FAILED if failed else 0


def weights_of(words: Iterable[str]) -> dict[str, float]:
    """The weights of words like open-close=3; UserError for others."""
    found = {}
    for word in words:
        name, _, text = word.rpartition("=")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not name or not 0 <= value < math.inf:
            raise UserError(f"no weight: {word!r}", "write it as --weight OPERATION=3")
        found[name] = value
    return found
