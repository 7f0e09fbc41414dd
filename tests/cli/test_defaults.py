# SPDX-License-Identifier: GPL-2.0-or-later
"""The file of defaults: what it sets, what wins over it, where it shows, and its mistakes."""

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.cli.commands import COMMANDS, load_command
from kdelta.cli.defaults import check_defaults, options_of
from kdelta.spec.errors import UserError
from kdelta.studies.compare.request import CompareRequest
from tests.cli.studies import Captured, Studies, kdelta

A, B = "deb:linux-image-a", "deb:linux-image-b"
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    path = tmp_path / "defaults.toml"
    monkeypatch.setenv("KDELTA_DEFAULTS", str(path))

    def written(text: str) -> Path:
        path.write_text(text)
        return path

    return written


def compared(studies: Studies) -> CompareRequest:
    request = studies.asked[-1]
    assert isinstance(request, CompareRequest)
    return request


def test_values_for_all_commands_for_one_and_of_the_command_line(
    studies: Studies, write: Write
) -> None:
    write('[all]\njobs = 3\nmemory = 512\n[compare]\nmemory = 2048\noperation = ["x", "y"]\n')
    assert kdelta("compare", A, B) == 0
    found = compared(studies)
    assert found.lab.jobs == 3
    assert found.lab.machine.memory_mib == 2048
    assert found.operations == ("x", "y")
    assert kdelta("compare", A, B, "--jobs", "1", "-o", "z", "--memory=64") == 0
    found = compared(studies)
    assert (found.lab.jobs, found.operations, found.lab.machine.memory_mib) == (1, ("z",), 64)


def test_an_empty_variable_is_no_file(
    studies: Studies, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("[all]\nmemory = 512\n")
    monkeypatch.setenv("KDELTA_DEFAULTS", "")
    assert kdelta("compare", A, B) == 0
    assert compared(studies).lab.machine.memory_mib == 1024


def test_the_file_is_in_the_config_folder(
    studies: Studies, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_cache.is_dir()
    monkeypatch.delenv("KDELTA_DEFAULTS", raising=False)
    monkeypatch.setenv("KDELTA_CONFIG_DIR", str(tmp_path))
    (tmp_path / "defaults.toml").write_text("[compare]\nperturb = 7\n")
    assert kdelta("compare", A, B) == 0
    assert compared(studies).lab.perturbations == 7


def test_the_report_names_them_and_its_command_line_has_them(
    studies: Studies, write: Write, capsys: Captured
) -> None:
    path = write("[all]\nmemory = 512\nquiet = false\n[compare]\nskip-states = true\n")
    assert kdelta("compare", A, B, "-j", "2", "--all") == 0
    shown = capsys.readouterr()
    words = "--skip-states --memory 512"
    assert f"defaults: {words} ({path})\n" in shown.err
    before, _, after = shown.out.partition("How to reproduce it")
    assert words in " ".join(before.partition("Environment")[2].split())
    command = " ".join(after.replace("\\\n", "").split())
    assert f"kdelta compare {words} {A} {B} -j 2 --all" in command
    assert studies.asked


def test_without_a_value_in_effect_nothing_is_named(
    studies: Studies, write: Write, capsys: Captured
) -> None:
    write("[gate]\nmemory = 512\n")
    assert kdelta("compare", A, B, "--all") == 0
    shown = capsys.readouterr()
    assert "defaults" not in shown.out + shown.err
    assert studies.asked


@pytest.mark.usefixtures("studies")
def test_json_is_as_without_a_file(write: Write, capsys: Captured) -> None:
    assert kdelta("compare", A, B, "--json") == 0
    plain = json.loads(capsys.readouterr().out)
    write("[compare]\njson = true\nquiet = true\n")
    assert kdelta("compare", A, B) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out).keys() == plain.keys()
    assert shown.err == ""


MISTAKES = [
    ("jobs = 2\n", "cannot use jobs in {path}: it is in no section", "[all]"),
    ("[comprae]\njobs = 2\n", "cannot use [comprae] in {path}: there is no such", "[compare]"),
    ("[all]\njbos = 2\n", "cannot use jbos in [all] of {path}: no command has", "jobs"),
    ("[gate]\nmargni = 2\n", "cannot use margni in [gate] of {path}: kdelta gate has", "margin"),
    ("[compare]\nshow_all = true\n", "cannot use show_all in [compare]", "--help"),
    ('[all]\njobs = "2"\n', "cannot use jobs in [all] of {path}: it takes a whole", "KDELTA"),
    ("[all]\njobs = true\n", "it takes a whole number, not True", "KDELTA"),
    ("[all]\njobs = 2.5\n", "it takes a whole number, not 2.5", "KDELTA"),
    ("[all]\njobs = 0\n", "cannot use jobs in [all] of {path}: ", ""),
    ("[all]\nrerun = 1\n", "cannot use rerun in [all] of {path}: it takes true or false", "KDELTA"),
    ("[compare]\noperation = [1]\n", "it takes text in quotes, not 1", "KDELTA"),
    ("[compare]\nworkload = ['a']\n", "it takes text in quotes, not ['a']", "KDELTA"),
    ("[all\njobs = 2\n", "cannot read {path}: ", "KDELTA"),
    ("[all]\njobs 2\n", "(at line 2, column 6)", "KDELTA"),
    ("[all]\n\udcff = 2\n", "cannot read {path}: ", "KDELTA"),
]


@pytest.mark.usefixtures("studies")
@pytest.mark.parametrize(("text", "message", "hint"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_named_with_the_file_and_what_helps(
    write: Write, capsys: Captured, text: str, message: str, hint: str
) -> None:
    path = write("")
    path.write_bytes(text.encode(errors="surrogateescape"))
    assert kdelta("compare", A, B) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message.format(path=path) in shown.err
    assert hint in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.usefixtures("studies")
def test_a_mistake_of_a_gate_ends_with_255(write: Write) -> None:
    write("[all]\njbos = 2\n")
    assert kdelta("gate", A, B) == 255


@pytest.mark.usefixtures("studies")
def test_a_folder_in_place_of_the_file_is_no_crash(write: Write, capsys: Captured) -> None:
    path = write("")
    path.unlink()
    path.mkdir()
    assert kdelta("compare", A, B) == 2
    assert f"{path} cannot be read: Is a directory" in capsys.readouterr().err


def test_an_error_of_a_command_names_what_the_file_set(
    studies: Studies, write: Write, capsys: Captured
) -> None:
    path = write('[compare]\nworkload = "tcp"\n')
    assert kdelta("compare", A, B, "--", "true") == 2
    assert f"note: defaults: --workload tcp ({path})\n" in capsys.readouterr().err
    assert not studies.asked


def test_every_option_of_every_command_can_be_in_the_file(write: Write) -> None:
    commands = {name: load_command(name) for name in COMMANDS}
    examples = {"int": "64", "flo": "6.5"}
    lines: list[str] = []
    for name, command in commands.items():
        lines.append(f"[{name}]")
        for key, option in options_of(command).items():
            word = getattr(option.type, "choices", ["x"])[0]
            number = examples.get(option.type.name[:3])
            lines.append(f"{key} = {'true' if option.is_flag else number or repr(word)}")
    write("\n".join(lines))
    assert len(check_defaults(commands)) == len([one for one in lines if " = " in one]) > 100


def test_doctor_shows_the_file(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    from kdelta.cli import doctor

    assert not doctor._defaults().detail.partition("none: there is no ")[0]
    path = write('[all]\njobs = 2\nrerun = true\n[compare]\ncpu = "zen4"\n')
    assert doctor._defaults().detail == (
        f"{path}: [all] jobs = 2, [all] rerun = true, [compare] cpu = 'zen4'"
    )
    write("[all]\njbos = 2\n")
    found = doctor._defaults()
    assert (found.ok, found.remedy) == (False, "did you mean jobs?")
    monkeypatch.setenv("KDELTA_DEFAULTS", "")
    assert doctor._defaults().detail == "none"


def test_check_defaults_finds_a_mistake_in_the_section_of_any_command(write: Write) -> None:
    write("[bisect]\nfrist = true\n")
    with pytest.raises(UserError, match=r"frist in \[bisect\]"):
        check_defaults({name: load_command(name) for name in COMMANDS})


def test_a_line_that_is_kept_can_be_pasted(
    studies: Studies, write: Write, capsys: Captured
) -> None:
    write('[compare]\nappend = "a b"\n')
    assert kdelta("compare", A, B, "--all") == 0
    text = capsys.readouterr().out.partition("How to reproduce it")[2]
    words = shlex.split(text.replace("\\\n", "").partition("kdelta ")[2])
    assert words[:4] == ["compare", "--append", "a b", A]
    write("")
    assert kdelta(*words) == 0
    assert compared(studies).lab.machine.append == "a b"


def test_a_pipe_in_place_of_the_file_is_not_waited_for(write: Write, capsys: Captured) -> None:
    path = write("")
    path.unlink()
    os.mkfifo(path)
    assert kdelta("compare", A, B) == 2
    assert f"{path} is no file but a pipe or a device" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{'a.' * 50_000}b = 1", "line 1 has more than 50 dots"),
        (f"a = {'[' * 50_000}", "its brackets are nested too deeply"),
        ("#" * (2 << 20), "is too large: more than 1 MiB"),
    ],
    ids=["key", "brackets", "large"],
)
def test_a_hostile_file_is_refused(write: Write, capsys: Captured, text: str, said: str) -> None:
    write(text)
    assert kdelta("compare", A, B) == 2
    assert said in capsys.readouterr().err
