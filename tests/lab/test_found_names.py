# SPDX-License-Identifier: GPL-2.0-or-later
"""The names that a program asked for: kept, used again, and what is reported, without a guest."""

import asyncio
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from kdelta.guests.job import Job
from kdelta.kernels.model import Kernel
from kdelta.lab import found
from kdelta.lab.program import GUEST_PATH, program_work, working_folder
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest, Program
from kdelta.lab.unseen import UNTOUCHED, UnseenContentError, must_have_seen
from kdelta.lab.work import Work
from kdelta.machines.outcome import GuestOutcome
from kdelta.spec.errors import UserError
from kdelta.spec.run import RunStatus
from tests.conftest import FakeProgram
from tests.guests.cpio_reader import read
from tests.lab.fake_lab import FakeLab

X86 = Kernel("0" * 64, "tree:/linux", "vmlinux", "x86_64", "6.12")
OLD = msgspec.structs.replace(X86, identity="1" * 64, release="4.19")
LAB = LabRequest()


class Heard(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def log(self, line: str) -> None:
        self.lines.append(line)


class AskingGuests(FakeLab):
    """Stands in for the lab: programs ask for `names` on kernels since 5.3."""

    def __init__(self) -> None:
        self.heard = Heard()
        super().__init__(progress=self.heard)
        self.names: list[str] = []
        self.also: dict[str, list[str]] = {}
        self.asked_on: list[str] = []
        self.got: list[list[str]] = []
        self.ended = RunStatus.WORKLOAD_FAILED

    def guest(self, kernel: Kernel, *_: object) -> Any:
        facts = {"kernel": kernel.identity, "cpus": self.request.machine.cpus}
        return SimpleNamespace(snapshot_facts=lambda: facts)

    async def answered(
        self, kernel: Kernel, _: object, answer: Callable[[str], bytes]
    ) -> GuestOutcome:
        self.asked_on.append(kernel.release)
        if kernel.release == OLD.release:
            return self._ended({"not-found": b"it is too old"})
        names = (*self.names, *self.also.get(kernel.release, ()))
        self.got = [[row[0] for row in read(answer(name))] for name in names]
        return self._ended({})

    def _ended(self, messages: dict[str, bytes]) -> GuestOutcome:
        return GuestOutcome(self.ended, "exit 1", "", 1.0, messages)


@pytest.fixture
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AskingGuests:
    made = AskingGuests()
    (tmp_path / "found").mkdir()
    (tmp_path / "place").mkdir()
    monkeypatch.chdir(tmp_path / "place")
    monkeypatch.setattr(found, "names_folder", lambda: tmp_path / "found")
    monkeypatch.setattr(found, "build_part", lambda *_, **__: Path("/bin/true"))
    monkeypatch.setattr(found, "guest_compiler", lambda *_: None)
    return made


def work_with_files(guests: AskingGuests, program: Program, *kernels: Kernel) -> Program | None:
    return asyncio.run(found.with_found_files(Work(program=program), kernels, guests)).program


def carried(program: Program | None) -> dict[str, str]:
    assert program
    place = f"{Path.cwd()}/"
    job = program_work(program, X86, LAB).job
    below = (one for one in job.found if one.path.startswith(place))
    return {one.path.removeprefix(place): one.word for one in below}


def test_names_are_used_again_until_the_host_has_others(guests: AskingGuests) -> None:
    place = Path.cwd()
    (place / "here").write_text("1")
    guests.names = [f"c{place}/here", f"s{place}/absent", "c/proc/self/maps"]
    program = Program(("true",))
    first = work_with_files(guests, program, X86)
    assert first
    assert first.names == tuple(guests.names)
    assert [bool(names) for names in guests.got] == [True, False, False]
    assert any(line.startswith("true gets 1 files of this host") for line in guests.heard.lines)
    assert work_with_files(guests, program, X86) == first
    assert len(guests.asked_on) == 1
    assert carried(first) == {"here": "content"}
    (place / "absent").write_text("2")
    assert carried(work_with_files(guests, program, X86)) == {"here": "content", "absent": "size"}
    assert len(guests.asked_on) == 2
    assert work_with_files(guests, program, X86)
    assert len(guests.asked_on) == 2
    (place / "here").write_text("11")
    assert work_with_files(guests, program, X86)
    assert len(guests.asked_on) == 3
    # Another command, or another folder, is another program.
    assert work_with_files(guests, Program(("true", "x")), X86)
    assert len(guests.asked_on) == 4


def test_each_guest_is_asked_and_all_get_the_files_of_any(guests: AskingGuests) -> None:
    """A program may ask by the kernel's version, or by how many CPUs or how much memory it has."""
    place = Path.cwd()
    for name in ("small", "big"):
        (place / name).write_text(name)
    newer = msgspec.structs.replace(X86, identity="2" * 64, release="6.18")
    guests.names = [f"c{place}/small", f"s{place}/big"]
    guests.also = {"6.18": [f"c{place}/big"]}
    program = Program(("true",))
    assert carried(work_with_files(guests, program, X86)) == {"small": "content", "big": "size"}
    both = {"small": "content", "big": "content"}
    assert carried(work_with_files(guests, program, X86, newer)) == both
    assert guests.asked_on == ["6.12", "6.18"]
    assert carried(work_with_files(guests, program, X86)) == both
    machine = msgspec.structs.replace(LAB.machine, cpus=2)
    of_two = guests.with_request(msgspec.structs.replace(LAB, machine=machine))
    work_with_files(of_two, program, X86)
    assert guests.asked_on == ["6.12", "6.18", "6.12"]


class Reads:
    """A study whose program reads, in each round, one more file that it has without content."""

    def __init__(self, *paths: str) -> None:
        self.paths = list(paths)
        self.carried: list[dict[str, str]] = []

    @found.in_rounds
    async def study(self, lab: AskingGuests) -> str:
        work = await found.with_found_files(Work(program=Program(("true",))), [X86], lab)
        assert work.program
        job = program_work(work.program, X86, LAB).job
        self.carried.append(carried(work.program))
        holes = [one.path for one in job.found if one.is_hole]
        read = [path for path in self.paths if path in holes]
        if read:
            left = "".join(f"{path}\0" for path in holes if path != read[0]).encode()
            outcome = GuestOutcome(RunStatus.OK, "", "", 1.0, {UNTOUCHED: left})
            raise ExceptionGroup("runs", [_unseen(outcome, job, work.program)])
        return "done"


def _unseen(outcome: GuestOutcome, job: Job, program: Program) -> UnseenContentError:
    with pytest.raises(UnseenContentError) as caught:
        must_have_seen(outcome, job.found, program.record)
    return caught.value


def test_file_that_is_read_in_a_run_is_carried_and_each_round_brings_more(
    guests: AskingGuests,
) -> None:
    place = Path.cwd()
    names = ("a/1", "a/2", "b/3", "b/4", "c/5")
    for name in names:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(name)
    guests.names = [f"s{place}/{name}" for name in names]
    reads = Reads(*(f"{place}/{name}" for name in ("a/1", "b/3", "c/5")))
    assert asyncio.run(reads.study(guests)) == "done"
    contents = [{name for name, word in one.items() if word == "content"} for one in reads.carried]
    assert contents == [set(), {"a/1"}, {"a/1", "b/3", "b/4"}, set(names)]
    assert len(guests.asked_on) == 1
    assert any(f"read {place}/a/1, and had only asked" in line for line in guests.heard.lines)
    again = Reads(*reads.paths)
    assert asyncio.run(again.study(guests)) == "done"
    assert len(again.carried) == 1
    # What the host has changed: what was read is forgotten, too.
    (place / "a/1").write_text("other")
    assert carried(work_with_files(guests, Program(("true",)), X86))["c/5"] == "size"


def test_file_that_is_read_without_content_in_every_round_is_named(
    guests: AskingGuests, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Path.cwd()
    (place / "text").write_text("1")
    guests.names = [f"s{place}/text"]
    monkeypatch.setattr(found, "_remember", lambda *_: None)
    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(Reads(f"{place}/text").study(guests))
    (error,) = caught.value.exceptions
    assert isinstance(error, UserError)
    assert f"read {place}/text" in error.message
    assert error.hint == f"--file {place}/text adds it"


def test_study_that_failed_for_another_reason_as_well_is_not_begun_again(
    guests: AskingGuests,
) -> None:
    rounds = []

    @found.in_rounds
    async def study(_: AskingGuests) -> None:
        rounds.append(1)
        unseen = UnseenContentError(["/text"], ["/text"], Path.cwd() / "record")
        raise ExceptionGroup("runs", [unseen, UserError("another one")])

    with pytest.raises(ExceptionGroup, match="runs"):
        asyncio.run(study(guests))
    assert len(rounds) == 1


def test_a_kernel_that_cannot_find_files_is_passed_over(guests: AskingGuests) -> None:
    guests.names = ["s/etc"]
    found_on = work_with_files(guests, Program(("true",)), OLD, X86)
    assert found_on
    assert found_on.names == ("s/etc",)
    assert guests.asked_on == ["4.19", "6.12"]
    assert "not looked for on 4.19: it is too old; --file PATH adds one" in " ".join(
        guests.heard.lines
    )
    assert work_with_files(guests, Program(("ls",)), OLD) == Program(("ls",))


def test_without_finding_nothing_is_asked_and_the_folder_is_the_root(guests: AskingGuests) -> None:
    program = Program(("true",), find=False)
    assert work_with_files(guests, program, X86) == program
    assert guests.asked_on == []
    job = program_work(program, X86, LAB).job
    assert (job.cwd, job.found) == ("/", ())


def test_what_is_given_wins_and_what_is_left_out_is_named(
    guests: AskingGuests, tmp_path: Path
) -> None:
    place = Path.cwd()
    (place / "text").write_text("the host's")
    (tmp_path / "other").write_text("another")
    (place / ".netrc").write_text("secret")
    guests.names = [f"c{place}/text", f"c{place}/.netrc", "c/x\udcff", "c/x\ny"]
    given = (f"{tmp_path}/other:{place}/text",)
    program = work_with_files(guests, Program(("true",), given), X86)
    assert program
    assert program.names == tuple(guests.names[:2])
    job = program_work(program, X86, LAB).job
    assert (tmp_path / "other", f"{place}/text") in [(one.host, one.guest) for one in job.files]
    assert carried(program) == {}
    secret = f"{place}/.netrc"
    assert f"left out {secret}: it may be a secret; --file {secret} adds it" in guests.heard.lines


def test_file_of_any_printed_name_is_carried_and_others_are_named(guests: AskingGuests) -> None:
    place = Path.cwd()
    odd = ("zero\u200dwidth", "no\u00a0break", "\u202eright")
    for name in (*odd, "not\udcffutf", "line\nend"):
        (place / name).write_text("here")
    guests.names = [f"c{place}/{name}" for name in (*odd, "not\udcffutf", "line\nend")]
    program = work_with_files(guests, Program(("true",)), X86)
    assert carried(program) == dict.fromkeys(odd, "content")
    said = "its name is not UTF-8, or has control characters"
    assert f"left out {place}/not\\xffutf: {said}" in guests.heard.lines
    assert f"left out {place}/line\nend: {said}" in guests.heard.lines


def test_a_guest_has_the_working_folder(
    guests: AskingGuests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = work_with_files(guests, Program(("true",)), X86)
    assert program
    job = program_work(program, X86, LAB).job
    assert job.cwd == str(Path.cwd())
    folder = next(one for one in job.found if one.path == job.cwd)
    assert stat.S_ISDIR(folder.mode)
    monkeypatch.chdir("/proc")
    assert working_folder() == "/"
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert working_folder() == "/"


def test_a_program_without_end_is_not_run_a_second_time(guests: AskingGuests) -> None:
    guests.names, guests.ended = ["n/nosuch"], RunStatus.TIMED_OUT
    with pytest.raises(UserError, match="true did not end while its files were looked for") as one:
        work_with_files(guests, Program(("/bin/true",)), X86)
    assert "--timeout" in one.value.hint
    assert "--no-find" in one.value.hint
    assert "network" in one.value.hint
    assert not any(found.names_folder().iterdir())


def test_too_many_bytes_end_the_study(
    guests: AskingGuests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdelta.guests.host_files.MAX_BYTES", 3)
    (Path.cwd() / "large").write_text("four")
    guests.names = [f"c{Path.cwd()}/large"]
    with pytest.raises(UserError, match="large"):
        work_with_files(guests, Program(("true",)), X86)


def test_a_script_on_the_path_is_named_with_the_program_without_it(
    guests: AskingGuests, fake_program: FakeProgram
) -> None:
    path = fake_program("ls", "#!/bin/sh\n")
    work_with_files(guests, Program(("ls",)), X86)
    work_with_files(guests, Program((str(path),)), X86)
    work_with_files(guests, Program(("true",)), X86)
    said = [line for line in guests.heard.lines if " is the script " in line]
    other = shutil.which("ls", path=GUEST_PATH)
    assert said == [
        f"ls is the script {path}, whose interpreter is counted as well; without that: -- {other}"
    ]


def test_large_files_get_a_guest_with_more_memory(
    guests: AskingGuests, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = Path.cwd() / "large"
    large.write_bytes(bytes(3 << 20))
    guests.names = [f"c{large}"]
    program: Any = work_with_files(guests, Program(("true",)), X86)
    assert program_work(program, X86, LAB).memory_mib == 0
    monkeypatch.setattr("kdelta.lab.program._USUAL_BYTES", 1 << 20)
    assert program_work(program, X86, LAB).memory_mib == 2048
