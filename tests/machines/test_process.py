# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU that ends, or whose caller is cancelled, leaves no process, no socket and no message."""

import asyncio
import contextlib
import gc
import itertools
import os
import socket
import sys
import time
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any

import pytest

from kdelta.machines import process
from kdelta.machines.process import Emulator, emulator
from kdelta.spec.errors import LabError

# Speaks as QEMU's monitor does: the socket is one of the file descriptors that it inherited.
_MONITOR = """
import json, socket, sys
words = [word for word in sys.argv if word.startswith("socket,id=qmp,fd=")]
end = socket.socket(fileno=int(words[0].rpartition("=")[2]))
version = {"qemu": {"micro": 0, "minor": 2, "major": 7}, "package": ""}
end.sendall(json.dumps({"QMP": {"version": version, "capabilities": []}}).encode() + b"\\r\\n")
while asked := end.recv(4096):  # the client waits for the answer to each
    end.sendall(json.dumps({"return": {}, "id": json.loads(asked).get("id")}).encode() + b"\\r\\n")
"""


_QEMU = [sys.executable, "-I", "-S", "-c", _MONITOR]


class _Cancelled:
    """A coroutine whose task is cancelled at its waits number `at` and, after that, at `more`."""

    def __init__(self, work: Coroutine[Any, Any, None], at: int, more: int) -> None:
        self._work = work
        self._cancelled_at = range(at, at + 1 + more)
        self.waits = 0

    def __await__(self) -> Generator[Any, Any, None]:
        waiting = self._work.__await__()
        with contextlib.suppress(StopIteration):
            given = next(waiting)
            while True:
                if self.waits in self._cancelled_at:
                    task = asyncio.current_task()
                    assert task
                    task.get_loop().call_soon(task.cancel)
                self.waits += 1
                try:
                    got = yield given
                except asyncio.CancelledError as error:
                    given = waiting.throw(error)
                else:
                    given = waiting.send(got)


async def _use(folder: Path) -> None:
    async with emulator(_QEMU, folder, 60, debugged=True) as qemu:
        await qemu.command("stop")


def _children() -> set[str]:
    """The processes that were started here and are not yet waited for."""
    threads = Path("/proc/self/task").glob("*/children")
    return {child for children in threads for child in children.read_text().split()}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("more", [0, 1, 3])
def test_use_of_qemu_cancelled_at_any_wait_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    left: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda one: left.append(str(one.exc_value)))
    before = _children()
    for at in itertools.count():
        used = _Cancelled(_use(tmp_path), at, more)

        async def go(used: _Cancelled = used) -> None:
            asyncio.get_running_loop().set_exception_handler(
                lambda _, context: left.append(str(context))
            )
            await used

        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(go())
        gc.collect()
        assert (at, _children() - before, left) == (at, set(), [])
        if used.waits <= at:
            break
    assert at > 5  # there were some waits


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("os.kill(os.getpid(), 9)", "by signal 9"),
        ("os.kill(os.getpid(), 15)", "by signal 15"),
        # As QEMU does, which then runs its plugins' handlers and exits.
        ('print("qemu: terminating on signal 15 from pid 1 (kill)", file=sys.stderr)', "signal 15"),
        ("os.abort()", ""),
        ("sys.exit(1)", ""),
    ],
)
def test_qemu_that_is_ended_from_outside_is_no_answer(tmp_path: Path, end: str, words: str) -> None:
    async def ended() -> str:
        async with emulator([*_QEMU[:-1], f"{_MONITOR}\nimport os\n{end}"], tmp_path, 60) as qemu:
            with contextlib.suppress(LabError):
                await qemu.command("stop")
            await qemu._qmp.disconnect()
            return await qemu.wait_exit()

    if words:
        with pytest.raises(LabError, match=words):
            asyncio.run(ended())
    else:
        assert asyncio.run(ended()) == "exited"


@pytest.mark.slow
def test_time_in_which_kdelta_was_stopped_is_not_the_guests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_MOST_AT_ONCE_SECONDS", 0.3)
    slow = f"{_MONITOR}\nimport time\ntime.sleep(60)"

    async def ended() -> str:
        async with emulator([*_QEMU[:-1], slow], tmp_path, 1.0) as qemu:
            await qemu._qmp.disconnect()
            # The whole program stands still, as after SIGSTOP.
            asyncio.get_running_loop().call_later(0.1, time.sleep, 1.2)
            before = time.monotonic()
            how = await qemu.wait_exit()
            assert time.monotonic() - before > 1.6
            return how

    assert asyncio.run(ended()) == "timeout"


def test_qemu_gets_no_variable_that_could_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    script = f"import os\nopen('env', 'w').write(repr(sorted(os.environ)))\n{_MONITOR}"

    async def use() -> None:
        async with emulator([*_QEMU[:-1], script], tmp_path, 60) as qemu:
            await qemu.command("stop")

    asyncio.run(use())
    assert "'PATH'" in (tmp_path / "env").read_text()
    assert "LD_LIBRARY_PATH" not in (tmp_path / "env").read_text()


def test_qemu_stays_on_its_core(tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0))
    script = f"{_MONITOR}\nimport os\nopen('cores', 'w').write(repr(os.sched_getaffinity(0)))"

    async def use() -> None:
        async with emulator([*_QEMU[:-1], script], tmp_path, 60, core=core) as qemu:
            await qemu._qmp.disconnect()
            await qemu.wait_exit()

    asyncio.run(use())
    assert (tmp_path / "cores").read_text() == repr({core})


async def _complaints_of_the_loop(folder: Path) -> list[dict[str, Any]]:
    """What asyncio would print after QEMU ended and nothing awaited the connection to it."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    ours, theirs = socket.socketpair()
    words = [*_QEMU, f"socket,id=qmp,fd={theirs.fileno()}"]
    client = Emulator(folder, 60)
    await client.start(words, [theirs.fileno()])
    theirs.close()
    await client.connect(ours, None)
    assert client._process
    client._process.kill()
    while not ((ending := client._qmp._dc_task) and ending.done()):
        await asyncio.sleep(0)
    await client._exited
    del client, ending
    gc.collect()
    return complaints


@pytest.mark.slow
def test_connection_to_an_ended_qemu_is_dropped_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asyncio.run(_complaints_of_the_loop(tmp_path)) == []
    # The library complains when its errors are not retrieved: the test can fail.
    monkeypatch.setattr(process, "_retrieve_errors", lambda _client: None)
    assert asyncio.run(_complaints_of_the_loop(tmp_path))
