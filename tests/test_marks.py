# SPDX-License-Identifier: GPL-2.0-or-later
"""A test is kept to what its marks allow."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.marks import IMPLIED, MARKS, PROGRAMS, Marks, require


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Marks]:
    """Marks on a host that has all the programs, each of which succeeds."""
    real = tmp_path / "real"
    for folder in (real, tmp_path / "stand-ins"):
        folder.mkdir()
    for name in (name for names in PROGRAMS.values() for name in names):
        (real / name).write_text("#!/bin/sh\nexit 0\n")
        (real / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{real}:/usr/bin:/bin")
    found = Marks(tmp_path / "stand-ins")
    yield found
    found.stop()


def succeeds(*argv: str) -> bool:
    return subprocess.run(argv, check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("mark", PROGRAMS)
def test_programs_without_their_mark_fail_and_are_recorded(marks: Marks, mark: str) -> None:
    marks.start({"slow"})
    words = ("-kernel", "x", "/qemu-system-arm")
    assert not any(succeeds(name, *words) for name in PROGRAMS[mark])
    assert marks.stop() == [" ".join([name, *words]) for name in PROGRAMS[mark]]
    assert marks.stop() == []
    assert all(succeeds(name, *words) for name in PROGRAMS[mark])


@pytest.mark.parametrize("mark", PROGRAMS)
def test_programs_with_their_mark_run(marks: Marks, mark: str) -> None:
    marks.start({mark})
    require(mark)
    allowed = {mark, *IMPLIED.get(mark, ())}
    for other, names in PROGRAMS.items():
        assert {succeeds(name, "/qemu-system-arm") for name in names} == {other in allowed}


def test_qemu_without_a_mark_answers_questions_about_itself(marks: Marks) -> None:
    marks.start(())
    assert succeeds("qemu-system-arm", "--version")
    assert succeeds("env", "A=B", "ld.so", "/qemu-system-arm", "--version")
    assert succeeds("env", "-kernel")
    assert succeeds("qemu-system-arm", "-machine", "none", "-plugin", "x")
    assert succeeds("qemu-system-arm", "-nodefaults", "-machine", "virt,dumpdtb=x")
    assert marks.stop() == []


def test_a_missing_mark_is_required_in_vain(marks: Marks) -> None:
    marks.start({"guest"})
    with pytest.raises(pytest.fail.Exception, match="not marked outside"):
        require("outside")


def test_this_suite_is_kept_to_its_marks(request: pytest.FixtureRequest) -> None:
    """This test has no mark: a QEMU that is started as those of a pin fails, and would fail it."""
    words = ("env", "/qemu-system-x86_64", "-kernel", "x")
    assert not succeeds(*words)
    current = request.config.stash[MARKS]
    assert current.stop() == [" ".join(words)]
