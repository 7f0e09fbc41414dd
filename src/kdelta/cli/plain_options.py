# SPDX-License-Identifier: GPL-2.0-or-later
"""Options of commands that only read what is stored, and so import little."""

import functools
from typing import Annotated

import typer

limit_option = functools.partial(typer.Option, "-n", "--limit", metavar="N")

Json = Annotated[bool, typer.Option("--json", help="Everything as JSON instead of text.")]
