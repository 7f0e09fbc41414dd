# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta run --against`: slips are found before a kernel is obtained, and exit as a gate's do."""

from pathlib import Path

import pytest

from kdelta.cli.main import answers_by_code
from kdelta.cli.run import old_command
from kdelta.spec.errors import UserError
from tests.cli.studies import Captured, kdelta

NEW = ("--", "/bin/ls", "-l")


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(
    ("old", "words", "error", "hint"),
    [
        ("./nonesuch", NEW, "cannot run the old program: no such program: ./nonesuch", ""),
        ("nonesuch", NEW, "no program nonesuch on this host's PATH", "write the path"),
        ("/tmp", NEW, "cannot run the old program: not a program: /tmp", ""),
        ("/etc/passwd", NEW, "/etc/passwd is not executable", "chmod +x"),
        ("", NEW, "--against names no program", "--against ./old"),
        ("'./old -l", NEW, "No closing quotation", "quote it whole"),
        ("/bin/ls", ("--", "./nonesuch"), "cannot run the new program: no such program", ""),
        ("/bin/ls", (), "--against /bin/ls and no command", "-- NEW ARGS"),
        ("/bin/ls", ("--mode", "kernel", *NEW), "--against and --mode kernel", "kdelta crossing"),
        ("/bin/ls", ("--margin", "-1", *NEW), "a margin of -1 %", "0 or more"),
        ("/bin/ls", ("--pairs", "9", *NEW), "and none is named", "--clock this"),
        ("/bin/ls", ("--clock", "kvm", *NEW), "cannot use --clock kvm", "this"),
        ("/bin/ls", ("--file", "/nonesuch", *NEW), "no such file: /nonesuch", "--file HOST"),
    ],
)
def test_slips(old: str, words: tuple[str, ...], error: str, hint: str, capsys: Captured) -> None:
    assert kdelta("run", "image:nowhere", "--against", old, *words) == 255
    shown = capsys.readouterr()
    assert error in shown.err
    assert hint in shown.err
    assert shown.out == ""


def test_the_old_program_gets_the_new_ones_arguments(tmp_path: Path) -> None:
    new = ("./new", "-l", "a b")
    assert old_command("./old", new) == ("./old", "-l", "a b")
    assert old_command("./old --quick", new) == ("./old", "--quick")
    assert old_command("./old 'a b'", new) == ("./old", "a b")
    spaced = tmp_path / "my program"
    spaced.touch()
    assert old_command(str(spaced), new) == (str(spaced), "-l", "a b")
    with pytest.raises(UserError, match="names no program"):
        old_command(" ", new)


def test_which_command_lines_are_answered_by_the_exit_code() -> None:
    assert answers_by_code(["run", "k", "--against", "old", "--", "new"])
    assert answers_by_code(["run", "--against=old", "k", "--", "new"])
    assert not answers_by_code(["run", "k", "--", "new", "--against", "old"])
    assert answers_by_code(["gate", "a", "b"])
    assert not answers_by_code(["report", "--against", "old"])


def test_clock_without_another_program_refused(capsys: Captured) -> None:
    assert kdelta("run", "image:nowhere", "--clock", "this", *NEW) == 2
    shown = capsys.readouterr().err
    assert "without --against" in shown
    assert "--against OLD" in shown
