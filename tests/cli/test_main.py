# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands, as a user calls them; studies are replaced, guests are not booted here."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import BinaryIO

import msgspec
import pytest

from kdelta import __version__
from kdelta.cli import doctor
from kdelta.cli import main as cli
from kdelta.cpus import CPU, list_cpus, load_cpu
from kdelta.host.command import run
from kdelta.host.doctor import Check
from kdelta.infer.placement_model import Code
from kdelta.kernels.model import Kernel
from kdelta.report.json import JsonCompare, JsonRunReport, JsonRuns
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.run import MachineOptions, RunStatus
from kdelta.store.model import NewRun
from kdelta.store.store import Store
from kdelta.studies.compare import Comparison, Side
from kdelta.studies.cycles import Cycles
from kdelta.studies.lab import Done
from kdelta.studies.requests import CompareRequest, LabRequest, Progress, RunRequest
from tests.report.example import base_counts, other_counts, report
from tests.report.example_cycles import cycle_effects

Captured = pytest.CaptureFixture[str]


def kdelta(*arguments: str) -> int:
    """Runs a command in this process; returns its exit code."""
    return cli.ended(arguments)


def make_run(store: Store, status: RunStatus, index: int = 0, **more: object) -> Done:
    counts = base_counts(index) if status is RunStatus.OK else None
    new = NewRun(
        key=f"key {index}",
        kernel_identity="a" * 64,
        kernel_spec="deb:linux-image-a",
        kernel_release="6.1.0-a",
        machine={"name": "tcg", "memory_mib": 1024},
        workload="syscalls",
        workload_identity="b" * 64,
        perturbation=index,
    )
    run_id = store.start_run(new)
    made = store.finish_run(
        run_id,
        status,
        counts=counts,
        console="".join(f"console {line}\n" for line in range(30)),
        attachments={"stdout": b"hello\n", "cpuinfo": b"model name\t: QEMU CPU\nflags\t: erms\n"},
        **more,  # type: ignore[arg-type]
    )
    return Done(made, counts)


def _on(cpu: CPU, comparison: Comparison) -> Comparison:
    effects = cycle_effects(report().others[0].effects, cpu.name)
    cycles = Cycles(effects, {"uname": Code.RELINKED})
    return msgspec.structs.replace(comparison, cpu=cpu, cycles=cycles)


class Studies:
    """Stands in for the studies: notes what was asked for, and makes runs without a guest."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[CompareRequest | RunRequest] = []
        self.error: BaseException | None = None
        monkeypatch.setattr("kdelta.cli.compare.run_compare", self.compare)
        monkeypatch.setattr("kdelta.cli.main.run_command", self.command)

    async def compare(
        self, request: CompareRequest, store: Store, progress: Progress
    ) -> tuple[Comparison, ...]:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        progress.begin("boot 6.1.0-a")
        progress.doing("boot 6.1.0-a", "waiting until it is quiet")
        progress.end("boot 6.1.0-a", "ready")
        done = tuple(make_run(store, RunStatus.OK, index) for index in range(3))
        bad = (make_run(store, RunStatus.BOOT_FAILED, 3, detail="panic: oops"),)
        others = tuple(
            msgspec.structs.replace(one, counts=other_counts(index))
            for index, one in enumerate(done)
        )
        kernel = Kernel("a" * 64, request.base, "/vmlinuz", "x86_64", "6.1.0-a")
        sides = Side(request.base, kernel, done), Side(request.base, kernel, others + bad)
        comparison = Comparison("syscalls", sides[0], sides[1], None)
        return tuple(_on(cpu, comparison) for cpu in request.cpus) or (comparison,)

    async def command(
        self, request: RunRequest, store: Store, progress: Progress
    ) -> tuple[Done, ...]:
        self.asked.append(request)
        progress.say("a line")
        return tuple(
            make_run(store, RunStatus.OK, index) for index in range(request.lab.perturbations)
        )


@pytest.fixture
def studies(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Studies:
    assert own_cache.is_dir()
    return Studies(monkeypatch)


def test_version_and_help(capsys: Captured) -> None:
    assert kdelta("--version") == 0
    assert capsys.readouterr().out == f"kdelta {__version__}\n"
    commands = "compare gate run ablate build kernels runs show workloads doctor"
    for command in commands.split():
        assert kdelta(command, "--help") == 0
        shown = capsys.readouterr().out
        assert f"Usage: kdelta {command}" in shown
        assert shown.isascii()
        assert max(len(line) for line in shown.splitlines()) <= 80


def test_compare_prints_the_report_to_stdout_and_the_talk_to_stderr(
    studies: Studies, capsys: Captured
) -> None:
    assert kdelta("compare", "deb:linux-image-a", "deb:linux-image-b") == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("kdelta compare: workload syscalls")
    assert "open-close               3209.27    3031.15    -178.12" in shown.out
    assert "boot-failed: panic: oops" in shown.out
    assert "    | console 29\n" in shown.out
    assert "CPU      QEMU CPU\n" in shown.out
    assert shown.err.startswith("boot 6.1.0-a ...\nboot 6.1.0-a: ready (")
    assert studies.asked == [
        CompareRequest(
            base="deb:linux-image-a",
            others=("deb:linux-image-b",),
            lab=msgspec.structs.replace(LabRequest(), jobs=studies.asked[0].lab.jobs),
        )
    ]
    assert studies.asked[0].lab.jobs >= 1


def test_a_step_says_how_long_it_took_before(
    studies: Studies, own_cache: Path, capsys: Captured
) -> None:
    (own_cache / "timings.json").write_text('{"boot 6.1.0-a": 7.4}')
    assert kdelta("compare", "deb:linux-image-a", "deb:linux-image-b") == 0
    assert "boot 6.1.0-a ... (about 7 s)\n" in capsys.readouterr().err
    assert studies.asked


def test_every_option_reaches_the_study(studies: Studies) -> None:
    code = kdelta(
        *("compare", "image:a", "image:b", "image:c", "-w", "w", "-o", "x", "-o", "y"),
        *("--perturb", "5", "--again", "--no-snapshot", "-j", "7", "--memory", "512"),
        *("--qemu-cpu", "max", "--append", "quiet", "--timeout", "9", "--explain", "0"),
    )
    assert code == 0
    assert studies.asked == [
        CompareRequest(
            base="image:a",
            others=("image:b", "image:c"),
            workload="w",
            operations=("x", "y"),
            lab=LabRequest(
                machine=MachineOptions(
                    memory_mib=512, cpu="max", append="quiet", timeout_seconds=9
                ),
                perturbations=5,
                jobs=7,
                again=True,
                snapshots=False,
            ),
        )
    ]


def test_a_cpu_is_named_more_than_once_for_compare(studies: Studies) -> None:
    cpus = ("--cpu", "zen3", "--cpu", "skylake-server", "--cpu", "zen3")
    more = ("--layouts", "16", "--margin", "0.5")
    assert kdelta("compare", "image:a", "image:b", *cpus, *more) == 0
    (request,) = studies.asked
    assert isinstance(request, CompareRequest)
    assert [cpu.name for cpu in request.cpus] == ["zen3", "skylake-server"]
    assert (request.layouts, request.margin) == (16, 0.005)
    assert request.lab.machine == MachineOptions()


def test_a_front_end_is_replayed_only_if_it_is_asked_for(
    studies: Studies, capsys: Captured
) -> None:
    asked = ("compare", "image:a", "image:b")
    assert kdelta(*asked, "--cpu", "zen3", "--cpu", "generic-x86-64") == 0
    assert kdelta(*asked, "--cpu", "zen3", "--front-end") == 0
    without, within = studies.asked
    assert isinstance(without, CompareRequest)
    assert isinstance(within, CompareRequest)
    assert [cpu.front_end for cpu in without.cpus] == [None, None]
    assert within.cpus == (load_cpu("zen3"),)
    for words, error in (
        ((), "cannot replay a front end: no CPU is named"),
        (("--cpu", "generic-x86-64"), "the CPU generic-x86-64 describes none"),
    ):
        assert kdelta(*asked, *words, "--front-end") == 2
        assert error in capsys.readouterr().err


def test_both_verdicts_and_what_was_not_as_on_the_cpu(studies: Studies, capsys: Captured) -> None:
    arguments = ("compare", "image:a", "image:b", "--cpu", "zen3")
    assert kdelta(*arguments) == 0
    shown = capsys.readouterr().out
    assert "priced   zen3 (AMD Zen 3: EPYC 7003); prices of misses are intervals" in shown
    assert "never\n         calibrated: l1i, itlb\n" in shown
    block = shown[shown.index("\nuname") :]
    assert "  path same, exactly, of the same code linked anew\n  model cycles place" in block
    assert re.search(r"\n  l1i misses +5.14 +4.45 +-0.69 .* p88 .* p6\n", shown)
    # The guest's flags have erms and nothing else.
    assert "[1] base and other: strings moved by the byte (ERMS)" not in shown
    assert re.search(r"\nopen-close( \[\d\])+\n  path faster", shown)
    assert "(no fsrm)" in shown
    assert kdelta(*arguments, "--json") == 0
    document = msgspec.json.decode(capsys.readouterr().out, type=JsonCompare)
    (machine,) = document.machines
    assert machine.cpu
    assert machine.cpu.name == "zen3"
    cycles = machine.others[0].cycles
    assert cycles
    assert cycles.relinked == ["uname"]
    assert {one.kernels == ["base", "other"] for one in cycles.unlike} == {True}
    assert len(studies.asked) == 2


def test_a_cpu_sets_the_machine_of_a_run(studies: Studies, tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    text = (resources.files("kdelta.cpus") / "zen3.toml").read_text()
    own.write_text(text.replace('name = "zen3"', 'name = "mine"').replace("EPYC-Milan", "EPYC"))
    assert kdelta("run", "image:a", "--cpu", "icelake-server", "--append", "x", "--", "ls") == 0
    assert kdelta("run", "image:a", "--cpu", str(own), "--", "ls") == 0
    assert kdelta("run", "image:a", "--cpu", "generic-x86-64", "--", "ls") == 0
    named, mine, generic = (request.lab.machine for request in studies.asked)
    qemu = list_cpus()["icelake-server"].qemu
    assert (named.cpu, named.append) == (qemu.cpu, f"{qemu.append} x".strip())
    assert named.cpu
    assert mine.cpu.startswith("EPYC,")
    assert generic == MachineOptions()


def test_compare_as_json(studies: Studies, capsys: Captured) -> None:
    assert kdelta("compare", "deb:linux-image-a", "deb:linux-image-b", "--json") == 0
    document = msgspec.json.decode(capsys.readouterr().out, type=JsonCompare)
    (machine,) = document.machines
    assert [one.status for one in machine.others[0].kernel.runs] == ["ok"] * 3 + ["boot-failed"]
    assert studies.asked


def test_run_takes_a_command_with_options_of_its_own(studies: Studies, capsys: Captured) -> None:
    code = kdelta(
        "run", "image:a", "--file", "/etc/hosts", "--seconds", "5", "--", "ls", "-l", "-j"
    )
    assert code == 0
    request = studies.asked[0]
    assert isinstance(request, RunRequest)
    assert (request.kernel, request.command) == ("image:a", ("ls", "-l", "-j"))
    assert (request.files, request.seconds) == (("/etc/hosts",), 5)
    assert request.lab.perturbations == 1
    shown = capsys.readouterr()
    assert "standard output\n    | hello\n" in shown.out
    assert shown.err == "a line\n"


def test_run_as_json(studies: Studies, capsys: Captured) -> None:
    assert kdelta("run", "image:a", "--json", "--", "true") == 0
    document = msgspec.json.decode(capsys.readouterr().out, type=JsonRunReport)
    assert document.stdout == "hello\n"
    assert studies.asked


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare"], "Missing argument 'BASE"),
        (["compare", "deb:linux-a"], "nothing to compare with"),
        (["compare", "deb:linux-a", "+fix.patch"], "deb:linux-a"),
        (["compare", "+fix.patch"], "a change without a kernel: +fix.patch"),
        (["run", "deb:a"], "Missing argument"),
        (["ablate", "deb:lin", "--from", "a", "--to", "b"], "not a source tree: deb:lin"),
        (["ablate", "./a", "./b", "--from", "a", "--to", "b"], "more than one tree"),
        (["ablate", "./a"], "Missing option '--from'"),
        (["kernels", "nonesuch"], "no built kernel is called 'nonesuch'"),
        (["build", "./nonesuch"], "./nonesuch"),
        (["compare", "a", "b", "--perturb", "0"], "Invalid value for '--perturb'"),
        (["compare", "a", "b", "--frobnicate"], "No such option"),
        (["compare", "image:a", "image:b", "--cpu", "max"], "no CPU is called 'max'"),
        (["compare", "image:a", "image:b", "--cpu", "max"], "--qemu-cpu takes QEMU's own names"),
        (["compare", "image:a", "image:b", "--cpu", "zen"], "there is: zen4, zen3, zen2"),
        (
            ["compare", "image:a", "image:b", "--cpu", "./nowhere.toml"],
            "nowhere.toml cannot be read",
        ),
        (["compare", "image:a", "image:b", "--cpu", "zen3", "--qemu-cpu", "max"], "at once"),
        (["compare", "image:a", "image:b", "--margin", "0"], "a margin of 0 %"),
        (["compare", "image:a", "image:b", "--margin", "inf"], "a margin of inf %"),
        (["compare", "image:a", "image:b", "--layouts", "1"], "Invalid value for '--layouts'"),
        (["run", "a", "--cpu", "max", "--", "ls"], "no CPU is called 'max'"),
        (["run", "a", "--cpu", "cortex-a9", "--", "ls"], "arm"),
        (["ablate", "./a", "--from", "a", "--to", "b", "--cpu", "max"], "no CPU is called 'max'"),
        (["frobnicate"], "No such command"),
    ],
)
def test_usage(arguments: list[str], words: str, capsys: Captured) -> None:
    assert kdelta(*arguments) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""


def test_runs_and_show(own_data: Path, capsys: Captured) -> None:
    assert kdelta("runs") == 0
    assert capsys.readouterr().out.startswith("no runs yet")
    with Store.open(own_data) as store:
        good = make_run(store, RunStatus.OK).run
        bad = make_run(store, RunStatus.TIMED_OUT, 1, detail="no end after 600 s").run
    assert kdelta("runs") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [bad.id[:8], good.id[:8]]
    assert "timed-out       6.1.0-a" in lines[1]
    assert kdelta("runs", "--json", "-n", "1") == 0
    listed = msgspec.json.decode(capsys.readouterr().out, type=JsonRuns)
    assert [run.id for run in listed.runs] == [bad.id]

    assert kdelta("show") == 0
    shown = capsys.readouterr().out
    assert "status   timed-out: no end after 600 s" in shown
    assert "    | console 18\n" in shown
    assert "console 17\n" not in shown
    assert kdelta("show", "--console") == 0
    assert capsys.readouterr().out.startswith("console 0\n")
    assert kdelta("show", good.id[:6], "-o", "open-close") == 0
    assert "open-close: instructions an iteration" in capsys.readouterr().out
    assert kdelta("show", good.id, "--json") == 0
    document = msgspec.json.decode(capsys.readouterr().out, type=JsonRunReport)
    assert document.run.id == good.id
    assert kdelta("show", "zzz") == 2
    assert capsys.readouterr().err == (
        "kdelta: no run is called 'zzz'\nhint: kdelta runs lists them\n"
    )
    assert kdelta("show", good.id, "-o", "frobnicate") == 2


def test_a_damaged_blob(own_data: Path, capsys: Captured) -> None:
    with Store.open(own_data) as store:
        blob = make_run(store, RunStatus.OK).run.counts_blob
    assert blob is not None
    (own_data / "blobs" / blob[:2] / blob[2:]).write_bytes(b"garbage")
    assert kdelta("show") == 3
    assert "is damaged" in capsys.readouterr().err


def test_workloads_and_kernels(own_cache: Path, capsys: Captured) -> None:
    assert own_cache.is_dir()
    assert kdelta("workloads") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("aes: ")
    assert "\nsyscalls: " in shown
    assert "\n    getppid " in shown
    assert "\n    -w wisconsin:loops=N " in shown
    assert shown.count("\n    join-aselb ") == 1
    assert "\n    the operations of wisconsin\n" in shown
    assert kdelta("kernels") == 0
    assert capsys.readouterr().out.startswith("no kernels here yet")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserError("no such kernel", "look"), 2, "kdelta: no such kernel\nhint: look\n"),
        (LabError("no QEMU"), 3, "kdelta: no QEMU\n"),
        (
            ExceptionGroup("", [ExceptionGroup("", [LabError("a", "b")]), LabError("a", "b")]),
            3,
            "kdelta: a\nhint: b\n",
        ),
        (
            ExceptionGroup("", [UserError("a"), LabError("b")]),
            3,
            "kdelta: a\nkdelta: b\n",
        ),
        (ExceptionGroup("", [UserError("a"), UserError("b")]), 2, "kdelta: a\nkdelta: b\n"),
        (KeyboardInterrupt(), 130, "kdelta: interrupted; runs that had ended are in the store\n"),
    ],
)
def test_how_a_study_can_fail(
    studies: Studies, capsys: Captured, error: BaseException, code: int, said: str
) -> None:
    studies.error = error
    assert kdelta("compare", "image:a", "image:b") == code
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", said)


def test_a_bug_is_written_down(studies: Studies, capsys: Captured, own_data: Path) -> None:
    studies.error = ZeroDivisionError("by nought")
    assert kdelta("compare", "image:a", "image:b") == 3
    shown = capsys.readouterr().err
    assert "this is a bug in kdelta: ZeroDivisionError: by nought\n" in shown
    assert "Traceback" not in shown
    (path,) = (own_data / "crashes").iterdir()
    assert shown.endswith(f"with the file {path}\n")
    assert "Traceback" in path.read_text()


def process(code: str, stdout: int | BinaryIO) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", code], stdout=stdout, stderr=subprocess.PIPE)


MAIN = "import sys; from kdelta.cli.main import main; sys.argv = ['kdelta', 'workloads']; main()"


def test_a_reader_that_has_had_enough() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    child = process(MAIN, theirs)
    os.close(theirs)
    _, err = child.communicate()
    assert (child.returncode, err) == (0, b"")


def test_a_full_disk_at_stdout() -> None:
    with Path("/dev/full").open("wb") as full:
        child = process(MAIN, full)
        _, err = child.communicate()
    assert child.returncode == 3
    assert err.startswith(b"kdelta: the report cannot be written: No space left on device\n")


@pytest.mark.parametrize(
    ("before", "signal", "code"),
    [
        ("", "SIGINT", 130),
        ("", "SIGTERM", 143),
        # Under nohup, tests would inherit that it is ignored.
        ("signal.signal(signal.SIGHUP, signal.SIG_DFL)", "SIGHUP", 129),
        # A job that a shell started in the background ignores Ctrl-C, and must end all the same.
        ("signal.signal(signal.SIGINT, signal.SIG_IGN)", "SIGTERM", 143),
    ],
)
def test_signals(before: str, signal: str, code: int) -> None:
    child = process(
        f"import asyncio, signal, sys\n{before}\n"
        "from kdelta.cli.guard import guarded\n"
        "async def study():\n"
        "    try:\n"
        f"        signal.raise_signal(signal.{signal})\n"
        "        await asyncio.sleep(60)\n"
        "    finally:\n"
        "        print('tidied')\n"
        "sys.exit(guarded(lambda: asyncio.run(study())))\n",
        subprocess.PIPE,
    )
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (code, b"tidied\n")
    assert err == b"kdelta: interrupted; runs that had ended are in the store\n"


def test_doctor_says_what_helps_and_shows_its_commands(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checks() -> Iterator[Check]:
        yield Check("QEMU", run(["true"]).ok, "7.2.22")
        yield Check("zstd", False, "missing", "apt-get install zstd", required=False)

    monkeypatch.setattr("kdelta.cli.doctor._all_checks", checks)
    assert kdelta("doctor") == 0
    quiet = capsys.readouterr()
    assert quiet.out == (
        "ok       QEMU              7.2.22\n"
        "no       zstd              missing\n"
        "                           -> apt-get install zstd\n"
        "all that kdelta needs is there\n"
    )
    assert quiet.err == ""
    assert kdelta("doctor", "-v") == 0
    assert capsys.readouterr().err == "+ true\n"


def test_doctor_fails_when_something_is_missing(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = Check("QEMU", False, "the program is missing", "apt-get install qemu")
    monkeypatch.setattr("kdelta.cli.doctor._all_checks", lambda: iter([missing]))
    assert kdelta("doctor") == 3
    shown = capsys.readouterr().out
    assert shown.startswith("MISSING  QEMU")
    assert shown.endswith("kdelta cannot work yet: see above\n")


def test_doctor_looks_at_the_store(
    own_cache: Path, own_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_cache.is_dir()
    monkeypatch.setattr("kdelta.cli.doctor.checks", lambda: iter(()))
    store, kvm = doctor._all_checks()
    assert (store.ok, store.detail) == (True, f"0 runs in {own_data}, all whole")
    assert (kvm.ok, kvm.required) == (False, False)
    (own_data / "store.db").write_bytes(b"garbage" * 1000)
    store, _ = doctor._all_checks()
    assert not store.ok
    assert "out of the way" in store.remedy
