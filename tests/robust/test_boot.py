# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that do not come up: each is distinguished, kept, and ended."""

import asyncio
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.guests.cpio import archive, file
from kdelta.machines.outcome import GuestOutcome
from kdelta.machines.snapshots import obtain_snapshot
from kdelta.spec.run import RunStatus
from tests.machines.bench import guest, new_setting
from tests.robust.lab import console, kdelta, processes, run_words, shared_cache, stored

pytestmark = pytest.mark.guest
Programs = Callable[[str], Path]

# A kernel as far as a PVH loader can tell, which does nothing: no console, no end.
_MUTE = """
    .section .note.pvh, "a", @note
    .long 4, 4, 18
    .asciz "Xen"
    .long start
    .section .rodata
    .asciz "Linux version 6.99.0-mute (nobody@nowhere) #1"
    .text
    .code32
    .globl start
start:
    cli
    hlt
    jmp start
"""


@pytest.mark.slow
def test_a_kernel_that_finds_no_init_is_told_from_other_panics(
    no_snapshots: Path, program: Programs
) -> None:
    """As with a kernel that takes no initramfs."""
    ended = kdelta(*run_words(program("good"), "--append", "rdinit=/nonexistent"))
    assert ended.code == 1
    said = " ".join(ended.out.split())
    assert "boot-failed: no init: the kernel did not take the initramfs" in said
    assert "  | [" in ended.out
    assert "Kernel Offset: disabled" in ended.out
    (run,) = stored()
    assert (run.status, run.counts_blob) == (RunStatus.BOOT_FAILED, None)
    assert "Kernel panic - not syncing" in console(run)
    assert "Kernel panic" in kdelta("show", "--console").out
    assert "boot-failed" in kdelta("runs").out
    assert list((no_snapshots / "snapshots").iterdir()) == []


@pytest.mark.slow
def test_a_panic(program: Programs) -> None:
    """Both ways: what fails on the way to the snapshot, and what fails without one."""
    ended = kdelta(*run_words(program("good"), "--append", "rdinit=/dev/console", "--no-snapshot"))
    assert ended.code == 1
    assert "boot-failed: " in ended.out
    assert "panic: " in ended.out
    assert stored()[0].status is RunStatus.BOOT_FAILED


@pytest.mark.slow
def test_a_comparison_with_a_kernel_that_does_not_boot(
    tmp_path: Path, user_cache: Path, own_cache: Path
) -> None:
    """The other kernel's runs are made and kept all the same."""
    shared_cache(
        own_cache, user_cache, "kernels", "native", "guests", "apt", "apt-answers", "snapshots"
    )
    mute = _mute_kernel(tmp_path)
    ended = kdelta(
        *("compare", "deb:linux-image-cloud-amd64@bookworm", f"image:{mute}", "-o", "getppid"),
        *("--perturb", "1", "--timeout", "60", "-j", "2"),
    )
    assert ended.code == 1
    assert "boot-failed: hang: nothing on the serial console" in ended.out.replace("\n    ", " ")
    assert "nothing to compare" in ended.out
    assert sorted(run.word for run in stored()) == ["boot-failed", "ok"]
    (failed,) = [run for run in stored() if run.word == "boot-failed"]
    assert failed.kernel_release == "6.99.0-mute"


def _mute_kernel(folder: Path) -> Path:
    source, image = folder / "mute.S", folder / "vmlinux"
    source.write_text(_MUTE)
    argv = [
        "gcc",
        "-nostdlib",
        "-static",
        "-no-pie",
        "-Wl,-Ttext=0x100000,-e,start,--build-id=none",
    ]
    subprocess.run([*argv, "-o", str(image), str(source)], check=True)
    assert struct.unpack_from("<H", image.read_bytes(), 18) == (62,)
    return image


def _boot_with_init(init: bytes, folder: Path, seconds: float) -> GuestOutcome:
    initrd = folder / "initrd.cpio"
    initrd.write_bytes(archive([file("init", init, executable=True)]))
    found = asyncio.run(obtain_snapshot(guest(initrd=initrd), new_setting(seconds)))
    assert isinstance(found, GuestOutcome)
    assert not processes("qemu-system")
    return found


@pytest.mark.slow
def test_an_init_that_never_answers(no_snapshots: Path, tmp_path: Path, program: Programs) -> None:
    outcome = _boot_with_init(program("sleeps").read_bytes(), tmp_path, 10)
    assert outcome.status is RunStatus.BOOT_FAILED
    assert outcome.detail.startswith("hang: the agent never answered; last line: [")
    assert list((no_snapshots / "snapshots").iterdir()) == []


@pytest.mark.slow
def test_an_init_that_ends(no_snapshots: Path, tmp_path: Path, program: Programs) -> None:
    assert no_snapshots
    outcome = _boot_with_init(program("good").read_bytes(), tmp_path, 120)
    assert outcome.status is RunStatus.BOOT_FAILED
    assert outcome.detail.startswith("panic: Attempted to kill init!")
