# SPDX-License-Identifier: GPL-2.0-or-later
"""The turns that the plugin gives QEMU's threads, without QEMU."""

import subprocess
from pathlib import Path

import pytest

from kdelta.host.native import native_folder

from .conftest import HERE, compile_c

STEPS = "3000"


@pytest.fixture(scope="session")
def turning(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The program, and the library that is to be loaded before."""
    folder, plugin = tmp_path_factory.mktemp("turning"), native_folder() / "plugin"
    sources = [plugin / "turns.c", plugin / "monitor.c"]
    library = compile_c(folder / "turns.so", sources, "-shared", "-fPIC")
    return compile_c(folder / "turning", [HERE / "turning.c"], "-pthread"), library


def _run(*words: str | Path, preload: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"LD_PRELOAD": str(preload)} if preload else {}
    return subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=120, env=environment
    )


def test_main_loop_and_cpus_never_go_on_at_the_same_time(turning: tuple[Path, Path]) -> None:
    program, library = turning
    ended = _run(program, "turns", STEPS, preload=library)
    assert (ended.stdout, ended.stderr) == ("0 all\n", "")


def test_without_turns_they_do(turning: tuple[Path, Path]) -> None:
    """Else the test above would prove nothing."""
    program, library = turning
    overlaps, what = _run(program, "free", STEPS, preload=library).stdout.split()
    assert (int(overlaps) > 0, what) == (True, "all")


def test_qemu_that_does_not_call_the_library_is_refused(
    turning: tuple[Path, Path], tmp_path: Path
) -> None:
    late = compile_c(tmp_path / "late", [HERE / "late.c"])
    ended = _run(late, turning[1])
    assert ended.returncode == 1
    assert ended.stderr == (
        "kdelta plugin: QEMU does not call this library's functions: a run with several CPUs"
        " would not repeat\n"
    )
