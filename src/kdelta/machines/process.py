# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU that cannot outlive kdelta, fill the disk or run for ever; and its debugger stub, which
stops a guest at an address.

The stub is asked by the few packets of gdb's protocol for that, whose format is that of gdb's
manual, "Remote Protocol": $DATA#CHECKSUM, each answered by +.
"""

import asyncio
import contextlib
import os
import re
import resource
import signal
import socket
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from qemu.qmp import ExecuteError, QMPClient, QMPError

from kdelta.host.environment import environ_with
from kdelta.host.files import lab_errors
from kdelta.host.tie import tie_to
from kdelta.spec.errors import LabError
from kdelta.spec.limits import CONSOLE_BYTES as CONSOLE_LIMIT_BYTES
from kdelta.spec.limits import GUEST_OUTPUT_BYTES as FILE_LIMIT_BYTES

_STOPPED_BY_TRAP = b"T05"
_STOPPED_BY_USER = b"T02"
_BREAK = b"\x03"
_LIMIT_BYTES = 1 << 16
_TAIL_BYTES = 4096
AFTER_PANIC = b"end Kernel panic"
"""The kernel's last words, after which some machines neither reboot nor turn themselves off."""
_SECONDS_TO_EXIT = 10.0
_MOST_AT_ONCE_SECONDS = 1.0
_CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
"""Signals that QEMU's own faults end it with; a full disk sends SIGBUS."""
_ASKED_TO_END = re.compile(r"terminating on signal (\d+)")
"""What QEMU prints of a signal that it handles; it then exits with 0."""


class Debugger:
    """A connection to the stub of a QEMU that has not started its guest yet (-S)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, ours: socket.socket) -> "Debugger":
        """Talks over that socket, whose other end QEMU has."""
        ours.setblocking(False)
        return cls(*await asyncio.open_connection(sock=ours, limit=_LIMIT_BYTES))

    async def run_to(self, address: int, bytes_of_insn: int) -> None:
        """Starts the guest and returns when it is about to execute that instruction, for the first
        time; from then on nothing stops it there. LabError when it stops for another reason.
        """
        place = f"1,{address:x},{bytes_of_insn}"
        await self._ask("?")  # a debugger that begins by this gets the guest without breakpoints
        await self._must_be_ok(f"Z{place}")
        said = await self._ask("c")
        if not said.startswith(_STOPPED_BY_TRAP):
            raise LabError(f"the guest stopped before its snapshot point: {_shown(said)}")
        await self._must_be_ok(f"z{place}")

    async def write(self, address: int, data: bytes) -> None:
        """Writes the stopped guest's memory at that virtual address."""
        await self._must_be_ok(f"M{address:x},{len(data):x}:{data.hex()}")

    async def pause(self) -> None:
        """Makes of the stop at an instruction a pause as by a user, for QEMU does not load a state
        that was saved in the former.
        """
        # QEMU handles what it reads at once without letting the CPU run in between.
        said = await self._ask("c", _BREAK)
        if not said.startswith(_STOPPED_BY_USER):
            raise LabError(f"QEMU's debugger stub did not pause the guest: {_shown(said)}")

    async def let_go(self) -> None:
        """The guest goes on, without a debugger."""
        await self._must_be_ok("D")

    async def close(self) -> None:
        """Drops the connection, and what was not sent with it."""
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _must_be_ok(self, packet: str) -> None:
        said = await self._ask(packet)
        if said != b"OK":
            raise LabError(f"QEMU's debugger stub refused {packet}: {_shown(said)}")

    async def _ask(self, packet: str, after: bytes = b"") -> bytes:
        try:
            self._writer.write(encoded(packet.encode()) + after)
            await self._writer.drain()
            await self._reader.readuntil(b"$")  # over the + that QEMU answers each packet with
            data = (await self._reader.readuntil(b"#"))[:-1]
            checksum = await self._reader.readexactly(2)
            self._writer.write(b"+")
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            raise LabError(f"QEMU's debugger stub went away at {packet}: {error}") from error
        if b"%02x" % (sum(data) % 256) != checksum.lower():
            raise LabError(f"QEMU's debugger stub answered {packet} by {_shown(data)}, damaged")
        return data


def encoded(data: bytes) -> bytes:
    """The packet with that data, which has none of the characters that would have to be escaped."""
    return b"$%b#%02x" % (data, sum(data) % 256)


def _shown(said: bytes) -> str:
    return said.decode("ascii", "replace") or "nothing"


def _confine(parent: int) -> None:
    """In the child, before exec: die with the parent, and write no file beyond all reason."""
    tie_to(parent, signal.SIGKILL)
    # Above the file limit a write fails (EFBIG) instead of ending QEMU by SIGXFSZ.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    limit = FILE_LIMIT_BYTES if hard == resource.RLIM_INFINITY else min(FILE_LIMIT_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Emulator:
    """A running QEMU, and a wall-clock limit that all that waits for it shares."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._qmp = QMPClient("kdelta")
        self._debugger: Debugger | None = None
        self._folder = folder
        self._seconds_left = seconds
        self._exited: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def start(
        self, argv: Sequence[str], passed: Sequence[int], core: int | None = None
    ) -> None:
        """Start that program in its folder, with those file descriptors, on that core."""
        parent = os.getpid()
        with lab_errors("writing in", self._folder):
            complaints = (self._folder / "stderr").open("wb")
        with complaints as stderr:
            self._process = await asyncio.create_subprocess_exec(
                *argv, cwd=self._folder, env=environ_with(), stdin=asyncio.subprocess.DEVNULL,
                stdout=stderr, stderr=stderr, pass_fds=passed, preexec_fn=lambda: _confine(parent),
                start_new_session=True,
            )  # fmt: skip
        if core is not None:
            with contextlib.suppress(OSError):  # it has ended
                os.sched_setaffinity(self._process.pid, {core})
        self._exited = asyncio.ensure_future(self._process.wait())

    async def connect(self, qmp: socket.socket, stub: socket.socket | None) -> None:
        """Connects to its monitor, and to its debugger's stub if that is given; LabError, with what
        QEMU printed, when it ends instead.
        """
        try:
            await self._qmp.connect(qmp)
        # The library asserts that QEMU has not ended since the connection was there.
        except (QMPError, EOFError, OSError, AssertionError) as error:
            await self._end()
            said = self.stderr() or "it said nothing"
            raise LabError(f"QEMU did not start: {said}") from error
        finally:
            _retrieve_errors(self._qmp)
        if stub is not None:
            self._debugger = await Debugger.connect(stub)

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

    async def hand(self, name: str, file: BinaryIO) -> None:
        """Give QEMU that open file, under that name."""
        try:
            self._qmp.send_fd_scm(file.fileno())
        except OSError as error:
            raise LabError(f"QEMU went away: {self.stderr() or error}") from error
        await self.command("getfd", fdname=name)

    async def run_to(self, address: int, bytes_of_insn: int) -> str:
        """Starts the guest, and waits until it is about to execute that instruction, for the first
        time: "stopped", or how else it ended: "exited", "panic", "timeout" or "flood". LabError if
        QEMU was ended from outside.
        """
        return await self._wait(self.debugger.run_to(address, bytes_of_insn))

    async def wait_exit(self) -> str:
        """Wait until QEMU ends, which is "exited", "panic", "timeout" or "flood"; LabError as of
        `run_to`.
        """
        return await self._wait(None)

    async def _wait(self, stop: Coroutine[Any, Any, None] | None) -> str:
        stopped = asyncio.ensure_future(stop) if stop is not None else None
        try:
            while True:
                waiting = {self._exited} | ({stopped} if stopped else set())
                began = asyncio.get_running_loop().time()
                await asyncio.wait(waiting, timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
                # While kdelta is stopped, as by Ctrl-Z, nothing is late.
                took = asyncio.get_running_loop().time() - began
                self._seconds_left -= min(took, _MOST_AT_ONCE_SECONDS)
                if stopped and stopped.done():
                    return await self._how_stopped(stopped)
                if self._exited.done():
                    return self._exited_itself()
                if self._console_bytes() > CONSOLE_LIMIT_BYTES:
                    return "flood"
                if AFTER_PANIC in self._console_tail():
                    return "panic"
                if self._seconds_left < 0:
                    return "timeout"
        finally:
            if stopped:
                stopped.cancel()

    async def _how_stopped(self, stopped: "asyncio.Future[None]") -> str:
        """A guest that turned itself off takes the debugger's stub with it."""
        if stopped.exception():
            await asyncio.wait([self._exited], timeout=_SECONDS_TO_EXIT)
            if self._exited.done():
                return self._exited_itself()
        stopped.result()
        return "stopped"

    def _exited_itself(self) -> str:
        """What the guest did, or QEMU; a signal from outside says nothing of either."""
        number = -(self.exit_code or 0)
        if asked := _ASKED_TO_END.search(self.stderr()):
            number = int(asked[1])
        if number <= 0 or number in _CRASHES:
            return "exited"
        raise LabError(
            f"QEMU was ended from outside, by signal {number}",
            "ask again; a host without memory ends programs by signal 9: -j 1 runs one guest at a"
            " time, and dmesg says more",
        )

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
        return self._process.returncode if self._process else None

    def stderr(self) -> str:
        """What QEMU complained of, shortened."""
        with contextlib.suppress(FileNotFoundError):
            return (self._folder / "stderr").read_text(errors="replace").strip()[-2000:]
        return ""

    async def close(self) -> None:
        """End QEMU, whatever state it is in, and wait until it is gone."""
        await self._end()
        if self._debugger:
            await self._debugger.close()
        with contextlib.suppress(Exception):
            await self._qmp.disconnect()

    async def _end(self) -> None:
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await asyncio.shield(self._exited)


async def _finished(work: Coroutine[Any, Any, None]) -> None:
    """Awaits that work to its end, also when the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    for ended in (cancelled, task.exception()):
        if ended:
            raise ended


@contextlib.asynccontextmanager
async def emulator(
    argv: Sequence[str],
    folder: Path,
    seconds: float,
    *,
    debugged: bool = False,
    inherited: tuple[int, ...] = (),
    core: int | None = None,
) -> AsyncIterator[Emulator]:
    """Start QEMU in `folder`, connect to it by inherited sockets, and end it on the way out. When
    it is `debugged`, its guest waits for the debugger. inherited: more file descriptors for it.
    core: the one that it is to stay on, if any.

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
        stub_fd = (stub_of_qemu.fileno(),) if debugged else ()
        passed = (qmp_of_qemu.fileno(), *stub_fd, *inherited)
        running = Emulator(folder, seconds)
        try:
            await _finished(running.start([*argv, *words], passed, core))
            qmp_of_qemu.close()
            stub_of_qemu.close()
            await running.connect(qmp, stub if debugged else None)
            yield running
        finally:
            await _finished(running.close())


def _retrieve_errors(client: QMPClient) -> None:
    """Retrieve the error that ends the client's readers when QEMU is killed: nothing awaits them at
    Ctrl-C, and asyncio would print a traceback. The library has no public name for them.
    """
    readers: asyncio.Future[Any] | None = getattr(client, "_bh_tasks", None)
    if readers is not None:
        readers.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
