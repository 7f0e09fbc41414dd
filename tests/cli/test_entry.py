# SPDX-License-Identifier: GPL-2.0-or-later
"""The installed program starts, and says so if it cannot."""

import os
import subprocess
import sys
import tomllib

import pytest

from kdelta import __main__ as entry
from kdelta.host.native import native_folder

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["gate", "image:a", "image:b"], 255), (["-v", "gate"], 255), (["compare", "gate"], 3)],
)
def test_a_program_that_cannot_be_imported_is_no_bad_commit(
    arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setitem(sys.modules, "kdelta.cli.main", None)
    monkeypatch.setattr(sys, "argv", ["kdelta", *arguments])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == code
    assert "kdelta: it cannot start: ModuleNotFoundError" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "code"), [("compare", 130), ("gate", 255)])
def test_ctrl_c_while_it_starts_is_no_broken_installation(
    command: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    class Interrupting:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "kdelta.cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "kdelta.cli.main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting, *sys.meta_path])
    monkeypatch.setattr(sys, "argv", ["kdelta", command])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == code
    assert capsys.readouterr().err == "kdelta: interrupted\n"


def test_the_installed_program_goes_that_way(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    project = tomllib.loads((native_folder().parent / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"kdelta": "kdelta.__main__:main"}
    monkeypatch.setattr(sys, "argv", ["kdelta", "--version"])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"kdelta {project['version']}\n"
    monkeypatch.setattr(sys, "argv", ["kdelta", "gate"])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 255


def test_words_are_those_that_were_given_whatever_the_locale_is() -> None:
    odd = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    argv = [sys.executable, "-m", "kdelta", "workloads", "--h\u00e4"]
    done = subprocess.run(argv, env={**os.environ, **odd}, capture_output=True, check=False)
    assert done.returncode == 2
    assert "there is no option --h\u00e4\n".encode() in done.stderr
