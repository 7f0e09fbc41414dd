# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta report`: what a study printed is there later, in any form; studies are replaced."""

import shlex
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from reading import read_document

from kdelta import __version__
from kdelta.cli import main as cli
from kdelta.cli.listing import studies_text
from kdelta.host.invoked import command_line
from kdelta.report.stored import Stored, encode
from kdelta.spec.errors import LabError
from kdelta.spec.run import RunStatus
from kdelta.store.check import must_be_whole
from kdelta.store.store import Store
from kdelta.studies.forms import FORMS
from kdelta.studies.kinds import stored_of
from tests.cli.captured import failed, without_head
from tests.cli.studies import Captured, Studies, make_run
from tests.report import test_ablation, test_bisect_report, test_place_report, test_series_report
from tests.report.example_layout import layout_report


def kdelta(*arguments: str) -> int:
    """Runs a command in this process; returns its exit code."""
    return cli.ended(arguments)


def compared(capsys: Captured, *more: str) -> str:
    """What a comparison printed."""
    assert kdelta("compare", "image:a b", "image:c", "--explain", "1", *more) == 0
    return capsys.readouterr().out


def test_text_and_json_are_what_the_study_printed(studies: Studies, capsys: Captured) -> None:
    assert not studies.asked
    printed = compared(capsys, "--functions", "2")
    assert kdelta("report") == 0
    assert capsys.readouterr().out == printed
    document = compared(capsys, "--json", "--cycles", "zen3")
    assert kdelta("report", "last", "--format", "json") == 0
    assert capsys.readouterr().out == document
    assert kdelta("report", "--format", "text") == 0
    text = capsys.readouterr().out
    assert "Model cycles on zen3" in text
    assert "Model cycles" not in printed


def test_what_is_kept_of_a_study(studies: Studies, capsys: Captured, own_data: Path) -> None:
    assert not studies.asked
    compared(capsys)
    with Store.open(own_data) as store:
        (study,) = store.studies()
        kept = stored_of(store.get(study.report_blob))
    assert study.kind == kept.kind == "compare"
    assert study.command == kept.command == "kdelta compare 'image:a b' image:c --explain 1"
    assert study.version == kept.version == __version__
    assert study.started == kept.started > 1.7e9
    assert study.question == "Is image:a b faster or slower than image:a b under syscalls?"
    assert kept.shown == {"explain": 1, "functions": 10, "least_ppm": 5000}


def test_the_list(studies: Studies, capsys: Captured, own_data: Path) -> None:
    assert not studies.asked
    assert kdelta("report", "--list") == 0
    assert capsys.readouterr().out == "no studies yet: kdelta compare makes one\n"
    compared(capsys)
    compared(capsys, "--cycles", "zen3")
    with Store.open(own_data) as store:
        latest, first = store.studies()
    assert kdelta("report", "--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["study", "started", "(UTC)", "kind", "operations", "answer"]
    for line, one in zip(lines[1:], (latest, first), strict=True):
        assert line.startswith(f"{one.id[:8]} {one.started_text[:16]} compare  10 operations ")
        assert one.answer.startswith("2 slower, 1 faster, 1 mixed")
        # All of it where no terminal is to be narrow.
        assert line.endswith(f" {one.answer}")
        narrow = studies_text([one], 80).splitlines()[1]
        assert len(narrow) < 80
        assert line.startswith(narrow.removesuffix("..."))
    connection = sqlite3.connect(own_data / "store.db")
    with connection:  # as a study that an older version kept
        connection.execute("UPDATE studies SET operations = '', answer = ''")
        connection.execute("ALTER TABLE studies DROP COLUMN bound")
        connection.execute("UPDATE alembic_version SET version_num = '0004'")
    connection.close()
    assert kdelta("report", "--list") == 0
    assert capsys.readouterr().out.splitlines() == lines
    assert kdelta("report", "--list", "-n", "1", "--format", "json") == 0
    listed = read_document(capsys.readouterr().out)
    assert [one.id for one in listed.studies] == [latest.id]
    assert kdelta("report", first.id[:9]) == 0
    assert "model cycles" not in capsys.readouterr().out


def test_show_shows_a_study_as_its_report(
    studies: Studies, capsys: Captured, own_data: Path, tmp_path: Path
) -> None:
    compared(capsys)
    assert len(studies.asked) == 1
    with Store.open(own_data) as store:
        (kept,) = store.studies()
    for option, form in (([], "text"), (["--json"], "json")):
        assert kdelta("report", kept.id, "--format", form) == 0
        shown = capsys.readouterr().out
        assert kdelta("show", kept.id[:8], *option) == 0
        assert capsys.readouterr().out == shown
    page = tmp_path / "page.html"
    assert kdelta("show", kept.id, "--html", str(page)) == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    capsys.readouterr()
    failed(["show", kept.id, "--console"], [f"{kept.id}: it is a study", "kdelta runs"], capsys)


@pytest.mark.parametrize("name", ["x.pdf", "report.docx", "a.b/x.PDF"])
def test_a_file_of_no_format_is_refused(name: str, capsys: Captured, own_data: Path) -> None:
    failed(
        ["report", "--output", name], [f"cannot write {Path(name).name}", ".html (html)"], capsys
    )
    assert not (own_data / "store.db").exists()


def test_rm_says_what_went(own_data: Path, capsys: Captured, studies: Studies) -> None:
    compared(capsys)
    assert len(studies.asked) == 1
    with Store.open(own_data) as store:
        (kept,), runs = store.studies(), store.runs()
    failed(["rm", "last"], ["cannot remove last", "kdelta report --list"], capsys)
    failed(["rm", kept.id, "nonesuch"], ["no study and no run is called 'nonesuch'"], capsys)
    failed(["rm", ""], ["no study and no run is called ''"], capsys)
    with Store.open(own_data) as store:
        assert (store.studies(), store.runs()) == ([kept], runs)
    assert kdelta("rm", kept.id[:10], runs[0].id) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"removed study {kept.id}, compare of {kept.started_text} UTC: ")
    assert lines[1].startswith(f"removed run {runs[0].id} of ")
    assert all(line.endswith(" kB freed") for line in lines)
    with Store.open(own_data) as store:
        assert (store.studies(), store.runs()) == ([], runs[1:])
    must_be_whole(own_data)


def test_a_run_has_a_report_too(own_data: Path, capsys: Captured) -> None:
    with Store.open(own_data) as store:
        good = make_run(store, RunStatus.OK).run
        bad = make_run(store, RunStatus.BOOT_FAILED, 1, detail="panic: oops").run
    for run in (good, bad):
        for form, option in (("text", []), ("json", ["--json"])):
            assert kdelta("show", run.id, *option) == 0
            shown = capsys.readouterr().out
            assert kdelta("report", run.id, "--format", form) == 0
            assert capsys.readouterr().out == shown


def test_a_file_is_written_in_the_form_of_its_name(
    studies: Studies, capsys: Captured, tmp_path: Path
) -> None:
    assert not studies.asked
    printed = compared(capsys)
    for name, begins in (("report", "study "), ("r.txt", "study "), ("r.json", "{")):
        file = tmp_path / name
        file.write_text("old")
        assert kdelta("report", "--output", str(file)) == 0
        out, said = capsys.readouterr()
        assert (out, said.startswith(f"{file}: ")) == ("", True)
        assert file.read_text().startswith(begins)
    assert (tmp_path / "r.txt").read_text() == printed
    file = tmp_path / "r.json"
    assert kdelta("report", "--output", str(file), "--format", "text") == 0
    assert file.read_text() == printed


@pytest.mark.parametrize(
    ("arguments", "code", "words", "hint"),
    [
        ([], 2, "no study is stored yet", "kdelta compare makes one"),
        (["abc"], 2, "no study and no run is called 'abc'", "kdelta report --list"),
        (["--format", "jason"], 2, "no such format: jason", "did you mean json? there is text, "),
        (["--format", "pdf"], 2, "no such format: pdf", "there is text, mail, html, json, ktap"),
        (["nonsense"], 2, "no study and no run is called 'nonsense'", "kdelta report --list"),
        (["--format", "q"], 2, "no such format: q", "there is text, mail, html, json, ktap, junit"),
        (["--format", "TEXT"], 2, "no such format: TEXT", "did you mean text? "),
    ],
)
def test_usage(arguments: list[str], code: int, words: str, hint: str, capsys: Captured) -> None:
    assert kdelta("report", *arguments) == code
    out, said = capsys.readouterr()
    assert out == ""
    assert words in said
    assert f"hint: {hint}" in said


def test_an_id_that_more_than_one_has(
    studies: Studies, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not studies.asked
    names = iter([f"abcd{number}" for number in range(20)])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(names))
    compared(capsys)
    assert kdelta("report", "abcd") == 2
    said = capsys.readouterr().err
    assert "more than one study's or run's id begins with 'abcd'" in said
    assert "hint: these: abcd" in said


@pytest.mark.parametrize("how", ["gone", "damaged", "other"])
def test_a_report_that_is_lost(
    how: str, studies: Studies, capsys: Captured, own_data: Path
) -> None:
    assert not studies.asked
    compared(capsys)
    with Store.open(own_data) as store:
        blob = store.studies()[0].report_blob
        other = store.put(b"something else")
    blobs = own_data / "blobs"
    path = blobs / blob[:2] / blob[2:]
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(
            (blobs / other[:2] / other[2:]).read_bytes() if how == "other" else b"garbage"
        )
    assert kdelta("report") == 3
    out, said = capsys.readouterr()
    assert out == ""
    assert "cannot be shown: " in said
    assert ("lost a blob" if how == "gone" else "is damaged") in said
    assert said.endswith("makes it again: kdelta compare 'image:a b' image:c --explain 1\n")


def test_a_file_that_cannot_be_written(studies: Studies, capsys: Captured, tmp_path: Path) -> None:
    assert not studies.asked
    compared(capsys)
    for file, code, said in (
        (Path("/proc/kdelta.txt"), 2, "nothing can be written to /proc"),
        (tmp_path / "no" / "such" / "folder.txt", 2, f"there is no folder {tmp_path}/no/such"),
        (tmp_path, 3, f"writing {tmp_path}: Is a directory"),
    ):
        assert kdelta("report", "--output", str(file)) == code
        shown = capsys.readouterr()
        assert shown.out == ""
        assert said in shown.err


def test_a_device_is_written_as_it_is(studies: Studies, capsys: Captured) -> None:
    assert not studies.asked
    compared(capsys)
    assert kdelta("report", "--output", "/dev/null") == 0
    assert Path("/dev/null").is_char_device()


def test_a_report_that_cannot_be_kept_is_still_printed(
    studies: Studies, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not studies.asked

    def failing(error: Exception) -> Callable[..., None]:
        def fail(*_: object) -> None:
            raise error

        return fail

    full = failing(LabError("writing the store: no space left"))
    monkeypatch.setattr("kdelta.cli.publish.keep", full)
    assert kdelta("compare", "image:a", "image:b") == 0
    out, said = capsys.readouterr()
    assert out.startswith("Linux 6.1.0 against itself, 10 operations of syscalls")
    assert "the report is printed and not kept: writing the store: no space left" in said
    monkeypatch.setattr("kdelta.cli.publish.keep", failing(TypeError("cannot keep a set")))
    assert kdelta("compare", "image:a", "image:b") == 3
    out, said = capsys.readouterr()
    assert out.startswith("Linux 6.1.0 against itself, 10 operations of syscalls")
    assert "this is a bug in kdelta: TypeError: cannot keep a set" in said


WORDS = [
    ["kdelta", "compare", "~/linux", "+# CONFIG_X is not set"],
    ["kdelta", "run", "image:a", "--", "sh", "-c", "echo \"$HOME\" 'x' `id` \\ !"],
    ["kdelta", "line\nbreak", "tab\t", "", "\x1b[31m", "quote' and \\n and\n"],
    ["kdelta", "caf\u00e9", "\udcff\udc80 bytes", "\u202ereversed"],
]


@pytest.mark.parametrize("words", WORDS)
def test_a_command_line_can_be_pasted(words: list[str]) -> None:
    line = command_line(words)
    assert line.isprintable()
    script = f"printf '%s\\0' {line}"
    said = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
    assert said.split(b"\0")[:-1] == [word.encode("utf-8", "surrogateescape") for word in words]


def test_a_plain_command_line_is_as_shlex_has_it() -> None:
    assert command_line(WORDS[0]) == shlex.join(WORDS[0])


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ("git:https://me:hunter2@example.org/linux@v6.12", "git:https://me:HIDDEN@example.org"),
        ("https://:t0ken@example.org", "https://:HIDDEN@example.org"),
        ("+KBUILD_SIGN_PIN=hunter2", "+KBUILD_SIGN_PIN=HIDDEN"),
        ("GITHUB_TOKEN=hunter2", "GITHUB_TOKEN=HIDDEN"),
        ("--append=quiet db_password=hunter2 x=1", "quiet db_password=HIDDEN x=1"),
    ],
)
def test_passwords_are_hidden(word: str, kept: str) -> None:
    line = command_line(["kdelta", word])
    assert kept in line
    assert "hunter2" not in line
    assert "t0ken" not in line


def test_what_only_looks_like_a_secret_is_kept() -> None:
    words = ["git:/a@v6.12", "+CONFIG_KEYS=y", "deb:a=1:2@3", "git@example.org:a", "+pin.patch"]
    assert command_line(words) == shlex.join(words)


def test_every_form_has_a_purpose_that_help_shows(capsys: Captured) -> None:
    assert kdelta("report", "--help") == 0
    text = capsys.readouterr().out
    for name, form in FORMS.items():
        assert f"{name:<9} {form.purpose}" in text
    assert max(map(len, text.splitlines())) <= 80


COMMANDS = {
    "layout": (
        ["layout", "image:a", "--cpu", "zen3", "--explain", "1", "--collisions", "2"],
        layout_report(),
    ),
    "place": (
        ["place", "image:a", "--output", "order.txt", "--cpu", "zen3"],
        test_place_report.REPORT,
    ),
    "ablate": (
        ["ablate", "/src/linux", "--from", "a.config", "--to", "b.config", "--explain", "1"],
        test_ablation.REPORT,
    ),
    "bisect": (
        ["bisect", "v6.12..v6.13", "/src/linux", "--explain", "1"],
        test_bisect_report.REPORT,
    ),
    "series": (["series", "/src/linux", "a.patch", "--explain", "1"], test_series_report.REPORT),
}


@pytest.mark.parametrize("kind", list(COMMANDS))
def test_every_study_is_kept_as_it_was_printed(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured, own_data: Path
) -> None:
    """The same text and the same JSON, with as much of it as was asked for."""
    words, example = COMMANDS[kind]
    # An example has whole numbers where a study has floats: 0 and not 0.0.
    (found,) = stored_of(encode(Stored(kind, "", "", 0.0, "", (example,)))).reports

    async def study(*_: object) -> msgspec.Struct:
        return found

    monkeypatch.setattr(f"kdelta.cli.{kind}.run_{kind}", study)
    for form, more in (("text", []), ("json", ["--json"])):
        assert kdelta(*words, *more) == 0
        printed = capsys.readouterr().out
        assert kdelta("report", "--format", form) == 0
        assert capsys.readouterr().out == printed
    with Store.open(own_data) as store:
        kept = store.studies()
    assert [one.kind for one in kept] == [kind, kind]
    assert kept[1].command == shlex.join(["kdelta", *words])
    if "--explain" in words:
        place = words.index("--explain")
        assert kdelta(*words[:place], "--explain", "0", *words[place + 2 :]) == 0
        least = capsys.readouterr().out
        assert kdelta("report", "last") == 0
        assert capsys.readouterr().out == least
        assert kdelta("report", kept[1].id) == 0
        assert capsys.readouterr().out != least


def test_mails_that_bisect_prints_are_no_usual_text(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    async def study(*_: object) -> msgspec.Struct:
        return test_bisect_report.REPORT

    monkeypatch.setattr("kdelta.cli.bisect.run_bisect", study)
    assert kdelta("bisect", "v6.12..v6.13", "/src/linux", "--mail") == 0
    assert capsys.readouterr().out.startswith("To: A U Thor")
    assert kdelta("report") == 0
    assert "2 commits and 1 group of commits account for" in capsys.readouterr().out
    assert kdelta("report", "--format", "mail") == 0
    assert "Subject: [REGRESSION] open-close" in capsys.readouterr().out


def test_a_gate_and_a_difference_are_kept(
    studies: Studies, monkeypatch: pytest.MonkeyPatch, capsys: Captured, own_data: Path
) -> None:
    monkeypatch.setattr("kdelta.studies.gate.study.run_compare", studies.compare)
    code = kdelta("gate", "image:a", "image:b")
    printed = capsys.readouterr().out
    assert kdelta("report") == 0
    assert without_head(capsys.readouterr().out).lstrip("\n") == printed
    assert kdelta("report", "--format", "json") == 0
    assert msgspec.json.decode(capsys.readouterr().out)["decision"]["exit"] == code
    assert kdelta("report", "--format", "ktap") == 0
    assert "ok 1 answer # SKIP cannot tell: other: boot-failed" in capsys.readouterr().out
    with Store.open(own_data) as store:
        a, b = (make_run(store, RunStatus.OK, index).run for index in (50, 51))
    for form, more in (("text", []), ("json", ["--json"])):
        assert kdelta("diff", a.id, b.id, "--functions", "3", *more) == 0
        printed = capsys.readouterr().out
        assert kdelta("report", "--format", form) == 0
        assert capsys.readouterr().out == printed
    assert kdelta("report", "--format", "markdown") == 0
    assert capsys.readouterr().out.startswith("### syscalls: ")
