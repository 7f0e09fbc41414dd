# SPDX-License-Identifier: GPL-2.0-or-later
"""`-- COMMAND ARGS` in place of a workload: every command takes it, and slips are named."""

import importlib
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


def test_several_kernels_come_before_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    (request, *_) = _asked(monkeypatch, "compare", "run_compare", "compare deb:aa deb:bb deb:cc")
    assert (request.base, request.others) == ("deb:aa", ("deb:bb", "deb:cc"))


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        ("compare deb:aa deb:bb --", "no command after --", "kdelta compare ... -- ls -l"),
        ("compare deb:aa -- deb:bb", "cannot run deb:bb: it is a kernel spec", "kernels before it"),
        ("compare deb:aa deb:bb -w aes -- ls -l", "-w aes and a command at once: ls -l", "one of"),
        ("compare deb:aa deb:bb -o stat -- ls", "-o stat and a command at once: ls", "one of"),
        ("gate deb:aa deb:bb -o stat -- ls", "-o stat and a command at once: ls", "one of"),
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
