# SPDX-License-Identifier: GPL-2.0-or-later
"""What is printed when QEMU ends while nothing waits for it."""

import asyncio
import gc
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from kdelta.machines import process


async def _answer_and_die(end: socket.socket) -> None:
    """Speak as QEMU's monitor does until a client is connected, and vanish."""
    reader, writer = await asyncio.open_connection(sock=end)
    version = {"qemu": {"micro": 0, "minor": 2, "major": 7}, "package": ""}
    writer.write(json.dumps({"QMP": {"version": version, "capabilities": []}}).encode() + b"\r\n")
    asked = json.loads(await reader.read(4096))
    writer.write(json.dumps({"return": {}, "id": asked.get("id")}).encode() + b"\r\n")
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.close()


async def _complaints_of_the_loop(folder: Path) -> list[dict[str, Any]]:
    """What asyncio would print after a client's QEMU died and nothing awaited the client."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    ours, theirs = socket.socketpair()
    qemu = asyncio.create_task(_answer_and_die(theirs))
    idle = await asyncio.create_subprocess_exec("true")
    client = await process._connected(idle, ours, folder, "qemu")
    await qemu
    await asyncio.sleep(0.05)
    del client
    gc.collect()
    await idle.wait()
    return complaints


def test_client_of_a_killed_qemu_is_dropped_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asyncio.run(_complaints_of_the_loop(tmp_path)) == []
    # The library complains when its errors are not retrieved: the test can fail.
    monkeypatch.setattr(process, "_retrieve_errors", lambda _client: None)
    assert asyncio.run(_complaints_of_the_loop(tmp_path))
