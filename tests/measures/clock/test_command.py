# SPDX-License-Identifier: GPL-2.0-or-later
"""Any program of this host, timed as a whole and by its own regions."""

import subprocess
from pathlib import Path

import pytest

from kdelta.host.native import build_part, native_folder
from kdelta.measures.clock.here import command_here, timed_here
from kdelta.measures.clock.results import TimedRun
from kdelta.spec.errors import LabError, UserError
from tests.measures.clock.test_timed_program import PROGRAM


@pytest.fixture(autouse=True)
def _host_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdelta.measures.clock.here.host_target", lambda: None)


def ran(*words: str) -> TimedRun:
    return timed_here(command_here(words, 50.0, lambda _: None))


@pytest.mark.long
def test_it_compiles_without_warnings() -> None:
    assert build_part("clock", strict=True).is_file()


@pytest.mark.long
def test_program_timed_from_start_to_end() -> None:
    found = ran("sh", "-c", "echo words; echo others >&2; sleep 0.05")
    assert list(found.ns) == ["command"]
    assert 50e6 < found.ns["command"] < 50e9


@pytest.mark.long
def test_program_reads_nothing_and_keeps_its_folder(tmp_path: Path) -> None:
    ran("sh", "-c", f'read line; test -z "$line" && pwd >{tmp_path}/pwd')
    assert (tmp_path / "pwd").read_text().strip() == str(Path.cwd())


@pytest.mark.long
def test_program_with_marks_has_its_regions_too(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(PROGRAM)
    flags = ["-O2", "-DKDELTA_TIMED", f"-I{native_folder() / 'include'}"]
    subprocess.run(["gcc", *flags, tmp_path / "a.c", "-o", tmp_path / "a"], check=True)
    found = ran(str(tmp_path / "a"))
    assert list(found.ns) == ['short \\ "ones"', "whole", "command"]
    assert found.ns["command"] > found.ns["whole"] > found.ns['short \\ "ones"']


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("sh", "-c", "echo why >&2; exit 3"),
            "sh: the program failed with exit code 3; it printed: why",
        ),
        (("sh", "-c", "kill -SEGV $$"), "sh: the program was ended by signal 11"),
    ],
)
def test_program_that_fails(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(LabError, match=message):
        ran(*words)


@pytest.mark.long
def test_program_that_the_kernel_does_not_start(tmp_path: Path) -> None:
    odd = tmp_path / "odd"
    odd.write_text("#!/nonesuch\n")
    odd.chmod(0o755)
    with pytest.raises(LabError, match=r"odd: the program failed .*odd: No such file"):
        ran(str(odd))


def test_program_of_another_architecture_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    machine = b"\x28\x00"  # ARM, for which no host is
    header = b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x02\x00" + machine + b"\x01" + bytes(31)
    other.write_bytes(header)
    other.chmod(0o755)
    with pytest.raises(UserError, match="cannot be timed here: it is a program for arm"):
        command_here((str(other),), 1.0, lambda _: None)
