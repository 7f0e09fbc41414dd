# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta series`: its arguments."""

from collections.abc import Sequence
from typing import Annotated

import typer

from kdelta.cli import options
from kdelta.cli.guard import RUNS_FAILED
from kdelta.cli.program import in_place_of
from kdelta.cli.publish import run_study
from kdelta.infer.search.series_model import View
from kdelta.kernels.sources.series import FORMS
from kdelta.spec.change import parse_variable
from kdelta.spec.errors import UserError
from kdelta.studies.lab.request import DEFAULT_WORKLOAD, LabRequest, Program
from kdelta.studies.series.request import DEFAULT_WITHIN, SeriesRequest
from kdelta.studies.series.study import run_series

EPILOG = """\b
Patches:
  FOLDER, FOLDER/series        patches by name, or as a quilt series file says
  FILE.patch  FILE.mbox        one, or those of an mbox
  A..B  REPO:A..B              commits of a git repository; A..B of TREE's own
  REPO:BRANCH                  what --keep wrote: measured again, and compared

"""


@options.makes_runs(of_one_tree=True)
def series(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="TREE [+CHANGE...] PATCHES... [-- COMMAND]",
            help="The source, and the patches in order.",
        ),
    ],
    *,
    workload: options.Workloads = None,
    program: Program | None,
    views: Annotated[
        str,
        typer.Option(
            "--views",
            metavar="LIST",
            help="What effects are measured against: order (those before it), left-out, alone.",
        ),
    ] = View.ORDER.value,
    minimal: Annotated[
        bool,
        typer.Option("--minimal", help="Look for the smallest set of patches with the effect."),
    ] = False,
    within: Annotated[
        float,
        typer.Option(
            "--within",
            metavar="PERCENT",
            help="With --minimal: by how much of the whole effect the set's may differ.",
        ),
    ] = float(100 * DEFAULT_WITHIN),
    max_builds: Annotated[
        int | None,
        options.max_builds_option(
            help="The most kernels to build besides those without and with all patches."
        ),
    ] = None,
    keep: Annotated[
        str,
        typer.Option(
            "--keep",
            metavar="REPO:BRANCH",
            help="Write a git branch with a commit a patch, its effect in trailers.",
        ),
    ] = "",
    drop: Annotated[
        bool, typer.Option("--drop", help="With --keep: without those that make it slower.")
    ] = False,
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Rule no patch out: search all of them.")
    ] = False,
    no_recompile: Annotated[
        bool,
        typer.Option("--no-recompile", help="Do not compile executed objects to rule patches out."),
    ] = False,
    lab: LabRequest,
    cpu: options.Cpu = "",
    regions: Annotated[int, options.explain_option(help="Operations to break down by patch.")] = 8,
    json: options.Json = False,
    html: options.HtmlFile = None,
) -> int:
    """Find out what each patch of a series does.

    Builds and runs the tree without and with all patches, rules out those that reach no executed
    code, proves with one more kernel that this was right, and takes the others apart with few
    kernels. Everything is kept: interrupted, it goes on where it was.
    """
    in_place_of(program, next(iter(workload or ()), ""))
    tree, patches = split_words(words)
    request = SeriesRequest(
        tree=tree,
        patches=tuple(patches),
        workloads=tuple(workload or [DEFAULT_WORKLOAD]),
        program=program,
        views=parse_views(views),
        minimal=minimal,
        within=options.fraction_of(within),
        max_builds=max_builds,
        rule_out=not keep_all,
        recompile=not no_recompile,
        keep=keep,
        drop=drop,
        lab=options.on_cpu(lab, cpu),
    )
    if minimal and keep:
        raise UserError(
            "--minimal and --keep at once",
            "a branch has effects, and --minimal measures no patch's",
        )
    report = run_study(
        "series", run_series, request, json=json, html=html, shown={"explain": regions}
    )
    return RUNS_FAILED if report.failure else 0


def split_words(words: Sequence[str]) -> tuple[str, list[str]]:
    """The tree's spec with its changes, and the words that name patches. UserError without any."""
    own = [word for word in words[1:] if word.startswith("+") or parse_variable(word) is not None]
    patches = [word for word in words[1:] if word not in own]
    tree = options.one_tree([words[0], *own], "a series is for one source")
    if not patches:
        raise UserError("no patches", f"after the tree name {FORMS}")
    return tree, patches


def parse_views(text: str) -> tuple[View, ...]:
    """The views of a list with commas; UserError for one that there is not."""
    known = {view.value: view for view in View}
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise UserError(f"no such view: {name}", f"there is: {', '.join(known)}")
    return tuple(view for view in View if view.value in names) or (View.ORDER,)
