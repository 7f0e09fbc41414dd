# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta bisect`: its arguments."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from kdelta.cli import options
from kdelta.cli.guard import RUNS_FAILED
from kdelta.cli.output import log
from kdelta.cli.program import in_place_of
from kdelta.cli.progress import shown_progress
from kdelta.cli.publish import publish
from kdelta.host.files import write_atomic
from kdelta.host.interrupt import run_async
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import TreeSpec
from kdelta.spec.words import parse_kernel_words
from kdelta.studies.bisect.mail import bisect_mails
from kdelta.studies.bisect.model import BisectReport
from kdelta.studies.bisect.request import BISECT_MARGIN, BisectRequest
from kdelta.studies.bisect.study import run_bisect
from kdelta.studies.lab.lab import open_store
from kdelta.studies.lab.request import DEFAULT_WORKLOAD, LabRequest, Program


@options.makes_runs()
def bisect(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="GOOD..BAD [TREE] [+CHANGE...] [-- COMMAND]",
            help="Two commits, the repository, and what all kernels have in common.",
        ),
    ],
    *,
    repository: Annotated[
        str, typer.Option("-C", metavar="PATH", help="The repository, instead of TREE.")
    ] = ".",
    workload: options.Workloads = None,
    operation: options.Operations = None,
    program: Program | None,
    cpu: Annotated[
        str,
        options.cpu_option(
            help="Judge model cycles, too, on this CPU: a name that kdelta cpus lists, or a file."
        ),
    ] = "",
    layouts: options.Layouts = options.DEFAULT_LAYOUTS,
    first: Annotated[
        bool, typer.Option("--first", help="Find the commit with the largest effect, no others.")
    ] = False,
    region: Annotated[
        list[str] | None,
        typer.Option(
            "--region", metavar="NAME", help="Only effects on this region; may be repeated."
        ),
    ] = None,
    margin: Annotated[
        float, options.margin_option(help="An effect of no more than this is not searched for.")
    ] = float(100 * BISECT_MARGIN),
    max_builds: Annotated[
        int | None, options.max_builds_option(help="The most kernels besides the two ends.")
    ] = None,
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Rule no commit out by what it touches.")
    ] = False,
    log_file: Annotated[
        Path | None,
        typer.Option(
            "--log",
            metavar="FILE",
            help="Write what git bisect replay takes: one file for each commit that was found, "
            "from the second on FILE.2 and so on.",
        ),
    ] = None,
    mail: Annotated[
        bool,
        typer.Option("--mail", help="Print a mail for each commit that makes something slower."),
    ] = False,
    lab: LabRequest,
    regions: Annotated[int, options.explain_option(help="Regions to show of each commit.")] = 8,
    json: options.Json = False,
    html: options.HtmlFile = None,
) -> int:
    """Find all commits of a range that make a kernel faster or slower.

    Builds and runs both ends, rules out what reaches no executed code, and searches the others by
    halves, also into merges. Effects have signs and add up, so all commits are found and not one;
    what differs by placement alone is never named. Interrupted, it goes on where it was.
    """
    in_place_of(program, next(iter(workload or ()), ""), operation or ())
    if later := [word for word in words[1:] if ".." in word and ".." not in words[0]]:
        raise UserError(
            f"cannot bisect {words[0]}: the range {later[0]} comes first",
            f"kdelta bisect {later[0]} {words[0]}",
        )
    folder, changes = _tree(words[1:], repository)
    request = BisectRequest(
        repository=folder,
        range=words[0],
        changes=changes,
        workloads=tuple(workload or [DEFAULT_WORKLOAD]),
        operations=tuple(operation or ()),
        program=program,
        cpu=options.only_cpu(cpu, lab),
        layouts=layouts,
        first=first,
        regions=tuple(region or ()),
        margin=options.fraction_of(margin),
        max_builds=max_builds,
        rule_out=not keep_all,
        lab=lab,
    )
    with open_store() as store:
        with shown_progress() as progress:
            report = run_async(run_bisect(request, store, progress))
        if log_file is not None:
            _write_logs(report, log_file)
        mails = bisect_mails(report) if mail and not json else None
        publish(
            store, "bisect", [report], json=json, html=html, shown={"explain": regions}, text=mails
        )
    return RUNS_FAILED if report.failure else 0


def _tree(words: Sequence[str], repository: str) -> tuple[str, tuple[str, ...]]:
    """The repository's folder, and the changes that hold for all kernels."""
    named = bool(words) and not words[0].startswith("+") and "=" not in words[0]
    if named and repository != ".":
        raise UserError(f"two trees: {words[0]} and -C {repository}", "name one of them")
    (spec, *more) = parse_kernel_words(words if named else [f"tree:{repository}", *words])
    if more or not isinstance(spec, TreeSpec):
        raise UserError(
            f"not one git tree: {' '.join(words)}",
            "for example kdelta bisect v6.12..v6.13 ~/linux +my.config",
        )
    return spec.path, tuple(str(change) for change in spec.changes)


def _write_logs(report: BisectReport, file: Path) -> None:
    if not report.found:
        log(f"no commit was found, so {file} is not written")
    for place, found in enumerate(report.found):
        path = file if not place else file.with_name(f"{file.name}.{place + 1}")
        write_atomic(path, report.logs[found.commit.name].encode())
        log(f"git bisect replay {path}: {found.commit.cited}")
