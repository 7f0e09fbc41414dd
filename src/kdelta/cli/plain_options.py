# SPDX-License-Identifier: GPL-2.0-or-later
"""Options of how something is printed, which many commands share."""

import functools
from pathlib import Path
from typing import Annotated

import msgspec

from kdelta.spec.option import HelpSection, OptionKind, option

Json = Annotated[
    bool, option("--json", group=HelpSection.SHOWN, help="Print JSON instead of text.")
]
HtmlFile = Annotated[
    Path | None,
    option(
        "--html",
        metavar="FILE",
        kind=OptionKind.PAGE,
        group=HelpSection.SHOWN,
        help="Write the report there, too, as one page.",
    ),
]
Functions = Annotated[int, option("--functions", help="Name N functions an operation.")]
explain_option = functools.partial(
    option, "--explain", metavar="N", least=0, group=HelpSection.SHOWN
)
"""How many operations are explained; each command has a help of its own."""
All = Annotated[
    bool,
    option("--all", group=HelpSection.SHOWN, help="Print all figures and facts, not one screen."),
]
Verbose = Annotated[
    bool,
    option(
        "-v", "--verbose", group=HelpSection.SHOWN, help="Show each command, ready to be pasted."
    ),
]


class ProgressOptions(msgspec.Struct, frozen=True):
    """What is shown while a command runs."""

    verbose: Verbose = False
    quiet: Annotated[
        bool,
        option("-q", "--quiet", group=HelpSection.SHOWN, help="Show no progress, only the result."),
    ] = False


class PrintOptions(msgspec.Struct, frozen=True):
    """How a report is printed: as JSON, and on a page, too."""

    json: Json = False
    html: HtmlFile = None
