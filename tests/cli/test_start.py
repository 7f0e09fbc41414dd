# SPDX-License-Identifier: GPL-2.0-or-later
"""A command starts fast: it imports what it needs, which no load of the machine changes."""

import importlib.util
import subprocess
import sys

import pytest

from kdelta.cli.commands import COMMANDS, load_command, module_of

NOT_NEEDED = {
    "alembic",
    "asyncio",
    "elftools",
    "google.protobuf",
    "jinja2",
    "kdelta.kernels",
    "kdelta.machines",
    "kdelta.replay",
    "kdelta.studies",
    "kdelta.workloads",
    "multiprocessing",
    "numpy",
    "qemu",
    "rich",
    "sqlalchemy",
}
"""Packages that take long to import, or import others that do."""

CODE = """
import sys
from kdelta.cli.main import ended
code = ended(sys.argv[1:])
print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
sys.exit(code)
"""


def imported(*words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words], check=True, capture_output=True, text=True
    )
    assert done.stdout
    return set(done.stderr.split())


@pytest.mark.usefixtures("own_data")
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["runs"]])
def test_a_command_that_reads_imports_nothing_that_it_does_not_need(words: list[str]) -> None:
    found = imported(*words)
    assert "kdelta.cli.main" in found
    assert NOT_NEEDED & found == set()


@pytest.mark.usefixtures("own_data")
def test_help_imports_no_command_and_no_checker_of_arguments() -> None:
    found = imported("--help")
    assert "pydantic" not in found
    assert {*map(module_of, COMMANDS)} & found == set()


@pytest.mark.parametrize("name", sorted(NOT_NEEDED))
def test_what_is_not_needed_exists(name: str) -> None:
    """The name of a package that is not there would prove nothing."""
    assert importlib.util.find_spec(name) is not None


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_the_first_line_of_each_ones_help(name: str) -> None:
    command = load_command(name)
    assert COMMANDS[name] == " ".join(command.help.split("\n\n")[0].split())
    assert command.name == name
