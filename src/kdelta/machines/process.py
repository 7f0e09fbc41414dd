# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU that cannot outlive kdelta, fill the disk or run for ever."""

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from qemu.qmp import ExecuteError, QMPClient, QMPError

from kdelta.host.files import lab_errors
from kdelta.spec.errors import LabError

FILE_LIMIT_BYTES = 4 << 30
CONSOLE_LIMIT_BYTES = 8 << 20
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def _tie_to(parent: int) -> None:
    """In the child, before exec: die with the parent, and write no file beyond all reason."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    # Above the file limit a write fails (EFBIG) instead of ending QEMU by SIGXFSZ.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    limit = FILE_LIMIT_BYTES if hard == resource.RLIM_INFINITY else min(FILE_LIMIT_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Emulator:
    """A running QEMU, and a wall-clock limit that all that waits for it shares."""

    def __init__(
        self, process: asyncio.subprocess.Process, qmp: QMPClient, folder: Path, seconds: float
    ) -> None:
        self._process = process
        self._qmp = qmp
        self._folder = folder
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._exited = asyncio.ensure_future(process.wait())
        self._stopped = asyncio.Event()
        self._watch = asyncio.ensure_future(self._watch_events())

    async def _watch_events(self) -> None:
        with self._qmp.listener(("STOP", "GUEST_PANICKED")) as events:
            async for event in events:
                if event["event"] == "STOP":
                    self._stopped.set()

    async def command(self, name: str, **arguments: Any) -> Any:
        """Execute a QMP command; LabError when QEMU refuses it or is gone."""
        try:
            return await self._qmp.execute(name, arguments or None)
        except ExecuteError as error:
            raise LabError(f"QEMU refused {name}: {error}") from error
        except (QMPError, EOFError, OSError) as error:
            raise LabError(f"QEMU went away at {name}: {self.stderr() or error}") from error

    async def wait_stop(self) -> str:
        """Until the guest stops the machine: "stopped", "exited", "timeout" or "flood"."""
        return await self._wait(self._stopped.wait())

    async def wait_exit(self) -> str:
        """Until QEMU ends: "exited", "timeout" or "flood"."""
        return await self._wait(None)

    async def _wait(self, stop: Any) -> str:
        stopped = asyncio.ensure_future(stop) if stop is not None else None
        try:
            while True:
                waiting = {self._exited} | ({stopped} if stopped else set())
                await asyncio.wait(waiting, timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
                if stopped and stopped.done():
                    return "stopped"
                if self._exited.done():
                    return "exited"
                if self._console_bytes() > CONSOLE_LIMIT_BYTES:
                    return "flood"
                if asyncio.get_running_loop().time() > self._deadline:
                    return "timeout"
        finally:
            if stopped:
                stopped.cancel()

    def _console_bytes(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return (self._folder / "console").stat().st_size
        return 0

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative for a signal."""
        return self._process.returncode

    def stderr(self) -> str:
        """What QEMU complained of, shortened."""
        with contextlib.suppress(FileNotFoundError):
            return (self._folder / "stderr").read_text(errors="replace").strip()[-2000:]
        return ""

    async def close(self) -> None:
        """End QEMU, whatever state it is in, and wait until it is gone."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        self._watch.cancel()
        await asyncio.shield(self._exited)
        with contextlib.suppress(Exception):
            await self._qmp.disconnect()


@contextlib.asynccontextmanager
async def emulator(argv: Sequence[str], folder: Path, seconds: float) -> AsyncIterator[Emulator]:
    """Start QEMU in `folder`, talk to it over an inherited socket, and end it on the way out.

    Raises LabError when QEMU does not come up, with what it said.
    """
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    qmp = QMPClient("kdelta")
    with lab_errors("writing in", folder):
        complaints = (folder / "stderr").open("wb")
    with ours, theirs, complaints as stderr:
        process = await asyncio.create_subprocess_exec(
            *argv,
            "-chardev", f"socket,id=qmp,fd={theirs.fileno()}",
            "-mon", "chardev=qmp,mode=control",
            cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=stderr, stderr=stderr,
            pass_fds=(theirs.fileno(),), preexec_fn=lambda: _tie_to(parent), start_new_session=True,
        )  # fmt: skip
        theirs.close()
        try:
            await qmp.connect(ours.dup())
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            if not isinstance(error, QMPError | EOFError | OSError):
                raise
            raise LabError(_startup_failure(argv[0], folder)) from error
    running = Emulator(process, qmp, folder, seconds)
    try:
        yield running
    finally:
        await running.close()


def _startup_failure(program: str, folder: Path) -> str:
    said = (folder / "stderr").read_text(errors="replace").strip()[-1500:]
    return f"{program} did not start: {said or 'it said nothing'}"
