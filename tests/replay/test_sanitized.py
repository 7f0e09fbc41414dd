# SPDX-License-Identifier: GPL-2.0-or-later
"""The C library of the replay under the sanitizers for addresses and undefined behaviour."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.conftest import SANITIZERS

from .libraries import built

ROOT = Path(__file__).parents[2]


def _runtime(name: str) -> str:
    said = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, check=True)
    return said.stdout.decode().strip()


def _replayed(library: Path) -> "subprocess.CompletedProcess[str]":
    runtimes = [_runtime("libasan.so"), _runtime("libubsan.so")]
    if not all(Path(path).is_absolute() for path in runtimes):
        pytest.skip("the compiler has no sanitizers")
    # Python itself keeps memory to its end.
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(runtimes),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
    }
    return subprocess.run(
        [sys.executable, "-m", "tests.replay.sanitized", str(library)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=ROOT,
    )


@pytest.mark.slow
def test_nothing_is_read_or_written_where_it_is_not(tmp_path: Path) -> None:
    done = _replayed(built(tmp_path / "replay.so", "-O1", *SANITIZERS))
    assert done.stdout == "all is well\n", done.stderr
    assert done.returncode == 0
