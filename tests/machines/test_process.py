# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU that ends, or whose caller is cancelled, leaves no process, no socket and no message."""

import asyncio
import contextlib
import gc
import itertools
import socket
import sys
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any

import pytest

from kdelta.machines import process
from kdelta.machines.process import Emulator, emulator

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
