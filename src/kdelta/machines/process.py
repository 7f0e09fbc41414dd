# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU that cannot outlive kdelta, fill the disk or run for ever."""

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import socket
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import Any

from qemu.qmp import ExecuteError, QMPClient, QMPError

from kdelta.host.files import lab_errors
from kdelta.machines.debugger import Debugger
from kdelta.spec.errors import LabError

FILE_LIMIT_BYTES = 4 << 30
CONSOLE_LIMIT_BYTES = 8 << 20
_TAIL_BYTES = 4096
_AFTER_PANIC = b"end Kernel panic"
"""The kernel's last words, after which some machines neither reboot nor turn themselves off."""
_SECONDS_TO_EXIT = 10.0
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
        self,
        process: asyncio.subprocess.Process,
        qmp: QMPClient,
        debugger: Debugger | None,
        folder: Path,
        seconds: float,
    ) -> None:
        self._process = process
        self._qmp = qmp
        self._debugger = debugger
        self._folder = folder
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._exited = asyncio.ensure_future(process.wait())

    @property
    def debugger(self) -> Debugger:
        """Only of a QEMU that was started with one."""
        assert self._debugger
        return self._debugger

    async def command(self, name: str, **arguments: Any) -> Any:
        """Execute a QMP command; LabError when QEMU refuses it or is gone."""
        try:
            return await self._qmp.execute(name, arguments or None)
        except ExecuteError as error:
            raise LabError(f"QEMU refused {name}: {error}") from error
        except (QMPError, EOFError, OSError) as error:
            raise LabError(f"QEMU went away at {name}: {self.stderr() or error}") from error

    async def run_to(self, address: int, bytes_of_insn: int) -> str:
        """Starts the guest, and waits until it is about to execute that instruction, for the first
        time: "stopped", or how else it ended: "exited", "panic", "timeout" or "flood".
        """
        return await self._wait(self.debugger.run_to(address, bytes_of_insn))

    async def wait_exit(self) -> str:
        """Until QEMU ends: "exited", "panic", "timeout" or "flood"."""
        return await self._wait(None)

    async def _wait(self, stop: Coroutine[Any, Any, None] | None) -> str:
        stopped = asyncio.ensure_future(stop) if stop is not None else None
        try:
            while True:
                waiting = {self._exited} | ({stopped} if stopped else set())
                await asyncio.wait(waiting, timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
                if stopped and stopped.done():
                    return await self._how_stopped(stopped)
                if self._exited.done():
                    return "exited"
                if self._console_bytes() > CONSOLE_LIMIT_BYTES:
                    return "flood"
                if _AFTER_PANIC in self._console_tail():
                    return "panic"
                if asyncio.get_running_loop().time() > self._deadline:
                    return "timeout"
        finally:
            if stopped:
                stopped.cancel()

    async def _how_stopped(self, stopped: "asyncio.Future[None]") -> str:
        """A guest that turned itself off takes the debugger's stub with it."""
        if stopped.exception():
            await asyncio.wait([self._exited], timeout=_SECONDS_TO_EXIT)
            if self._exited.done():
                return "exited"
        stopped.result()
        return "stopped"

    def _console_bytes(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return (self._folder / "console").stat().st_size
        return 0

    def _console_tail(self) -> bytes:
        with contextlib.suppress(FileNotFoundError), (self._folder / "console").open("rb") as file:
            file.seek(max(0, self._console_bytes() - _TAIL_BYTES))
            return file.read()
        return b""

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
        if self._debugger:
            self._debugger.close()
        await asyncio.shield(self._exited)
        with contextlib.suppress(Exception):
            await self._qmp.disconnect()


@contextlib.asynccontextmanager
async def emulator(
    argv: Sequence[str], folder: Path, seconds: float, *, debugged: bool = False
) -> AsyncIterator[Emulator]:
    """Start QEMU in `folder`, talk to it over inherited sockets, and end it on the way out. When it
    is `debugged`, its guest waits for the debugger.

    Raises LabError when QEMU does not come up, with what it said.
    """
    with contextlib.ExitStack() as stack:
        (qmp, qmp_of_qemu), (stub, stub_of_qemu) = (
            map(stack.enter_context, socket.socketpair()) for _ in range(2)
        )
        words = [
            "-chardev", f"socket,id=qmp,fd={qmp_of_qemu.fileno()}",
            "-mon", "chardev=qmp,mode=control",
        ]  # fmt: skip
        if debugged:
            words += ["-chardev", f"socket,id=stub,fd={stub_of_qemu.fileno()}"]
            words += ["-gdb", "chardev:stub", "-S"]
        passed = (qmp_of_qemu.fileno(), *((stub_of_qemu.fileno(),) if debugged else ()))
        process = await _start([*argv, *words], folder, passed)
        qmp_of_qemu.close()
        stub_of_qemu.close()
        client = await _connected(process, qmp.dup(), folder, argv[0])
        debugger = await Debugger.connect(stub.dup()) if debugged else None
    running = Emulator(process, client, debugger, folder, seconds)
    try:
        yield running
    finally:
        await running.close()


async def _start(
    argv: Sequence[str], folder: Path, passed: tuple[int, ...]
) -> asyncio.subprocess.Process:
    parent = os.getpid()
    with lab_errors("writing in", folder):
        complaints = (folder / "stderr").open("wb")
    with complaints as stderr:
        return await asyncio.create_subprocess_exec(
            *argv, cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=stderr, stderr=stderr,
            pass_fds=passed, preexec_fn=lambda: _tie_to(parent), start_new_session=True,
        )  # fmt: skip


async def _connected(
    process: asyncio.subprocess.Process, ours: socket.socket, folder: Path, program: str
) -> QMPClient:
    """A client of that QEMU; ends QEMU when it does not answer."""
    client = QMPClient("kdelta")
    try:
        await client.connect(ours)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if not isinstance(error, QMPError | EOFError | OSError):
            raise
        raise LabError(_startup_failure(program, folder)) from error
    finally:
        _retrieve_errors(client)
    return client


def _retrieve_errors(client: QMPClient) -> None:
    """Retrieve the error that ends the client's readers when QEMU is killed: nothing awaits them at
    Ctrl-C, and asyncio would print a traceback. The library has no public name for them.
    """
    readers: asyncio.Future[Any] | None = getattr(client, "_bh_tasks", None)
    if readers is not None:
        readers.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


def _startup_failure(program: str, folder: Path) -> str:
    said = (folder / "stderr").read_text(errors="replace").strip()[-1500:]
    return f"{program} did not start: {said or 'it said nothing'}"
