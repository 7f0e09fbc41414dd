# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest whose program asks the host for files while it runs: by messages, answered by pieces.

The plugin writes each message to its file at once, and waits for each piece of the job's file. Here
both are pipes: while the host answers, QEMU's CPU waits within one instruction, and no time passes
in the guest.
"""

import asyncio
import contextlib
import os
import shlex
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from kdelta.guests.job import PIECE_BYTES
from kdelta.host.files import lab_errors
from kdelta.machines.chunks import HEAD
from kdelta.machines.outcome import GuestOutcome, boot_failure, read_console, workload_outcome
from kdelta.machines.process import emulator
from kdelta.machines.tcg import Guest, Setting, Snapshot, qemu_argv, to_the_end, write_inputs
from kdelta.spec.errors import LabError
from kdelta.spec.run import RunStatus

Answer = Callable[[str], bytes]
"""Returns the archive that answers a program's question."""

ASK = "ask"
"""The type of message that is a question."""


async def run_answering(
    guest: Guest, job: bytes, setting: Setting, snapshot: Snapshot | None, answer: Answer
) -> GuestOutcome:
    """Run a job uncounted, and answer what its program asks. What `answer` raises ends the run."""
    write_inputs(guest, setting, b"")
    argv = qemu_argv(guest, setting.folder, snapshot, count=False)
    setting.echo(shlex.join(argv))
    began = asyncio.get_running_loop().time()
    async with open_pipes(setting.folder, answer) as pipes:
        pipes.send(job)
        async with emulator(
            argv, setting.folder, setting.seconds, debugged=snapshot is None
        ) as qemu:
            running = asyncio.ensure_future(to_the_end(qemu, guest, setting, snapshot))
            try:
                waiting: set[asyncio.Future[Any]] = {running, pipes.failed}
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if pipes.failed.done():
                    pipes.failed.result()
                booted, ended = await running
            finally:
                running.cancel()
            code, complaint = qemu.exit_code, qemu.stderr()
        pipes.drain()
    console = read_console(setting.folder)
    took = asyncio.get_running_loop().time() - began
    if booted != "stopped":
        why = boot_failure(booted, console, code)
        return GuestOutcome(RunStatus.BOOT_FAILED, why, console, took, pipes.messages)
    if ended == "exited" and code:
        said = complaint or "it said nothing"
        raise LabError(f"QEMU ended with {code}: {said}", "run again with -v to see its command")
    status, detail = workload_outcome(ended, console, pipes.messages, setting.seconds)
    return GuestOutcome(status, detail, console, took, pipes.messages)


class Pipes:
    """Both ends of the plugin's files. Each is open for reading and writing, so that neither side
    waits for the other to open it, and none sees its end.
    """

    def __init__(self, to_guest: int, from_guest: int, answer: Answer) -> None:
        self._to_guest, self._from_guest = to_guest, from_guest
        self._answer = answer
        self._loop = asyncio.get_running_loop()
        self._read, self._unsent = bytearray(), bytearray()
        self.messages: dict[str, bytes] = {}
        self.failed: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(from_guest, self._readable)

    def close(self) -> None:
        """Reads and answers no more."""
        self._loop.remove_reader(self._from_guest)
        self._loop.remove_writer(self._to_guest)
        self.failed.cancel()

    def send(self, data: bytes) -> None:
        """Sends it as whole pieces: the plugin reads so many bytes at a time."""
        self._unsent += data + b"\0" * (-len(data) % PIECE_BYTES)
        self._writable()

    def drain(self) -> None:
        """Reads what is left when nothing more comes."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self._take(os.read(self._from_guest, 1 << 16))

    def _writable(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._unsent:
                sent = os.write(self._to_guest, self._unsent)
                del self._unsent[:sent]
        self._loop.remove_writer(self._to_guest)
        if self._unsent:
            self._loop.add_writer(self._to_guest, self._writable)

    def _readable(self) -> None:
        try:
            self._take(os.read(self._from_guest, 1 << 16))
        except Exception as error:  # noqa: BLE001 - for the caller of the run, not for the loop
            self._loop.remove_reader(self._from_guest)
            if not self.failed.done():
                self.failed.set_exception(error)

    def _take(self, data: bytes) -> None:
        self._read += data
        while len(self._read) >= HEAD.size:
            tag, _, size = HEAD.unpack_from(self._read)
            if len(self._read) < HEAD.size + size:
                return
            payload = bytes(self._read[HEAD.size : HEAD.size + size])
            del self._read[: HEAD.size + size]
            if tag == b"MSG ":
                self._message(payload)

    def _message(self, payload: bytes) -> None:
        kind, _, rest = payload.partition(b"\n")
        name = kind.decode("ascii", "replace")
        if name == ASK:
            self.send(self._answer(os.fsdecode(rest)))
        else:
            self.messages[name] = self.messages.get(name, b"") + rest


@contextlib.asynccontextmanager
async def open_pipes(folder: Path, answer: Answer) -> AsyncIterator[Pipes]:
    """Makes the plugin's files in the folder pipes, and answers what comes."""
    with contextlib.ExitStack() as stack:
        ends = []
        with lab_errors("writing in", folder):
            (folder / "job").unlink()
            for name in ("job", "counts"):
                os.mkfifo(folder / name)
                ends.append(os.open(folder / name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
                stack.callback(os.close, ends[-1])
        pipes = Pipes(ends[0], ends[1], answer)
        stack.callback(pipes.close)
        yield pipes
