# SPDX-License-Identifier: GPL-2.0-or-later
"""The program: its command line is run, and ends with an exit code."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import click

from kdelta import __version__
from kdelta.cli.commands import COMMANDS, OF_KERNELS, load_command
from kdelta.cli.defaults import check_defaults, defaults_of, has_defaults
from kdelta.cli.guard import guarded
from kdelta.cli.output import emit
from kdelta.host.files import has_made_folders
from kdelta.host.invoked import begin_command
from kdelta.spec.errors import UserError


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
            if name in OF_KERNELS and has_defaults():
                check_defaults({one: load_command(one) for one in COMMANDS})
                limit = defaults_of("prune", load_command("prune"), COMMANDS).get("cache")
                if limit is not None:
                    from kdelta.host.cache import use_limit  # noqa: PLC0415  (it imports much)

                    use_limit(limit)
            ctx.default_map = {name: defaults_of(name, command, COMMANDS)}
        return name, command, words

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


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
        if has_made_folders():
            from kdelta.host.cache import keep_limit  # noqa: PLC0415  (it imports much)

            guarded(keep_limit)
        return code

    coded: Callable[[Callable[[], int]], int] | None = None
    if answers_by_code(arguments):
        from kdelta.cli.gate import gate_code  # noqa: PLC0415  (it imports much)

        coded = gate_code
    elif _name(arguments) == "shell":
        from kdelta.cli.shell import shell_code  # noqa: PLC0415  (it imports much)

        coded = shell_code
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
