# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands are made from their requests: each option is a field's, and nothing is written twice."""

from functools import partial
from typing import Annotated

import click
import msgspec
import pytest
from click.testing import CliRunner

from kdelta.cli.command import Command, OptionParam
from kdelta.cli.commands import COMMANDS, load_command
from kdelta.cli.examples import EXAMPLES
from kdelta.cli.output import shows_progress
from kdelta.cli.progress import shown_progress
from kdelta.cli.slips import parses
from kdelta.lab.request import LabRequest
from kdelta.spec.errors import UserError
from kdelta.spec.option import SHORT, Argument, OptionKind, option, without

_ONE = ("perturbations", "jobs", "cpu")
LAB = [
    "--memory",
    "--smp",
    "--qemu-cpu",
    "--qemu",
    "--append",
    "--timeout",
    "--as",
    "--compile-guest",
    "--perturb",
    "--jobs",
    "--rerun",
    "--no-snapshot",
    "--trace-limit",
    "--mode",
]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    part: Annotated[float, option("--part", kind=OptionKind.PERCENT, help="A part.")] = 0.01
    is_on: Annotated[bool, option("--off", off=True, help="Switch it off.")] = True
    lab: Annotated[LabRequest, without("data_lines")] = LabRequest()


class Single(msgspec.Struct, frozen=True, kw_only=True):
    lab: Annotated[LabRequest, without("data_lines", *_ONE)] = LabRequest(perturbations=1)


def made(seen: list[Asked]) -> Command:
    """A command that keeps the request that it was given."""

    def one(
        words: Annotated[list[str], Argument(metavar="W", help="Words.", kernels=True)],
        asked: partial[Asked],
    ) -> None:
        """Do it."""
        seen.append(asked(name=words[0]))

    return Command("one", one, None)


def options(command: click.Command) -> list[str]:
    return [one.opts[-1] for one in command.params if isinstance(one, OptionParam)]


def test_options_are_those_of_the_request_and_of_all_commands_with_kernels() -> None:
    common = ["--allow-unknown", "--fuzz", "--verbose", "--quiet"]
    assert options(made([])) == ["--part", "--off", *LAB, *common]


def test_what_is_given_is_in_the_request() -> None:
    seen: list[Asked] = []
    words = ["word", "--perturb", "7", "--rerun", "--no-snapshot", "-j", "3", "--memory", "512"]
    words += ["--append", "quiet", "--mode", "kernel", "--timeout", "5", "--qemu-cpu", "max"]
    words += ["--part", "0.1", "--off"]
    done = CliRunner().invoke(made(seen), words, catch_exceptions=False)
    assert done.exit_code == 0
    (found,) = seen
    lab, machine = found.lab, found.lab.machine
    assert (found.name, found.part, found.is_on) == ("word", 0.001, False)
    assert (lab.perturbations, lab.rerun, lab.snapshots, lab.jobs) == (7, True, False, 3)
    assert (lab.mode, machine.memory_mib, machine.append) == ("kernel", 512, "quiet")
    assert (machine.timeout_seconds, machine.cpu) == (5, "max")


def test_what_is_not_given_is_the_default_of_the_request() -> None:
    seen: list[Asked] = []
    assert CliRunner().invoke(made(seen), ["word"], catch_exceptions=False).exit_code == 0
    assert seen == [Asked(name="word")]


def test_a_field_that_is_left_out_has_no_option_and_keeps_its_value() -> None:
    seen: list[Single] = []

    def single(asked: Single) -> None:
        seen.append(asked)

    command = Command("single", single, None)
    left = [one for one in LAB if one not in {"--perturb", "--jobs", "--qemu-cpu"}]
    assert options(command) == left
    assert CliRunner().invoke(command, ["--perturb", "2"]).exit_code == 2
    assert CliRunner().invoke(command, [], catch_exceptions=False).exit_code == 0
    assert seen[0].lab.perturbations == 1


def test_a_word_that_is_none_of_those_of_an_option_is_an_error() -> None:
    with pytest.raises(UserError, match="cannot use --mode ring0: there is no such word"):
        CliRunner().invoke(made([]), ["word", "--mode", "ring0"], catch_exceptions=False)


def test_a_parameter_that_is_no_request_is_refused() -> None:
    def one(lab: int) -> None:
        del lab

    with pytest.raises(TypeError, match="is no request of a command"):
        Command("one", one, None)


def test_quiet_hides_progress(capsys: pytest.CaptureFixture[str]) -> None:
    for words, shown in ((["word", "-q"], False), (["word"], True)):
        done = CliRunner().invoke(made([]), words, catch_exceptions=False)
        assert done.exit_code == 0
        assert shows_progress() == shown
        with shown_progress() as progress:
            progress.begin("boot 6.1")
            progress.end("boot 6.1", "ready")
        assert ("boot 6.1" in capsys.readouterr().err) == shown


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_short_and_its_examples_parse(name: str) -> None:
    command = load_command(name)
    for one in command.params:
        if isinstance(one, OptionParam):
            assert len(one.declared.help) <= SHORT, one.opts
            assert one.declared.help.endswith("."), one.opts
    for words in EXAMPLES[name]:
        assert len(f"    kdelta {name} {words}") <= 80
        assert parses([name, *words.split()]), words


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_has_one_letter_and_one_meaning(name: str) -> None:
    long = {one.opts[-1]: one.opts[0] for one in load_command(name).params if one.opts[0] == "-o"}
    assert set(long) <= {"--operation"}
