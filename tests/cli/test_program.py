# SPDX-License-Identifier: GPL-2.0-or-later
"""`-- COMMAND ARGS` in place of a workload: every command takes it, and slips are named."""

import importlib
import os
from pathlib import Path
from typing import Any

import pytest

from kdelta.cli import main as cli
from kdelta.lab.request import Program
from kdelta.lab.work import Work
from kdelta.spec.errors import UserError
from tests.cli.studies import Captured

pytestmark = pytest.mark.usefixtures("own_cache")

COMMAND = ("--file", "/etc/hosts", "--seconds", "5", "--", "ls", "-w", "40", "--", "-x")
ASKED = Program(("ls", "-w", "40", "--", "-x"), ("/etc/hosts",), 5)


class _StopError(UserError):
    """Ends a command as soon as its study is asked."""


def _asked(monkeypatch: pytest.MonkeyPatch, module: str, study: str, words: str) -> Any:
    """What the study of a command was asked."""
    asked: list[Any] = []

    def stop(*arguments: Any, **_: Any) -> None:
        asked.extend(arguments)
        raise _StopError("enough", "")

    monkeypatch.setattr(importlib.import_module(f"kdelta.cli.{module}"), study, stop)
    assert cli.ended([*words.split(), *COMMAND]) == (255 if module == "gate" else 2)
    return asked


@pytest.mark.parametrize(
    ("module", "study", "words"),
    [
        ("compare", "run_compare", "compare deb:aa deb:bb +cmdline:quiet"),
        ("gate", "run_gate", "gate deb:aa deb:bb"),
        ("layout", "run_study", "layout deb:aa"),
        ("ablate", "run_study", "ablate ./linux --from a --to b"),
        ("series", "run_study", "series ./linux a.patch"),
        ("bisect", "run_bisect", "bisect a..b ./linux"),
        ("run", "run_command", "run deb:aa +cmdline:quiet"),
        ("diff", "kernels_diff", "diff deb:aa deb:bb"),
        ("profile", "kernel_profile", "profile deb:aa"),
        ("crossing", "run_study", "crossing image:a --with image:b"),
    ],
)
def test_every_command_passes_the_program_to_its_study(
    monkeypatch: pytest.MonkeyPatch, module: str, study: str, words: str
) -> None:
    asked = _asked(monkeypatch, module, study, words)
    found = [getattr(one, "what", one) for one in asked]
    found = [getattr(one, "compare", one) for one in found]
    programs = [one.program for one in found if getattr(one, "program", None)]
    assert programs == [ASKED]
    kernels = " ".join(map(str, asked))
    assert "ls" in kernels
    assert "tree:ls" not in kernels


@pytest.mark.parametrize(
    ("module", "study", "words"),
    [
        ("compare", "run_compare", "compare deb:aa deb:bb"),
        ("gate", "run_gate", "gate deb:aa deb:bb"),
        ("layout", "run_study", "layout deb:aa"),
        ("bisect", "run_bisect", "bisect a..b ./linux"),
        ("diff", "kernels_diff", "diff deb:aa deb:bb"),
        ("profile", "kernel_profile", "profile deb:aa"),
        ("crossing", "run_study", "crossing image:a --with image:b"),
    ],
)
def test_every_command_passes_regions_of_the_program(
    monkeypatch: pytest.MonkeyPatch, module: str, study: str, words: str
) -> None:
    asked = _asked(monkeypatch, module, study, f"{words} -o mine -o yours")
    found = [getattr(one, "what", one) for one in asked]
    found = [getattr(one, "compare", one) for one in found]
    (request,) = [one for one in found if getattr(one, "program", None)]
    assert request.operations == ("mine", "yours")


def test_several_kernels_come_before_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    (request, *_) = _asked(monkeypatch, "compare", "run_compare", "compare deb:aa deb:bb deb:cc")
    assert (request.base, request.others) == ("deb:aa", ("deb:bb", "deb:cc"))


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        ("compare deb:aa deb:bb --", "no command after --", "kdelta compare deb:aa deb:bb -- ls"),
        ("compare deb:aa -- deb:bb", "cannot run deb:bb: it is a kernel spec", "aa deb:bb -- ls"),
        ("gate deb:aa -- ls deb:bb -l", "deb:bb is a kernel spec", "gate deb:aa deb:bb -- ls -l"),
        ("compare deb:aa deb:bb -- cd /", "cannot run cd: it is a word of", "bb -- sh -c 'cd /'"),
        ("run deb:aa -- if true", "cannot run if: it is a word of the", "sh -c 'if true'"),
        ("layout deb:aa -- A=b ls -l", "cannot run A=b: it sets a", "layout deb:aa -- env A=b ls"),
        ("compare deb:aa deb:bb -w aes -- ls -l", "-w aes and a command at once: ls -l", "one of"),
        ("gate deb:aa deb:bb -w aes -- ls", "-w aes and a command at once: ls", "one of"),
        ("bisect a..b -w aes -- ls", "-w aes and a command at once: ls", "one of"),
        ("compare deb:aa deb:bb --file /x", "--file /x without a command", "after --"),
        ("compare deb:aa deb:bb -- -o x ls", "cannot run -o: it is an option", "-o ... -- COMMAND"),
        ("run deb:aa ls", "no command", "kdelta run deb:aa -- ls"),
        ("run deb:aa deb:bb -- ls", "2 kernels, not one", "kdelta compare"),
    ],
)
def test_slips(capsys: Captured, words: str, said: str, hint: str) -> None:
    assert cli.ended(words.split()) == (255 if words.startswith("gate") else 2)
    shown = capsys.readouterr().err
    assert said in shown
    assert hint in shown.partition("\nhint: ")[2]


@pytest.mark.parametrize(
    ("word", "instead"),
    [
        ("ls | wc", "-- sh -c 'ls | wc -l'"),
        ("ls -a", "-- ls -a -l"),
        ("cd /", "-- sh -c 'cd / -l'"),
        ("no-such -a", None),
        ("ls 'a", None),
    ],
)
def test_a_command_line_in_one_word(capsys: Captured, word: str, instead: str | None) -> None:
    assert cli.ended(["run", "deb:aa", "--", word, "-l"]) == 2
    shown = capsys.readouterr().err
    if instead is None:
        assert f"no program {word} on this host's PATH" in shown
    else:
        assert f"cannot run {word!r}: it is a command line in one word" in shown
        assert f"try: kdelta run deb:aa {instead}\n" in shown


def test_a_file_at_standard_input_is_not_the_programs(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a b").write_text("x\n")
    before = os.dup(0)
    with (tmp_path / "a b").open() as file:
        os.dup2(file.fileno(), 0)
    try:
        _asked(monkeypatch, "run", "run_command", "run deb:aa")
    finally:
        os.dup2(before, 0)
        os.close(before)
    said = capsys.readouterr().err
    assert f"ls gets an empty standard input, and not {tmp_path}/a b; with it: -- sh -c " in said
    _asked(monkeypatch, "run", "run_command", "run deb:aa")
    assert "standard input" not in capsys.readouterr().err


def test_a_program_that_is_not_there_is_named_before_anything_is_fetched(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdelta.lab.lab.Lab.kernel", lambda *_: pytest.fail("fetched"))
    for words in ("compare deb:aa deb:bb", "diff deb:aa deb:bb", "run deb:aa", "layout deb:aa"):
        assert cli.ended([*words.split(), "--", "no-such-program"]) == 2
        assert "no program no-such-program on this host's PATH" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("second", "said", "hint"),
    [
        ("/bin/true", "/true is a program, no kernel", "after --: kdelta compare BASE OTHER -- "),
        ("/proc/version", "is neither a folder nor an archive", "image:/proc/version"),
        ("./nowhere", "there is no ", "named in the kernel spec"),
        ("/usr", "/usr is no kernel tree", "kernel's source"),
        ("image:/no/vmlinuz", "/no/vmlinuz cannot be read", ""),
        ("deb:aa +./no.patch", "no file no.patch", ""),
    ],
)
def test_a_bad_second_kernel_is_named_before_the_first_is_fetched(
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
    second: str,
    said: str,
    hint: str,
) -> None:
    monkeypatch.setattr("kdelta.lab.lab.Lab.kernel", lambda *_: pytest.fail("fetched"))
    first = "git:.@HEAD" if "patch" in second else "deb:linux-image-a"
    words = second.replace("deb:aa", "git:.@HEAD").split()
    assert cli.ended(["compare", first, *words, "--", "true"]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert hint in shown


def test_what_a_study_calls_a_program() -> None:
    work = Work(program=Program(("/usr/bin/ls", "-R", "a b")))
    assert (work.name, work.title) == ("run ls", "/usr/bin/ls -R 'a b'")
    assert work.has("any region of its own")
    assert work.only(("one",)) == work
    assert work.own_starts
    workload = Work("syscalls")
    assert (workload.name, workload.title) == ("syscalls", "syscalls")
    assert workload.has("getppid")
    assert not workload.has("no-such")
    assert workload.only(("getppid",)).operations == ("getppid",)
