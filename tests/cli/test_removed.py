# SPDX-License-Identifier: GPL-2.0-or-later
"""What is reported of a command or an option that was removed."""

from pathlib import Path

import pytest

from kdelta.cli import main as cli
from kdelta.cli.codes import USAGE
from kdelta.cli.commands import COMMANDS as ALL
from kdelta.cli.commands import load_command
from kdelta.cli.removed import COMMANDS, OPTIONS, RENAMED
from kdelta.cli.slips import parses
from kdelta.infer.effects.gate import Exit
from kdelta.spec.errors import UserError
from kdelta.studies.documents import schema_text

Captured = pytest.CaptureFixture[str]

LINES = {"--front-end": "compare image:a image:b --cpu zen4 --front-end", "--top": "profile --top"}
"""A command line with each option."""


def test_every_removed_option_has_a_line() -> None:
    assert set(LINES) == set(OPTIONS)


@pytest.mark.parametrize("name", COMMANDS)
def test_removed_command_names_what_to_use(name: str, capsys: Captured) -> None:
    assert cli.ended([name, "--quick"]) == USAGE
    said = capsys.readouterr()
    gone = COMMANDS[name]
    assert said.out == ""
    assert said.err == (
        f"kdelta: cannot run {name}: it was removed, since {gone.reason}\n"
        f"hint: {gone.instead}\ntry: kdelta {' '.join(gone.command)}\n"
    )
    assert parses(gone.command)


@pytest.mark.parametrize("option", OPTIONS)
def test_removed_option_names_what_to_use(option: str, capsys: Captured) -> None:
    assert cli.ended(LINES[option].split()) == USAGE
    gone = OPTIONS[option]
    assert capsys.readouterr().err == (
        f"kdelta: cannot use {option}: it was removed, since {gone.reason}\n"
        f"hint: {gone.instead}\ntry: kdelta {LINES[option].replace(f' {option}', '')}\n"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[calibrate]\nquick = true\n", "cannot use [calibrate] in"),
        ("[compare]\nfront-end = true\n", "cannot use front-end in [compare]"),
    ],
)
def test_removed_one_in_the_file_of_defaults(
    text: str, said: str, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "defaults.toml").write_text(text)
    monkeypatch.setenv("KDELTA_DEFAULTS", str(tmp_path / "defaults.toml"))
    assert cli.ended(["compare", "image:a", "image:b"]) == USAGE
    error = capsys.readouterr().err
    assert said in error
    assert "it was removed, since" in error


@pytest.mark.parametrize("name", ["kdelta.calibration/1", "kdelta.calibration-check/1"])
def test_removed_document_names_its_page(name: str) -> None:
    with pytest.raises(UserError, match="which was removed") as raised:
        schema_text(name)
    assert "docs/what-a-miss-costs.md" in raised.value.hint


@pytest.mark.parametrize(
    ("line", "now"),
    [
        ("compare image:a image:b --again", "compare image:a image:b --rerun"),
        ("gate image:a image:b --one-state", "gate image:a image:b --skip-states"),
        ("ablate ./a --from b --to c --keep-all", "ablate ./a --from b --to c --search-all"),
        ("series ./a q --keep r:b", "series ./a q --write-branch r:b"),
        ("profile last --only user", "profile last --code user"),
        ("diff 1 2 --by calls", "diff 1 2 --figure calls"),
        ("report last -o a.html", "report last --output a.html"),
        ("place image:a -o order.txt", "place image:a --output order.txt"),
        ("pin pack -o a.tar", "pin pack --output a.tar"),
    ],
)
def test_renamed_option_names_the_one_of_now(line: str, now: str, capsys: Captured) -> None:
    assert cli.ended(line.split()) == (Exit.BROKEN if line.startswith("gate") else USAGE)
    said = capsys.readouterr().err
    was = next(word for word in line.split() if word not in now.split())
    assert f"there is no option {was}\nhint: it is called " in said
    assert said.endswith(f"try: kdelta {now}\n")


def test_every_renamed_option_has_a_command_that_has_the_one_of_now() -> None:
    known = {name for command in ALL for one in load_command(command).params for name in one.opts}
    assert set(RENAMED.values()) <= known
    assert not set(RENAMED) & known
