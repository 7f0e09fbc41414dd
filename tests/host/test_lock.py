# SPDX-License-Identifier: GPL-2.0-or-later
"""Locks: one process holds, the other waits and says for whom; a killed holder lets go."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kdelta.host.command import quiet
from kdelta.host.dirs import cache_dir
from kdelta.host.lock import locked, locked_if_free
from kdelta.host.machine import own_core
from kdelta.spec.errors import LabError
from tests.odd_files import ODD

HOLDER = """
import sys
from kdelta.host.lock import locked
with locked("the kernel", "fetching", print):
    print("held", flush=True)
    sys.stdin.readline()
"""


def start_holder() -> "subprocess.Popen[str]":
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_the_second_waits_and_says_for_whom(own_cache: Path) -> None:
    assert own_cache
    said: list[str] = []
    with start_holder() as holder:

        def log(line: str) -> None:
            said.append(line)
            assert holder.poll() is None
            holder.communicate("go\n")

        with locked("the kernel", "fetching", log):
            assert holder.poll() == 0
    assert said == [f"waiting for another kdelta (process {holder.pid}), which is fetching"]


def test_each_core_is_given_once(own_cache: Path) -> None:
    assert own_cache
    mine = os.sched_getaffinity(0)
    with contextlib.ExitStack() as stack:
        given = [stack.enter_context(own_core()) for _ in (*mine, "one more")]
        assert given[-1] is None
        assert set(given[:-1]) == mine
    with own_core() as again:
        assert again == given[0]


def test_another_name_is_another_lock(own_cache: Path) -> None:
    assert own_cache
    said: list[str] = []
    with start_holder() as holder:
        with locked("another kernel", "fetching", said.append):
            assert holder.poll() is None
        holder.communicate("go\n")
    assert said == []


def test_a_killed_holder_lets_go(own_cache: Path) -> None:
    assert own_cache
    said: list[str] = []
    with start_holder() as holder:
        holder.kill()
        holder.wait()
    with locked("the kernel", "fetching", said.append):
        pass
    assert said == []


@pytest.mark.parametrize("kind", ODD)
def test_lock_that_is_no_file_is_an_error(own_cache: Path, kind: str) -> None:
    ODD[kind](cache_dir("locks") / "kernel.lock")
    assert own_cache
    for lock in (locked("kernel", "fetching", quiet), locked_if_free("kernel")):
        with pytest.raises(LabError, match=r"kernel\.lock") as caught, lock:
            pass
        assert caught.value.hint == "move it away: a file belongs there"
