# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts that lack something: an emulator, the right emulator, space on the disk."""

import contextlib
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import FakeProgram
from tests.robust.conftest import SmallDisk
from tests.robust.lab import Running, kdelta, run_words, shared_cache, snapshots, stored

pytestmark = [pytest.mark.guest, pytest.mark.slow]
Programs = Callable[[str], Path]

EMULATOR = "qemu-system-x86_64"
_WARM = ("qemu", "kernels", "native", "guests", "apt", "apt-answers")

# What QEMU itself prints: 7.2 without --enable-plugins, and one with a later interface.
_WITHOUT_PLUGINS = f"""#!/bin/sh
[ "$1" = --version ] && echo "QEMU emulator version 8.1.5 (Example 1:8.1.5)" && exit
echo "{EMULATOR}: -plugin: invalid option" >&2
exit 1
"""
_OTHER_API = f"""#!/bin/sh
[ "$1" = --version ] && echo "QEMU emulator version 12.2.1" && exit
echo "{EMULATOR}: Could not load plugin /x/plugin: plugin requires API version 1, but this QEMU" \\
    "supports only a minimum version of 8" >&2
exit 1
"""
_TOO_OLD = f"""#!/bin/sh
[ "$1" = --version ] && echo "QEMU emulator version 6.2.0" && exit
[ "$2" = none ] && echo "plugin-api x86_64 0 1" && exit
echo "{EMULATOR}: -machine pc-i440fx-7.2: unsupported machine type" >&2
exit 1
"""
_BROKEN = """#!/bin/sh
[ "$1" = --version ] && echo "QEMU emulator version 7.2.22" && exit
[ "$2" = none ] && echo "plugin-api x86_64 0 1" && exit
echo "cannot allocate memory" >&2
exit 1
"""


def test_no_emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Programs) -> None:
    path = program("good")
    folder = tmp_path / "bin"
    folder.mkdir()
    for where in os.environ["PATH"].split(os.pathsep):
        for found in Path(where).glob("*"):
            link = folder / found.name
            if not found.name.startswith("qemu-") and not link.is_symlink():
                link.symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))
    ended = kdelta(*run_words(path, "--qemu", "host"))
    assert ended.code == 3
    assert f"kdelta: no QEMU for x86_64: the program {EMULATOR} is missing\nhint: " in ended.err


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (_WITHOUT_PLUGINS, "QEMU 8.1.5 (Example 1:8.1.5) was built without plugins"),
        (_OTHER_API, "QEMU 12.2.1 is too new: its plugin interface is version 8"),
        (_TOO_OLD, "QEMU 6.2.0 has no machine pc-i440fx-7.2: kdelta knows"),
        (_BROKEN, "QEMU did not start: cannot allocate memory"),
    ],
    ids=["without plugins", "another interface", "too old", "broken"],
)
def test_an_emulator_that_will_not_do(
    fake_program: FakeProgram, program: Programs, script: str, words: str
) -> None:
    fake_program(EMULATOR, script)
    ended = kdelta(*run_words(program("good"), "--qemu", "host"))
    assert ended.code == 3
    assert f"kdelta: {words}" in ended.err


def test_an_emulator_that_fails_in_a_run_leaves_the_run_in_the_store(
    fake_program: FakeProgram, program: Programs
) -> None:
    fake_program(EMULATOR, _BROKEN)
    words = run_words(program("good"), "--no-snapshot", "--qemu", "host")
    assert kdelta(*words).code == 3
    (run,) = stored()
    assert run.word == "workload-failed"
    assert "cannot allocate memory" in run.detail


def test_a_cache_without_space_for_anything(
    small_disk: SmallDisk, monkeypatch: pytest.MonkeyPatch, user_cache: Path, program: Programs
) -> None:
    disk = small_disk("64k")
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(disk))
    shared_cache(disk, user_cache, "qemu", "kernels", "apt", "apt-answers")
    ended = kdelta(*run_words(program("good")))
    assert ended.code == 3
    assert "space" in ended.err
    assert "KDELTA_CACHE_DIR" in ended.err
    assert not list(disk.rglob("*.partial"))


def test_a_cache_without_space_for_a_snapshot(
    small_disk: SmallDisk, monkeypatch: pytest.MonkeyPatch, user_cache: Path, program: Programs
) -> None:
    disk = small_disk("20m")
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(disk))
    shared_cache(disk, user_cache, *_WARM)
    ended = kdelta(*run_words(program("good")))
    assert ended.code == 3
    assert "the snapshot could not be written" in ended.err
    assert "look whether the disk is full" in ended.err
    assert snapshots() == []


def test_a_cache_without_space_for_counts(
    small_disk: SmallDisk, monkeypatch: pytest.MonkeyPatch, user_cache: Path, program: Programs
) -> None:
    assert kdelta(*run_words(program("good"))).code == 0  # so that there is a snapshot
    disk = small_disk("1m")
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(disk))
    shared_cache(disk, user_cache, *_WARM, "snapshots")
    (disk / "filler").write_bytes(bytes(100 << 10))
    ended = kdelta(*run_words(program("good"), "--rerun"))
    assert ended.code == 3
    assert "disk is full" in ended.err or "free some space" in ended.err
    failed, _ = stored()
    assert (failed.word, failed.counts_blob) == ("workload-failed", None)
    assert failed.detail.startswith("lab: ")
    assert list((disk / "work").iterdir()) == []


def test_a_file_limit_is_a_full_disk_too(program: Programs) -> None:
    limit = 300 << 10, 300 << 10
    ended = kdelta(
        *run_words(program("good")), limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    )
    assert ended.code == 3
    assert "File too large\nhint: raise the limit on the size of files" in ended.err
    assert [run.word for run in stored()] == ["workload-failed"]


def test_a_store_without_space(
    small_disk: SmallDisk, monkeypatch: pytest.MonkeyPatch, program: Programs
) -> None:
    disk = small_disk("1m")
    monkeypatch.setenv("KDELTA_DATA_DIR", str(disk))
    assert kdelta("runs").code == 0
    filler = _fill(disk)
    ended = kdelta(*run_words(program("good")))
    assert ended.code == 3
    assert "KDELTA_DATA_DIR" in ended.err
    filler.unlink()
    assert kdelta(*run_words(program("good"))).code == 0
    assert stored()[0].word == "ok"


def _fill(disk: Path) -> Path:
    """A file that takes all the space that is left."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return filler


def test_a_store_without_space_for_what_a_run_left(
    small_disk: SmallDisk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: Programs
) -> None:
    """It starts, and is known to have started, and the disk is full when it ends."""
    disk = small_disk("1m")
    monkeypatch.setenv("KDELTA_DATA_DIR", str(disk))
    with Running(tmp_path, *run_words(program("good"))) as running:
        running.wait_for_guest(resumed=True)
        filler = _fill(disk)
        ended = running.end()
    assert ended.code == 3
    assert "KDELTA_DATA_DIR" in ended.err
    filler.unlink()
    assert [run.word for run in stored()] == ["interrupted"]
    assert not list(disk.rglob("*.partial"))
