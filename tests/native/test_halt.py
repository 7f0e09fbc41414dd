# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's lock between a CPU that halts and QEMU's main loop, without QEMU."""

import subprocess
from pathlib import Path

import pytest

from kdelta.host.native import native_folder

from .conftest import HERE, compile_c

HALTS = "300"


@pytest.fixture(scope="session")
def halting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plugin = native_folder() / "plugin"
    output = tmp_path_factory.mktemp("halting") / "halting"
    return compile_c(
        output, [HERE / "halting.c", plugin / "halt.c"], f"-I{plugin}", "-DPLUGIN_API=1", "-pthread"
    )


def _run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
def test_no_round_sees_a_halted_cpu_before_its_instructions_are_in_the_clock(
    halting: Path,
) -> None:
    ended = _run(halting, "locked", HALTS)
    assert (ended.stdout, ended.stderr) == ("0\n", "")


@pytest.mark.slow
def test_without_the_lock_rounds_do_see_such_a_cpu(halting: Path) -> None:
    """Else the test above would prove nothing."""
    assert int(_run(halting, "unlocked", HALTS).stdout) > 0


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("unasked", "main loop does not ask GLib's sources"),
        ("stopping", "main loop waits for a CPU that is about to halt"),
    ],
)
def test_a_halt_that_cannot_be_locked_ends_the_run_with_the_reason(
    halting: Path, how: str, why: str
) -> None:
    ended = _run(halting, how)
    assert ended.returncode == 1
    assert ended.stderr == f"kdelta plugin: QEMU's {why}: the run might not repeat\n"
