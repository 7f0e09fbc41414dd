# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands and their options."""

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from kdelta import __version__
from kdelta.cli.defaults import check_defaults, defaults_of, has_defaults
from kdelta.cli.guard import guarded
from kdelta.cli.invoked import begin_command
from kdelta.cli.output import emit
from kdelta.host.files import made_folders
from kdelta.spec.errors import UserError


class _Command(NamedTuple):
    """A command: its module, the first line of its help, and whether its help ends with the kinds
    of kernel specs. Its function has its name; its module is imported only when it is called.
    """

    module: str
    summary: str
    specs: bool = False


COMMANDS: Mapping[str, _Command] = {
    "compare": _Command("compare", "Compare kernels, operation by operation.", specs=True),
    "gate": _Command(
        "gate",
        "Answer by the exit code whether a kernel is slower, for CI and git bisect run.",
        specs=True,
    ),
    "run": _Command("run", "Profile a command under a kernel, exactly.", specs=True),
    "shell": _Command("shell", "Open a shell in a guest of a kernel.", specs=True),
    "runs": _Command("runs", "List the runs, failed ones too."),
    "show": _Command("show", "Show one run, or one study as it was printed."),
    "profile": _Command("profile", "Show where a run's instructions went, function by function."),
    "diff": _Command("diff", "Show what each function gained and lost from A to B."),
    "report": _Command("report", "Show what a study found, at any time later and in any form."),
    "rm": _Command("rm", "Remove studies and runs from the store."),
    "check": _Command("upkeep", "Compare all of cache and store with their hashes."),
    "prune": _Command("upkeep", "Remove what is no longer needed from cache and store."),
    "backup": _Command("upkeep", "Copy the store, also while others write it."),
    "log": _Command("log", "Show how a workload's figures moved over the kernels in the store."),
    "layout": _Command(
        "layout",
        "Show how sensitive a workload is to the kernel's function layout.",
        specs=True,
    ),
    "place": _Command(
        "place",
        "Find a better order for a kernel's functions, and write it for the linker.",
        specs=True,
    ),
    "crossing": _Command(
        "crossing",
        "Measure the cost of entering and leaving the kernel, split by cause.",
        specs=True,
    ),
    "conflicts": _Command(
        "conflicts",
        "Find the lines of memory that two CPUs contend for, by variable and field.",
        specs=True,
    ),
    "ablate": _Command(
        "ablate",
        "Find out which of the options that differ between two configs make the difference.",
        specs=True,
    ),
    "bisect": _Command(
        "bisect", "Find all commits of a range that make a kernel faster or slower.", specs=True
    ),
    "series": _Command("series", "Find out what each patch of a series does.", specs=True),
    "clock": _Command(
        "clock", "Pack operations to be timed on any machine, and judge their times."
    ),
    "build": _Command("kernels", "Build kernels without measuring them.", specs=True),
    "kernels": _Command("kernels", "List the kernels that are kept here, and how they came about."),
    "cpus": _Command(
        "cpus", "List the CPUs that have model cycles, and which have measured costs."
    ),
    "schema": _Command("schema", "Print the JSON Schema of a document."),
    "workloads": _Command("workloads", "List the workloads and their operations."),
    "doctor": _Command("doctor", "Check this host for missing dependencies."),
    "pin": _Command("pin", "Show, fetch or pack the pinned QEMU, compilers and packages."),
    "completion": _Command(
        "completion", "Print what makes a shell complete kdelta's command lines."
    ),
}
"""The commands in the order of --help. A test compares the summaries with the commands' help."""


class _Commands(click.Group):
    """The commands, each of which is imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of a command line, with its defaults of the user's file."""
        name, command, words = super().resolve_command(ctx, args)
        if name is not None and not ctx.resilient_parsing and name != "doctor":  # it reports them
            if COMMANDS[name].specs and has_defaults():
                check_defaults({one: load_command(one) for one in COMMANDS})
            ctx.default_map = {name: defaults_of(name, command, COMMANDS)}
            if COMMANDS[name].specs and has_defaults():
                limit = defaults_of("prune", load_command("prune"), COMMANDS).get("cache")
                if limit is not None:
                    importlib.import_module("kdelta.host.cache").use_limit(limit)
        return name, command, words

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.summary) for name, one in COMMANDS.items()])


def load_command(name: str) -> Any:
    """Import a command; returns it as click knows commands."""
    module = importlib.import_module(f"kdelta.cli.{COMMANDS[name].module}")
    command = importlib.import_module("kdelta.cli.command").Command
    epilog = importlib.import_module("kdelta.cli.examples").examples_text(name)
    epilog += getattr(module, "EPILOG", "") if name == COMMANDS[name].module else ""
    if COMMANDS[name].specs:
        epilog += importlib.import_module("kdelta.cli.options").SPECS
    return command(name, getattr(module, name), epilog)


def _show_version(_: click.Context, __: click.Parameter, wanted: bool) -> None:
    if wanted:
        emit(f"kdelta {__version__}\n")
        raise click.exceptions.Exit


app = _Commands(
    name="kdelta",
    help="Find which change to a Linux kernel made it faster or slower, and by exactly how much.",
    epilog="Exit codes: 0 done, 1 all runs of a kernel failed, 2 wrong usage, 3 the lab failed, "
    "130 interrupted.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version and exit.",
        )
    ],
)


def ended(arguments: Sequence[str]) -> int:
    """Runs the program with these arguments; returns its exit code, and raises nothing."""

    def command() -> int:
        _use_absolute_path()
        begin_command(arguments)
        code = guarded(lambda: _invoked(arguments), arguments)
        if made_folders():
            guarded(importlib.import_module("kdelta.host.cache").keep_limit)
        return code

    coded: Callable[[Callable[[], int]], int] | None = None
    if answers_by_code(arguments):
        coded = importlib.import_module("kdelta.cli.gate").gate_code
    elif _name(arguments) == "shell":
        coded = importlib.import_module("kdelta.cli.shell").shell_code
    return coded(command) if coded else command()


def _use_absolute_path() -> None:
    """Leave out of PATH what is no absolute folder: in a tree that kdelta works in, that would have
    the tree's programs.
    """
    if "PATH" in os.environ:
        folders = os.environ["PATH"].split(os.pathsep)
        os.environ["PATH"] = os.pathsep.join(filter(os.path.isabs, folders)) or os.defpath


def _must_be_text(arguments: Sequence[str]) -> None:
    """Raise UserError for a word that is no UTF-8: what is kept of a study has it as text."""
    for word in arguments:
        if not word.isascii() and any("\udc80" <= one <= "\udcff" for one in word):
            shown = os.fsencode(word).decode("utf-8", "backslashreplace")
            hint = "name such a file by a link to it, or by a script that has the word"
            raise UserError(f"an argument is not UTF-8: {shown}", hint)


def _invoked(arguments: Sequence[str]) -> Any:
    if _name(arguments) != "__complete":
        _must_be_text(arguments)
    try:
        with app.make_context("kdelta", list(arguments)) as context:
            return app.invoke(context)
    except click.exceptions.Exit as ended:  # of --help, or --version
        return ended.exit_code


def answers_by_code(arguments: Sequence[str]) -> bool:
    """Whether a command line is that of a gate, or of two programs: its exit code is the answer."""
    words = list(arguments)
    words = words[: words.index("--")] if "--" in words else words
    name = _name(words)
    return name == "gate" or (
        name == "run"
        and any(word == "--against" or word.startswith("--against=") for word in words)
    )


def _name(words: Sequence[str]) -> str:
    # Of kdelta's own options none takes a value.
    return next((word for word in words if not word.startswith("-")), "")
