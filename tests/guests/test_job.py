# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs: the text that the agent reads, the same archive each time, and what cannot be asked."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.guests.job import (
    PIECE_BYTES,
    Job,
    JobFile,
    handed_over,
    job_archive,
    job_identity,
    job_text,
    later_words,
)
from kdelta.spec.errors import UserError
from kdelta.spec.run import Perturbation
from tests.guests.cpio_reader import read

WORD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


def files(tmp_path: Path) -> tuple[JobFile, ...]:
    (tmp_path / "one").write_bytes(b"1")
    (tmp_path / "two").write_bytes(b"22")
    return (
        JobFile(tmp_path / "two", "/usr/bin/two", 0o755),
        JobFile(tmp_path / "one", "/data/one", 0o600),
    )


def test_text_of_all_directives(tmp_path: Path) -> None:
    module = JobFile(tmp_path / "x.ko", "/modules/x.ko")
    job = Job(
        argv=("/bin/sh", "-c", "echo 100%\ndone"),
        env=(("PATH", "/bin"), ("EMPTY", "")),
        cwd="/tmp",
        region="sh -c",
        modules=(module,),
        optional_modules=(JobFile(tmp_path / "y.ko", "/modules/y.ko"),),
        seconds=9,
        perturbation=Perturbation(1, "00ff", 129, 77),
    )
    assert job_text(job) == (
        "module /modules/x.ko\n"
        "optional-module /modules/y.ko\n"
        "seed 00ff\n"
        "pages 129\n"
        "phase-ns 77\n"
        "seconds 9\n"
        "region sh -c\n"
        "cwd /tmp\n"
        "env PATH=/bin\n"
        "env EMPTY=\n"
        "env KDELTA_WARM_UP=100\n"
        "arg /bin/sh\n"
        "arg -c\n"
        "arg echo 100%25%0Adone\n"
    )


def test_a_mode_is_told_and_user_mode_is_not() -> None:
    assert job_text(Job(("/a",), mode="kernel-direct")) == (
        "seconds 600\ncwd /\nmode kernel-direct\nenv KDELTA_WARM_UP=100\narg /a\n"
    )
    assert "mode" not in job_text(Job(("/a",), mode="user"))


def test_the_identity_of_a_job_in_user_mode_is_what_it_was_without_modes() -> None:
    assert job_identity(Job(("/a",), mode="user")) == (
        "315c96de6be0b049163d7c6d907e7909b488b1a51b6f1ef3d9204016d413a14b"
    )


def test_unperturbed_run_has_no_perturbing_directive() -> None:
    assert job_text(Job(("/a",))) == "seconds 600\ncwd /\nenv KDELTA_WARM_UP=100\narg /a\n"


@given(st.lists(WORD, max_size=5))
def test_every_word_is_one_line_and_comes_back(words: list[str]) -> None:
    lines = job_text(Job(("/a", *words))).split("\n")
    found = [line.removeprefix("arg ") for line in lines if line.startswith("arg ")]
    assert [w.replace("%0A", "\n").replace("%25", "%") for w in found] == ["/a", *words]


def test_archive_holds_the_job_and_its_files(tmp_path: Path) -> None:
    (tmp_path / "x.ko").write_bytes(b"module")
    module = JobFile(tmp_path / "x.ko", "/modules/x.ko")
    job = Job(("/usr/bin/two",), files=files(tmp_path), modules=(module,))
    found = {
        name: (numbers[1] & 0o777, content) for name, numbers, content in read(job_archive(job))
    }
    assert found["job"] == (0o644, job_text(job).encode())
    assert found["usr/bin/two"] == (0o755, b"22")
    assert found["data/one"] == (0o644, b"1")
    assert found["modules/x.ko"] == (0o644, b"module")


def test_words_for_later_begin_a_piece_of_their_own() -> None:
    plain, asking = Job(("/a",)), Job(("/a",), later=("--level", "1", "stat"))
    content = handed_over(asking)
    start = len(content) - len(later_words(asking))
    assert content[start:] == b"--level\n1\nstat\n"
    assert start % PIECE_BYTES == 0
    assert content.startswith(job_archive(plain))
    assert not content[len(job_archive(plain)) : start].strip(b"\0")
    nothing_yet = msgspec.structs.replace(asking, later=())
    assert handed_over(nothing_yet) == content[:start]
    assert handed_over(plain) == job_archive(plain)
    keys = {job_identity(one) for one in (plain, asking, nothing_yet)}
    assert len(keys) == 3


def test_archive_and_identity_have_optional_modules(tmp_path: Path) -> None:
    (tmp_path / "x.ko").write_bytes(b"module")
    modules = (JobFile(tmp_path / "x.ko", "/modules/x.ko"),)
    optional = Job(("/a",), optional_modules=modules)
    found = {name: content for name, _, content in read(job_archive(optional))}
    assert found["modules/x.ko"] == b"module"
    asked = {job_identity(job) for job in (optional, Job(("/a",)), Job(("/a",), modules=modules))}
    assert len(asked) == 3


def test_archive_is_the_same_for_any_order_of_files(tmp_path: Path) -> None:
    given_files = files(tmp_path)
    first = job_archive(Job(("/a",), files=given_files))
    assert job_archive(Job(("/a",), files=given_files[::-1])) == first
    (tmp_path / "one").touch()
    assert job_archive(Job(("/a",), files=given_files)) == first


def test_identity_is_that_of_what_runs(tmp_path: Path) -> None:
    job = Job(("/a",), files=files(tmp_path))
    first = job_identity(job)
    shaken = Job(("/a",), files=files(tmp_path), perturbation=Perturbation(1, "00", 3, 4))
    assert job_identity(shaken) == first
    (tmp_path / "copy").write_bytes(b"1")
    moved = (job.files[0], JobFile(tmp_path / "copy", "/data/one", 0o600))
    assert job_identity(Job(("/a",), files=moved)) == first
    (tmp_path / "copy").write_bytes(b"other")
    assert job_identity(Job(("/a",), files=moved)) != first


@pytest.mark.parametrize(
    "changes",
    [
        {"argv": ("/b",)},
        {"argv": ("/a", "")},
        {"env": (("A", "1"),)},
        {"cwd": "/tmp"},
        {"region": "a"},
        {"mode": "kernel"},
        {"mode": "kernel-skip"},
        {"seconds": 1},
        {"files": ()},
    ],
)
def test_identity_sees_every_field(tmp_path: Path, changes: dict[str, Any]) -> None:
    base: dict[str, Any] = {"argv": ("/a",), "files": files(tmp_path)}
    assert job_identity(Job(**{**base, **changes})) != job_identity(Job(**base))


def test_same_file_twice_is_one(tmp_path: Path) -> None:
    twice = files(tmp_path) * 2
    assert job_archive(Job(("/a",), files=twice)) == job_archive(Job(("/a",), files=twice[:2]))


def test_two_files_for_one_path(tmp_path: Path) -> None:
    one, two = files(tmp_path)
    clash = (one, JobFile(two.host, one.guest))
    with pytest.raises(UserError, match="two files for /usr/bin/two"):
        job_archive(Job(("/a",), files=clash))


def test_file_above_a_file(tmp_path: Path) -> None:
    one, two = files(tmp_path)
    clash = (JobFile(one.host, "/data"), two)
    with pytest.raises(UserError, match="/data cannot be a file and a folder"):
        job_archive(Job(("/a",), files=clash))


@pytest.mark.parametrize(
    "path",
    ["relative", "/a/../b", "/a//b", "/a/", "/", "/init", "/job", "/proc/x", "/dev/null", "/sys"],
)
def test_paths_that_no_file_can_have(tmp_path: Path, path: str) -> None:
    one, _ = files(tmp_path)
    with pytest.raises(UserError):
        job_archive(Job(("/a",), files=(JobFile(one.host, path),)))


@pytest.mark.parametrize(
    "job",
    [
        Job(()),
        Job(("relative",)),
        Job(("/a", "nul\0")),
        Job(("/a",), env=(("A", "\0"),)),
        Job(("/a",) * 5000),
        Job(("/a",), region=""),
        Job(("/a",), region="x" * 256),
        Job(("/a",), modules=(JobFile(Path("x"), "/modules/x.ko"),) * 65),
        Job(
            ("/a",),
            modules=(JobFile(Path("x"), "/modules/x.ko"),) * 64,
            optional_modules=(JobFile(Path("y"), "/modules/y.ko"),),
        ),
    ],
)
def test_what_cannot_be_asked(job: Job) -> None:
    with pytest.raises(UserError):
        job_text(job)


def test_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        job_archive(Job(("/a",), files=(JobFile(tmp_path / "none", "/none"),)))


def test_more_than_a_guest_can_hold(tmp_path: Path) -> None:
    sizes = {"small": 1, "large": 300, "larger": 400, "middle": 2}
    for name, size_mib in sizes.items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(size_mib << 20)
    carried = tuple(JobFile(tmp_path / name, f"/{name}") for name in sizes)
    with pytest.raises(UserError, match="have 703 MiB, and a guest takes 512 MiB at") as raised:
        job_archive(Job(("/a",), files=carried))
    named = re.findall(r"(\w+) \((\d+) MiB\)", raised.value.message)
    assert named == [("larger", "400"), ("large", "300"), ("middle", "2")]
