# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta series`: its arguments."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import msgspec

from kdelta.cli.codes import RUNS_FAILED
from kdelta.cli.measures import with_measures
from kdelta.cli.options import LikeOptions, OfProgram, on_cpu, one_tree
from kdelta.cli.plain_options import PrintOptions, explain_option
from kdelta.cli.publish import run_study
from kdelta.kernels.sources.series import FORMS
from kdelta.spec.change import parse_variable
from kdelta.spec.errors import UserError
from kdelta.spec.option import Argument
from kdelta.studies.series.request import SeriesRequest
from kdelta.studies.series.study import run_series

EPILOG = """\b
Patches:
  FOLDER, FOLDER/series        patches by name, or as a quilt series file says
  FILE.patch  FILE.mbox        one, or those of an mbox
  A..B  REPO:A..B              commits of a git repository; A..B of TREE's own
  REPO:BRANCH                  what --write-branch wrote: measured again, and compared

"""


class SeriesOptions(msgspec.Struct, frozen=True):
    """How many operations are broken down."""

    explain: Annotated[
        int,
        explain_option(help="Break N operations down by patch."),
    ] = 8


def series(
    words: Annotated[
        list[str],
        Argument(
            metavar="TREE [+CHANGE...] PATCHES... [-- COMMAND]",
            help="The source, and the patches in order.",
            kernels=True,
            one_tree=True,
            values="KERNEL|FILE",
        ),
    ],
    *,
    asked: partial[SeriesRequest],
    program: OfProgram,
    like: LikeOptions,
    shown: SeriesOptions,
    printed: PrintOptions,
) -> int:
    """Find out what each patch of a series does.

    Builds and runs the tree without and with all patches, rules out those that reach no executed
    code, proves with one more kernel that this was right, and breaks the others down with few
    kernels. Everything is kept: interrupted, it goes on where it was.
    """
    tree, patches = split_words(words)
    request, _ = with_measures(asked(tree=tree, patches=tuple(patches), program=program), None)
    request = msgspec.structs.replace(request, lab=on_cpu(request.lab, like.cpu))
    if request.minimal and request.keep:
        raise UserError(
            "--minimal and --write-branch at once",
            "a branch has effects, and --minimal measures no patch's",
        )
    report = run_study("series", run_series, request, printed, shown={"explain": shown.explain})
    return RUNS_FAILED if report.failure else 0


def split_words(words: Sequence[str]) -> tuple[str, list[str]]:
    """The tree's spec with its changes, and the words that name patches. UserError without any."""
    own = [word for word in words[1:] if word.startswith("+") or parse_variable(word) is not None]
    patches = [word for word in words[1:] if word not in own]
    tree = one_tree([words[0], *own], "a series is for one source")
    if not patches:
        raise UserError("no patches", f"after the tree name {FORMS}")
    return tree, patches
