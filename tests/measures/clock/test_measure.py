# SPDX-License-Identifier: GPL-2.0-or-later
"""The clock in a comparison, with guests that are made up: pairs until all is decided."""

import asyncio
import os
import random
import sys
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from kdelta.cpus.catalog import list_cpus
from kdelta.infer.effects.effects import Effects, Word
from kdelta.infer.effects.gate import Exit, decide_gate
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import RunResult
from kdelta.lab.options import Clock, TimedBy
from kdelta.lab.request import LabRequest, Program
from kdelta.lab.work import Work
from kdelta.measures.clock import fit
from kdelta.measures.clock import measure as module
from kdelta.measures.clock.boots import paired, read_folder
from kdelta.measures.clock.guests import ClockGuest
from kdelta.measures.clock.jobs import TimedJob
from kdelta.measures.clock.measure import GuestClock
from kdelta.measures.clock.results import TimedRun, parse_run
from kdelta.measures.clock.settings import HostSettings, host_settings
from kdelta.measures.model import Judgement, MeasureRequest, RunPair, RunSide
from kdelta.spec.errors import KdeltaError, LabError, UserError
from kdelta.spec.run import RunStatus
from kdelta.store.store import Store
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.compare.study import Comparison, run_compare
from kdelta.studies.gate.study import judge
from tests.lab.fake_lab import CostsByName, kernel, never, without_guests
from tests.measures.clock.made_runs import FACTS, content
from tests.report.example import MACHINE, stored

TREE, IMAGE = "tree:/linux +sections", "image:/boot/vmlinuz"
TIMES = {"base": 100.0, "slow": 106.0, "like": 100.0, TREE: 100.0, IMAGE: 100.0}


class Guests:
    """Guests that take what TIMES says, give or take half a per mille; `booted` in their order."""

    def __init__(self) -> None:
        self.booted: list[str] = []
        self.cpus: set[str] = set()
        self._drawn = random.Random(1)

    def boot(self, guest: ClockGuest, kernel: Kernel, image: Path) -> TimedRun:
        self.booted.append(kernel.spec)
        self.cpus.add(guest.machine.cpu)
        ns = TIMES[kernel.spec.partition(" +shuffle")[0]] * self._drawn.uniform(0.9995, 1.0005)
        at = len(self.booted)
        facts = {"boot_id": f"boot-{at}", "when": FACTS["when"] + at, "build_id": kernel.spec}
        return parse_run(content(dict.fromkeys(image.name.split(","), ns), **facts), "guest")


def named_job(work: Work, *_: object) -> TimedJob:
    """Return a job whose content are the names of its operations."""
    return TimedJob(",".join(work.operations).encode(), 1024, 60.0)


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Guests:
    assert own_cache.is_dir()
    without_guests(monkeypatch)
    made = Guests()
    monkeypatch.setattr(module, "timed_boot", made.boot)
    monkeypatch.setattr(module, "guest_compiler", lambda *_: None)
    monkeypatch.setattr(module, "timed_job", named_job)
    monkeypatch.setattr(module, "initramfs_of", lambda job, *_: Path(job.decode()))
    return made


def compared(
    folder: Path,
    other: str,
    clock: Clock = "emulated",
    pairs: int = 30,
    operations: tuple[str, ...] = ("getppid",),
    *,
    links: bool = False,
) -> Comparison:
    lab = CostsByName(dict.fromkeys(TIMES, (never, 0)))
    request = CompareRequest(
        base=TREE if links else "base",
        others=(other,),
        operations=operations,
        timed=TimedBy(clock=clock, most_pairs=pairs, links=links),
        lab=LabRequest(perturbations=3),
    )
    with Store.open(folder / "store") as store:
        (found,) = asyncio.run(run_compare(request, lab.in_store(store)))
    return found


def timed(folder: Path, other: str, clock: Clock = "emulated", pairs: int = 30) -> Judgement:
    (judged,) = compared(folder, other, clock, pairs).judged
    return judged


def test_pairs_end_when_all_is_decided(guests: Guests, tmp_path: Path) -> None:
    judged = timed(tmp_path, "slow")
    (effect,) = judged.found.effects
    assert (effect.region, effect.word) == ("getppid", Word.SLOWER)
    assert effect.reason.startswith("the path is the same: where the linker put the code")
    assert effect.change
    assert 0.05 < effect.change.low < 0.06 < effect.change.high < 0.07
    pairs = [set(guests.booted[at : at + 2]) for at in range(0, len(guests.booted), 2)]
    assert all(one == {"base", "slow"} for one in pairs)
    assert 7 <= len(pairs) < 30
    assert (
        "the guests were emulated: these are QEMU's times, and no hardware's" in judged.found.notes
    )


@pytest.mark.parametrize(("clock", "cpu"), [
    ("emulated", list_cpus()["zen4"].qemu.cpu),
    ("kvm", ""),
])  # fmt: skip
def test_emulated_guests_have_the_cpu_of_the_path(
    guests: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock, cpu: str
) -> None:
    monkeypatch.setattr(module, "why_no_kvm", lambda *_: "")
    timed(tmp_path, "slow", clock)
    assert guests.cpus == {cpu}


@pytest.mark.usefixtures("guests")
@pytest.mark.parametrize(("force", "clock", "is_noted"), [
    ("fsrs ibrs", "emulated", True),
    ("", "emulated", False),
    ("fsrs ibrs", "kvm", False),
])  # fmt: skip
def test_features_forced_for_the_path_alone_are_noted_of_emulated_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: str, clock: Clock, is_noted: bool
) -> None:
    monkeypatch.setattr(module, "why_no_kvm", lambda *_: "")
    monkeypatch.setitem(MACHINE, "force", force)
    notes = timed(tmp_path, "slow", clock).found.notes
    assert any("are not forced in these guests" in one for one in notes) is is_noted


def test_the_order_of_a_pair_is_drawn(guests: Guests, tmp_path: Path) -> None:
    timed(tmp_path, "slow")
    timed(tmp_path / "again", "slow")
    firsts = guests.booted[::2]
    assert {"base", "slow"} == set(firsts)  # one case in 8,192 draws only one


def test_same_within_the_margin(guests: Guests, tmp_path: Path) -> None:
    assert guests
    (effect,) = timed(tmp_path, "like").found.effects
    assert (effect.word, effect.reason) == (Word.SAME, "no difference")
    assert effect.bounded


def test_budget_of_pairs_ends_unresolved(guests: Guests, tmp_path: Path) -> None:
    (effect,) = timed(tmp_path, "slow", pairs=3).found.effects
    assert effect.word is Word.UNRESOLVED
    assert effect.reason.startswith("3 pairs of boots do not decide")
    assert not effect.bounded
    assert len(guests.booted) == 6


def test_what_guests_said_is_kept_for_judge(
    guests: Guests, own_cache: Path, tmp_path: Path
) -> None:
    timed(tmp_path, "slow", pairs=2)
    (study,) = (own_cache / "clock").iterdir()
    expected = msgspec.json.decode((study / "expected.json").read_bytes())
    assert expected == {
        "getppid": {"path": "same", "cycles": None, "as_linked": None, "change": 0.0}
    }
    base, other = (read_folder(study / side) for side in ("base", "other"))
    assert len(paired(base, other).pairs) == 2
    assert {one.facts.build_id for one in base} == {"base"}
    assert len(guests.booted) == 4


def test_guests_without_a_clock_of_the_date_are_paired_as_booted(
    guests: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boot(*args: object) -> TimedRun:
        run = guests.boot(*args)  # type: ignore[arg-type]
        facts = msgspec.structs.replace(run.facts, when=3, boot_id="")
        return msgspec.structs.replace(run, facts=facts)

    monkeypatch.setattr(module, "timed_boot", boot)
    (effect,) = timed(tmp_path, "slow").found.effects
    assert effect.word is Word.SLOWER


def test_operation_that_guests_leave_out_is_named(
    guests: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boot(guest: ClockGuest, kernel: Kernel, _: Path) -> TimedRun:
        return guests.boot(guest, kernel, Path("stat"))

    monkeypatch.setattr(module, "timed_boot", boot)
    notes = timed(tmp_path, "like", pairs=2).found.notes
    assert "not timed: getppid" in notes


def test_operation_in_which_the_clock_jumped_is_named(
    guests: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boot(guest: ClockGuest, kernel: Kernel, image: Path) -> TimedRun:
        run = guests.boot(guest, kernel, image)
        return msgspec.structs.replace(run, jumped=("stat",))

    monkeypatch.setattr(module, "timed_boot", boot)
    assert "left out where the clock jumped: stat" in timed(tmp_path, "like", pairs=2).found.notes


@pytest.mark.parametrize("error", [LabError, UserError])
def test_a_guest_that_times_nothing_loses_no_comparison(
    error: type[KdeltaError], guests: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert guests

    def hangs(*_: object) -> TimedRun:
        raise error("6.12 was booted and timed nothing: Kernel panic")

    monkeypatch.setattr(module, "timed_boot", hangs)
    judged = timed(tmp_path, "slow")
    assert judged.found.effects == ()
    assert judged.found.notes == ("not timed: 6.12 was booted and timed nothing: Kernel panic",)


def test_guest_that_fails_late_loses_no_pair_before_it(
    guests: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boot(guest: ClockGuest, kernel: Kernel, image: Path) -> TimedRun:
        if len(guests.booted) == 9:
            raise LabError("the guest is damaged")
        return guests.boot(guest, kernel, image)

    monkeypatch.setattr(module, "timed_boot", boot)
    found = timed(tmp_path, "slow", pairs=6).found
    assert [one.word for one in found.effects] == [Word.UNRESOLVED]
    assert "4 pairs of boots, each in an order that was drawn" in found.notes
    assert "pair 5 was not timed, and is the last: the guest is damaged" in found.notes


def test_gate_that_got_no_times_cannot_tell(
    guests: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boot(guest: ClockGuest, kernel: Kernel, _: Path) -> TimedRun:
        return guests.boot(guest, kernel, Path("stat"))

    monkeypatch.setattr(module, "timed_boot", boot)
    decision = decide_gate(tuple(judge(compared(tmp_path, "like", pairs=2), Fraction(0))))
    assert decision.exit is Exit.CANNOT_TELL
    assert decision.because == ("getppid by the clock: its times are not known",)


def test_of_all_operations_that_are_equal_a_sample_is_timed(
    guests: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert guests
    monkeypatch.setattr(fit, "SAMPLE", 1)
    found = compared(tmp_path, "like", operations=())
    (judged,) = found.judged
    (timed_one,) = judged.found.effects
    assert found.effects
    names = {one.name for one in found.effects.operations}
    assert names == {timed_one.region, *judged.found.left_out}
    assert len(judged.found.left_out) == 2
    assert any("not timed: " in one for one in judged.found.notes)
    assert decide_gate(tuple(judge(found, Fraction(0)))).exit is Exit.NOT_SLOWER


def test_settings_of_the_host_are_recorded_and_named(
    guests: Guests, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert guests
    host = HostSettings(1, "schedutil", "1", "", "on", 3.0)
    monkeypatch.setattr(module, "host_settings", lambda: host)
    monkeypatch.setattr(module, "why_no_kvm", lambda *_: "")
    notes = timed(tmp_path, "like", clock="kvm", pairs=2).found.notes
    words = [one.split(",")[0] for one in notes[:4]]
    assert words[0].startswith("the load was 3.00")
    assert words[1] == "the cpufreq governor is schedutil"
    assert notes[2].startswith("boost is on")
    assert notes[3].startswith("SMT is on")
    (study,) = (own_cache / "clock").iterdir()
    assert msgspec.json.decode((study / "host.json").read_bytes(), type=HostSettings) == host
    assert not any("SMT" in one for one in timed(tmp_path / "b", "like", pairs=2).found.notes)


def test_settings_are_those_of_the_cpu_that_guests_keep_to(tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    for name, text in (
        (f"cpu{cpu}/cpufreq/scaling_governor", "powersave\n"), ("smt/control", "off\n"),
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    found = host_settings(tmp_path)
    assert (found.cpu, found.governor, found.smt, found.boost) == (cpu, "powersave", "off", "")


def test_program_is_timed_with_the_files_that_its_counted_runs_have(
    guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Program(command=(sys.executable, "own.py"), find=True)
    names, timed_with = ("n/own.py",), []

    async def found(work: Work, *_: object) -> Work:
        return msgspec.structs.replace(work, program=msgspec.structs.replace(program, names=names))

    def job(work: Work, *_: object) -> TimedJob:
        timed_with.append(work.program and work.program.names)
        return TimedJob(b"command", 1024, 60.0)

    monkeypatch.setattr(module, "with_found_files", found)
    monkeypatch.setattr(module, "timed_job", job)
    work = Work(program=program)
    done = RunResult(msgspec.structs.replace(stored(0, RunStatus.OK), workload=work.name), None)
    base, other = (RunSide(name, kernel(name), (done,)) for name in ("base", "like"))
    clock = GuestClock(MeasureRequest(timed=TimedBy(clock="emulated", most_pairs=2), works=(work,)))
    asyncio.run(clock.measure(CostsByName({}), RunPair(base, other, Effects((), ()))))
    assert timed_with == [names, names]
    assert guests.booted


def test_each_boot_has_a_link_of_its_own(guests: Guests, tmp_path: Path) -> None:
    found = compared(tmp_path, TREE, pairs=5, links=True)
    assert found.effects
    assert len(guests.booted) == len(set(guests.booted)) == 10
    assert all(one.startswith(f"{TREE} +shuffle:") for one in guests.booted)


def test_links_of_a_kernel_that_is_built_are_refused(guests: Guests, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is built already: --links cannot link it"):
        compared(tmp_path, IMAGE, links=True)
    assert guests.booted == []


def test_no_kvm_is_refused_before_any_run(
    guests: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "why_no_kvm", lambda *_: "there is no /dev/kvm")
    with pytest.raises(UserError, match="KVM cannot be used: there is no /dev/kvm"):
        timed(tmp_path, "slow", clock="kvm")
    assert guests.booted == []


@pytest.mark.parametrize("clock", ["kvm", "emulated"])
def test_kernel_that_cannot_be_timed_is_refused_before_any_run(
    clock: Clock, guests: Guests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def must_be_timeable(kernel: Kernel, cpu: str) -> None:
        asked.append(kernel.spec + cpu)
        if kernel.spec == "slow":
            raise UserError("no serial port")

    monkeypatch.setattr(module, "must_be_timeable", must_be_timeable)
    monkeypatch.setattr(module, "why_no_kvm", lambda *_: "it must not be looked for yet")
    with pytest.raises(UserError, match="no serial port"):
        timed(tmp_path, "slow", clock=clock)
    assert (asked, guests.booted) == (["base", "slow"], [])


def test_options_of_a_clock_without_one_are_refused() -> None:
    for asked in (TimedBy(most_pairs=3), TimedBy(margin=Fraction(1, 50)), TimedBy(links=True)):
        with pytest.raises(UserError, match="are of a clock, and none is named"):
            asked.check()
    TimedBy().check()
    TimedBy(clock="emulated", most_pairs=3).check()
