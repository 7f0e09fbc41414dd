# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest gets of the host for the names that a program asked for."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdelta.guests import host_files
from kdelta.guests.cpio import archive
from kdelta.guests.host_file import HostFile, carried_bytes
from kdelta.guests.host_files import HostFiles, canonical, is_secret
from kdelta.guests.job import GUEST_DATE_SECONDS, Job, job_archive, job_identity, job_text
from kdelta.guests.libraries import parse_file_option
from kdelta.spec.errors import UserError
from tests.guests.cpio_reader import read

TIME_NS = 1_600_000_000_123_456_789


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with a file, a link to it, a folder with a program, and a way round by a link."""
    tree = tmp_path.resolve() / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "text").write_text("content")
    (tree / "text").chmod(0o640)
    (tree / "link").symlink_to("text")
    (tree / "other").symlink_to("bin")
    (tree / "bin/script").write_text(f"#!{tree}/bin/shell -x\n")
    (tree / "bin/shell").write_bytes(b"no ELF file")
    for path in (tree / "text", tree / "bin/script", tree / "bin"):
        os.utime(path, ns=(TIME_NS, TIME_NS))
    return tree


def found(tree: Path, *names: str, given: tuple[str, ...] = ()) -> dict[str, HostFile]:
    """What is there below the tree for names that are relative to it."""
    files = HostFiles(given)
    files.need_all(f"{name[0]}{tree}/{name[1:]}" for name in names)
    prefix = f"{tree}/"
    return {
        one.path.removeprefix(prefix): one for one in files.files if one.path.startswith(prefix)
    }


def words(files: dict[str, HostFile]) -> dict[str, str]:
    return {path: one.word for path, one in files.items()}


def test_a_name_brings_as_much_as_was_asked_for(tree: Path) -> None:
    assert words(found(tree, "nlink")) == {"link": "link"}
    assert words(found(tree, "slink")) == {"link": "link", "text": "size"}
    assert words(found(tree, "clink")) == {"link": "link", "text": "content"}
    assert words(found(tree, "ctext", "stext")) == {"text": "content"}
    text = found(tree, "stext")["text"]
    assert (text.mode, text.size_bytes) == (stat.S_IFREG | 0o640, 7)
    assert text.modified_ns == TIME_NS
    assert found(tree, "clink")["link"].target == "text"


def test_a_program_brings_what_starts_it(tree: Path) -> None:
    expected = {"bin": "folder", "bin/script": "content", "bin/shell": "content"}
    assert words(found(tree, "xbin/script")) == expected
    assert words(found(tree, "cbin/script")) == {"bin": "folder", "bin/script": "content"}


def test_a_listing_brings_names_and_no_content(tree: Path) -> None:
    expected = {"bin": "folder", "link": "link", "other": "link", "text": "size"}
    assert words(found(tree, "l.")) == expected
    assert "bin/script" in found(tree, "lother")


def test_folders_on_the_way_have_no_time_of_their_own(tree: Path) -> None:
    """Another file next to what a program reads would be another job otherwise."""
    assert found(tree, "cbin/script")["bin"].modified_ns == 0
    assert found(tree, "sbin")["bin"].modified_ns == TIME_NS
    assert found(tree, "sbin", "cbin/script")["bin"].modified_ns == TIME_NS


def test_a_missing_name_brings_the_folders_that_are_there(tree: Path) -> None:
    assert words(found(tree, "cother/none/at-all")) == {"other": "link", "bin": "folder"}
    assert words(found(tree, "ctext/none")) == {}
    assert words(found(tree, "sother/../link")) == {
        "other": "link",
        "bin": "folder",
        "link": "link",
        "text": "size",
    }


def test_links_in_a_circle_end(tree: Path) -> None:
    (tree / "circle").symlink_to("circle")
    assert words(found(tree, "ccircle")) == {"circle": "link"}


def test_what_is_given_is_left_as_it_is(tree: Path) -> None:
    assert found(tree, "ctext", given=(f"{tree}/text",)) == {}
    assert canonical(f"{tree}/other/new") == f"{tree}/bin/new"
    assert canonical(f"{tree}/link") == f"{tree}/link"


def test_the_guests_own_folders_are_not_carried() -> None:
    files = HostFiles()
    files.need_all(("c/proc/self/status", "l/dev", "l/sys", "c/run/any", "c/proc"))
    assert files.files == ()


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        ("/home/me/.ssh", True),
        ("/home/me/.ssh/id_ed25519", True),
        ("/root/.netrc", True),
        ("/etc/shadow", True),
        ("/etc/ssl/private/key.pem", True),
        ("/etc/ssh/ssh_host_rsa_key", True),
        ("/etc/ssh/ssh_host_rsa_key.pub", False),
        ("/etc/shadows", False),
        ("/etc/passwd", False),
        ("/home/me/ssh", False),
    ],
)
def test_secrets(path: str, *, secret: bool) -> None:
    assert is_secret(path) is secret


def test_secrets_and_what_cannot_be_read_are_left_out_with_the_reason(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / ".ssh").mkdir()
    (tree / ".ssh/key").write_text("secret")
    closed = str(tree / "text")
    monkeypatch.setattr(os, "access", lambda path, _: str(path) != closed)
    files = HostFiles()
    files.need_all((f"c{tree}/.ssh/key", f"l{tree}", f"c{tree}/text"))
    assert files.left_out == {
        str(tree / ".ssh"): "it may be a secret",
        closed: "you cannot read it",
    }
    assert not {str(tree / ".ssh"), closed} & {one.path for one in files.files}


def test_folders_that_can_be_searched_and_not_listed_are_on_the_way(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(tree) or mode == os.X_OK)
    files = HostFiles()
    files.need(f"c{tree}/text")
    assert f"{tree}/text" in {one.path for one in files.files}
    assert files.left_out == {}

    def iterdir(path: Path) -> Iterator[Path]:
        raise PermissionError(13, "not for you", str(path))

    monkeypatch.setattr(Path, "iterdir", iterdir)
    files.need(f"l{tree}")
    assert files.left_out == {str(tree): "you cannot list it"}


def test_what_vanishes_meanwhile_is_not_there(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = str(tree / "link")
    real = os.readlink

    def readlink(path: str, **_: object) -> str:
        if str(path) == gone:
            raise FileNotFoundError(2, "gone", gone)
        return real(path)

    monkeypatch.setattr(os, "readlink", readlink)
    assert words(found(tree, "clink", "l")) == {
        "text": "size",
        "bin": "folder",
        "other": "link",
    }


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tree: Path) -> None:
    file = found(tree, "ctext")["text"]
    (tree / "text").unlink()
    os.mkfifo(tree / "text")
    with pytest.raises(UserError, match="text cannot be read: it is no file any more"):
        file.entry()


def test_questions_of_no_kind_bring_nothing(tree: Path) -> None:
    files = HostFiles()
    files.need_all(["", "c", f"?{tree}/text"])
    assert files.files == ()


def test_too_much_names_the_largest(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_files, "MAX_BYTES", 10)
    files = HostFiles()
    files.need(f"c{tree}/text")
    with pytest.raises(UserError, match=r"reads more than .*/tree/bin/script \("):
        files.need(f"c{tree}/bin/script")
    monkeypatch.setattr(host_files, "MAX_ENTRIES", 2)
    with pytest.raises(UserError, match="asks for more than 2 files"):
        HostFiles().need(f"l{tree}")


def test_an_archive_has_times_sizes_and_links(tree: Path) -> None:
    files = found(tree, "l.", "cbin/script", "sbin")
    rows = read(archive(one.entry() for one in files.values()))
    last = {name: (numbers, content) for name, numbers, content in rows}
    text, content = last[f"{tree}/text".lstrip("/")]
    assert (text[5], text[8]) == divmod(TIME_NS, 1_000_000_000)
    assert (text[6], text[9], text[10], content) == (0, 0, 7, b"")
    assert last[f"{tree}/link".lstrip("/")][1] == b"text"
    script, content = last[f"{tree}/bin/script".lstrip("/")]
    assert (script[10], content) == (0, (tree / "bin/script").read_bytes())
    # Its time is set again when all is in it.
    folder = f"{tree}/bin".lstrip("/")
    assert [name for name, *_ in rows].count(folder) == 2
    assert rows[-1][0] == folder


def job_of(files: dict[str, HostFile]) -> Job:
    return Job(argv=("/bin/true",), found=tuple(files.values()))


def test_a_job_is_another_when_a_file_changes(tree: Path) -> None:
    job = job_of(found(tree, "ctext"))
    before = job_identity(job)
    assert job_identity(Job(argv=("/bin/true",))) != before
    assert job_identity(job_of(found(tree, "ctext"))) == before
    assert job_identity(job_of(found(tree, "stext"))) != before
    (tree / "text").write_text("another")
    os.utime(tree / "text", ns=(TIME_NS + 1, TIME_NS + 1))
    assert job_identity(job_of(found(tree, "ctext"))) != before


def test_a_guest_with_new_files_is_at_a_later_date(tree: Path) -> None:
    files = found(tree, "ctext")
    assert "date " not in job_text(job_of(files))
    new_ns = (GUEST_DATE_SECONDS + 5) * 1_000_000_000 + 1
    os.utime(tree / "text", ns=(new_ns, new_ns))
    assert f"date {GUEST_DATE_SECONDS + 6}\n" in job_text(job_of(found(tree, "ctext")))
    assert job_archive(job_of(found(tree, "ctext")))


def test_a_file_that_was_changed_since_it_was_found_is_refused(tree: Path) -> None:
    job = job_of(found(tree, "ctext"))
    (tree / "text").write_text("another")
    with pytest.raises(UserError, match="text was changed while the program that reads it was"):
        job_archive(job)
    given = Job(("/bin/true",), files=tuple(parse_file_option(f"{tree}/text:/x")))
    assert job_archive(given)
    os.utime(tree / "text", ns=(TIME_NS, TIME_NS))
    with pytest.raises(UserError, match="text was changed while") as raised:
        job_archive(given)
    assert f"--file COPY:{tree}/text" in raised.value.hint


def test_bytes_are_those_of_contents(tree: Path) -> None:
    assert carried_bytes(found(tree, "l.", "ctext").values()) == 7


def test_a_program_with_a_damaged_header_is_carried_as_it_is(tree: Path) -> None:
    program = tree / "damaged"
    head = bytearray(Path("/proc/self/exe").read_bytes()[:64])
    head[39] = 0x7F  # of where the program headers are: no file is that long
    program.write_bytes(head)
    assert words(found(tree, "xdamaged"))["damaged"] == "content"
