# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands as the parser of arguments has them."""

from typing import Any

from kdelta.cli.commands import COMMANDS as NAMED
from kdelta.cli.commands import load_command

COMMANDS: dict[str, Any] = {name: load_command(name) for name in NAMED}
