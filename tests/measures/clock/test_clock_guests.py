# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that time a workload: real kernels of each architecture, and QEMU's arguments."""

import contextlib
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kdelta.host.command import Result
from kdelta.host.emulator import find_qemu
from kdelta.host.target import target
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.kernels.obtain import obtain
from kdelta.lab.plan import guest_compiler
from kdelta.lab.request import LabRequest, Program
from kdelta.lab.work import Work
from kdelta.measures.clock import guests
from kdelta.measures.clock.guests import (
    ClockGuest,
    guest_argv,
    initramfs_of,
    run_of_console,
    timed_boot,
)
from kdelta.measures.clock.jobs import timed_job
from kdelta.measures.clock.results import TimedRun
from kdelta.spec.errors import LabError
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.run import MachineOptions
from kdelta.studies.clock.request import ClockRequest
from kdelta.studies.clock.study import run_clock
from kdelta.workloads.catalog import find_workload
from tests.lab.fake_lab import kernel
from tests.measures.clock.made_runs import content

X86 = "deb:linux-image-cloud-amd64@bookworm"
MACHINE = MachineOptions()


def kernel_of(spec: str) -> Kernel:
    found = obtain(parse_kernel_spec(spec), lambda _: None)
    assert not isinstance(found, NoKernel)
    return found


def booted(kernel: Kernel, work: Work, seconds: float = 300) -> TimedRun:
    by = guest_compiler(kernel.arch, MACHINE)
    job = timed_job(work, kernel, LabRequest(machine=MACHINE))
    guest = ClockGuest(MACHINE, memory_mib=job.memory_mib, seconds=seconds)
    return timed_boot(guest, kernel, initramfs_of(job.archive, by))


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [
        X86,
        "deb:linux-image-cloud-arm64:arm64@bookworm",
        "deb:linux-image-armmp:armhf",
        "deb:linux-image-6.12-cloud-amd64@bookworm",
    ],
)
def test_a_kernel_times_operations(spec: str) -> None:
    kernel = kernel_of(spec)
    runs = [booted(kernel, Work(operations=("getppid", "stat"))) for _ in range(2)]
    assert len({one.facts.boot_id for one in runs}) == 2
    assert len({one.facts.kernel for one in runs}) == 1
    for one in runs:
        assert one.facts.release == kernel.release
        assert 0 < one.ns["getppid"] < one.ns["stat"]


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "other"),
    [
        (X86, "deb:linux-image-6.12-cloud-amd64@bookworm"),
        (
            "deb:linux-image-cloud-arm64:arm64@bookworm",
            "deb:linux-image-6.12-cloud-arm64:arm64@bookworm",
        ),
        ("deb:linux-image-armmp:armhf", "deb:linux-image-rt-armmp:armhf"),
        pytest.param(
            "deb:linux-image-riscv64:riscv64@forky",
            "deb:linux-image-riscv64:riscv64@forky +cmdline:nosmp",
            marks=pytest.mark.outside,
        ),
    ],
)
def test_files_of_guests_are_judged(base: str, other: str, tmp_path: Path) -> None:
    for at, spec in enumerate((base, other, other, base)):
        folder = tmp_path / ("base" if spec == base else "other")
        folder.mkdir(exist_ok=True)
        found = booted(kernel_of(spec), Work(operations=("getppid", "stat")))
        (folder / f"{at}.json").write_bytes(found.content)
    request = ClockRequest(base=tmp_path / "base", other=tmp_path / "other")
    report = run_clock(request)
    assert report.pairs == 2
    assert {one.region for one in report.found.effects} == {"getppid", "stat"}
    assert report.base != report.other


@pytest.mark.guest
@pytest.mark.slow
def test_counters_count_what_the_clock_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under QEMU's instruction clock an arm64 guest's PMU counts instructions, and its clock does,
    too: a nanosecond each. So what user and kernel retire adds up to the time. A kernel that has no
    random numbers would need 9,000 of them for each call.
    """
    kernel = kernel_of("deb:linux-image-cloud-arm64:arm64@bookworm")
    plain = guests.guest_argv

    def counting(*words: Any) -> list[str]:
        return [*plain(*words), "-icount", "shift=0,sleep=off"]

    monkeypatch.setattr(guests, "guest_argv", counting)
    found = booted(kernel, Work(operations=("getppid", "stat", "chdir")))
    assert found.ns["getppid"] < 1000
    for name, ns in found.ns.items():
        counted = found.counters[name]
        retired = counted["user_instructions"] + counted["kernel_instructions"]
        assert retired == pytest.approx(ns, rel=0.01)
        assert counted["kernel_instructions"] > 5 * counted["user_instructions"]


@pytest.mark.guest
@pytest.mark.parametrize(
    ("work", "regions"),
    [
        pytest.param(
            Work("nat", ("udp-64b", "tcp-iperf3")),
            ["udp-64b", "tcp-iperf3"],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Work("aes", ("user-encrypt", "kernel-encrypt", "user-kflags-encrypt")),
            ["user-encrypt", "kernel-encrypt", "user-kflags-encrypt"],
            marks=[pytest.mark.slow, pytest.mark.build],
        ),
        pytest.param(
            Work("wisconsin", ("select-1pct", "insert")),
            ["select-1pct", "insert"],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Work(program=Program(command=("/bin/sh", "-c", "exit 0"))),
            ["command"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_needs_modules_packages_or_a_program_is_timed(work: Work, regions: list[str]) -> None:
    found = booted(kernel_of(X86), work)
    assert sorted(found.ns) == sorted(regions)
    assert found.facts.workload == work.name
    assert all(ns > 100 for ns in found.ns.values())


@pytest.mark.guest
@pytest.mark.slow
def test_program_that_fails_is_quoted() -> None:
    work = Work(program=Program(command=("/bin/sh", "-c", "echo not so >&2; exit 3")))
    with pytest.raises(LabError, match="the program failed with exit code 3; it printed: not so"):
        booted(kernel_of(X86), work)


@pytest.mark.guest
@pytest.mark.slow
def test_all_operations_of_a_workload_are_timed() -> None:
    kernel = kernel_of(f"{X86} +cmdline:nopti")  # a word that is handed on to init
    assert set(booted(kernel, Work()).ns) == {
        one.name for one in find_workload("syscalls").operations
    }


@pytest.mark.guest
@pytest.mark.slow
def test_a_kernel_that_does_not_boot_timed_nothing() -> None:
    kernel = kernel_of(f"{X86} +cmdline:mem=8M")
    with pytest.raises(LabError, match="was booted and timed nothing"):
        booted(kernel, Work(operations=("getppid",)), seconds=60)


@pytest.mark.guest
def test_qemu_understands_the_arguments_of_kvm(tmp_path: Path) -> None:
    """They differ from the emulated guest's by two words; what QEMU refuses is the device alone."""
    kernel, image = kernel_of(X86), tmp_path / "initrd"
    image.write_bytes(bytes(512))
    plain, kvm = (guest_argv(ClockGuest(MACHINE, accel), kernel, image) for accel in ("tcg", "kvm"))
    changed = [(one, other) for one, other in zip(plain, kvm, strict=True) if one != other]
    words = plain[plain.index("-append") + 1]
    without = words.replace(" no_timer_check", "")
    assert changed == [("tcg", "kvm"), (plain[plain.index("-cpu") + 1], "host"), (words, without)]
    with contextlib.suppress(LabError):  # where there is KVM, it waits to be told to go on
        result = find_qemu(target(kernel.arch)).run(*kvm, "-S", seconds=1)
        assert "kvm" in result.stderr.lower()
        assert "invalid option" not in result.stderr


def a_kernel() -> Kernel:
    return kernel("6.12", "/boot/vmlinuz")


def test_boot_parameters_of_a_kernel_win_over_words_of_all_guests() -> None:
    """As on the machine on which its path was counted."""
    booted = msgspec.structs.replace(a_kernel(), parameters=("mitigations=off",))
    machine = MachineOptions(append="mitigations=auto quiet")
    argv = guest_argv(ClockGuest(machine), booted, Path("/dev/null"))
    words = argv[argv.index("-append") + 1]
    assert words.endswith(" kdelta.as=service mitigations=auto quiet mitigations=off")


@pytest.mark.parametrize(
    ("guest", "free", "is_huge"),
    [
        (ClockGuest(MACHINE, "kvm", 1024), 512, True),
        (ClockGuest(MACHINE, "kvm", 1024), 511, False),
        (ClockGuest(MACHINE, "kvm", 64), 0, False),
        (ClockGuest(MACHINE, "tcg", 1024), 512, False),
    ],
)
def test_memory_of_huge_pages_where_there_are_enough(
    guest: ClockGuest, free: int, is_huge: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = tmp_path / "meminfo"
    memory.write_text(f"MemTotal: 1 kB\nHugePages_Free: {free}\nHugepagesize:    2048 kB\n")
    monkeypatch.setattr(guests, "_MEMORY", memory)
    monkeypatch.setattr(guests, "_HUGE_PAGES", tmp_path)
    assert (str(tmp_path) in guest_argv(guest, a_kernel(), Path("/dev/null"))) is is_huge


@pytest.mark.parametrize("accel", ["kvm", "tcg"])
def test_virtual_cpu_has_one_cpu_of_the_host(accel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every, seen = os.sched_getaffinity(0), []

    class Started:
        def run(self, *_: str, seconds: float) -> Result:
            seen.append((os.sched_getaffinity(0), seconds))
            return Result((), 0, CONSOLE, "")

    monkeypatch.setattr(guests, "find_qemu", lambda *_: Started())
    run = timed_boot(ClockGuest(MACHINE, accel, seconds=5), a_kernel(), Path("/dev/null"))
    assert set(run.ns) == {"getppid", "stat"}
    assert seen == [({max(every)} if accel == "kvm" else every, 5)]
    assert os.sched_getaffinity(0) == every


CONSOLE = content({"getppid": 80.0, "stat": 800.0}).decode().replace("\n", "\r\n")


def test_lines_of_kernel_and_workload_are_no_part_of_a_run() -> None:
    first, *rest = CONSOLE.splitlines(keepends=True)
    others = ["[    1.0] a message\r\n", "aes: af_alg-encrypt is left out: no AF_ALG\r\n"]
    run = run_of_console("".join(["SeaBIOS\r\n", first, *others, *rest]), "6.12")
    assert set(run.ns) == {"getppid", "stat"}


@pytest.mark.parametrize(
    ("console", "words"),
    [
        ("", "6.12 was booted and timed nothing: QEMU said no"),
        ("Kernel panic\r\n", "6.12 was booted and timed nothing: Kernel panic"),
        (CONSOLE.splitlines()[0] + "\nOops\n", "6.12 was booted and timed nothing: Oops"),
        (CONSOLE.replace("stat", "st[   1.0] oops\r\nat"), "guest of 6.12 is cut off or damaged"),
        (
            content({"stat": 1.0}, status=256).decode().replace('{"regions"', 'no lo\n{"regions"')
            + "\n[    4.191625] reboot: Restarting system\r\n",
            "the program failed with exit code 1; it printed: no lo",
        ),
        (
            content({"stat": 1.0}, status=256).decode() + '{"kdelta_bundle":1}\n{"regions":0}\n',
            "the guest of 6.12: the program failed with exit code 1$",
        ),
    ],
)
def test_console_without_a_whole_run_is_an_error_of_the_guest(console: str, words: str) -> None:
    with pytest.raises(LabError, match=words):
        run_of_console(console, "6.12", "QEMU said no")
