# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands as the parser of arguments has them."""

from typing import Any

import typer

from kdelta.cli.main import app

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
