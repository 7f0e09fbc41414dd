# SPDX-License-Identifier: GPL-2.0-or-later
"""Folders of runs: gone when a run ends, kept while it is under way, and removed after a kill."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kdelta.host.dirs import cache_dir
from kdelta.host.lock import work_folder

pytestmark = pytest.mark.usefixtures("own_cache")

HOLDER = """
import sys, time
from kdelta.host.lock import work_folder
with work_folder() as folder:
    (folder / "counts").write_bytes(b"x")
    print(folder, flush=True)
    time.sleep(60)
"""


def holder() -> tuple["subprocess.Popen[str]", Path]:
    """A process that has a folder."""
    argv = [sys.executable, "-c", HOLDER]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


def test_a_folder_goes_with_its_body() -> None:
    with work_folder() as folder:
        (folder / "counts").write_bytes(b"x")
    assert list(cache_dir("work").iterdir()) == []


def test_what_a_killed_process_left_goes_when_the_next_one_starts() -> None:
    process, left = holder()
    try:
        with work_folder() as mine:
            assert {left, mine} == set(cache_dir("work").iterdir())
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()
    assert (left / "counts").exists()
    with work_folder() as mine:
        assert list(cache_dir("work").iterdir()) == [mine]


def test_what_no_process_holds_goes_by_its_age() -> None:
    old, young = cache_dir("work") / "tmpold", cache_dir("work") / "tmpyoung"
    for folder in (old, young):
        folder.mkdir(parents=True)
    before = time.time() - 3 * 24 * 3600
    os.utime(old, (before, before))
    with work_folder():
        assert young.exists()
        assert not old.exists()
