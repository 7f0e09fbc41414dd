# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest whose serial line is the user's terminal: it waits in real time, and is not counted."""

import asyncio
import contextlib
import math
import re
import shlex
import socket
from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from kdelta.machines.chunks import read_messages
from kdelta.machines.outcome import CONSOLE_KEPT_BYTES, boot_failure, workload_outcome
from kdelta.machines.process import AFTER_PANIC, Emulator, emulator
from kdelta.machines.tcg import (
    Guest,
    Setting,
    Snapshot,
    boot_to,
    qemu_argv,
    resume,
    write_inputs,
)

BEGIN = b"\033]kdelta;begin\007"
END = b"\033]kdelta;end\007"
"""Between these the guest's program prints: native/terminal sends them. What the kernel and the
agent print before and after that is not shown.
"""
_PIECE_BYTES = 1 << 16
_SECONDS_TO_EXIT = 10.0


class Keyboard(Protocol):
    """Where what is typed goes to."""

    def send(self, typed: bytes) -> None:
        """Sends it to the guest."""

    def leave(self) -> None:
        """Ends the guest."""


class Screen(Protocol):
    """The user's side of a guest's terminal."""

    def begin(self, keyboard: Keyboard) -> None:
        """The program begins: what is typed from now on is for it."""

    def show(self, printed: bytes) -> None:
        """The guest has printed that."""


class TerminalEnd(msgspec.Struct, frozen=True):
    """How a guest with a terminal ended: by the exit code of its program; where that is None, the
    user left, or `failure` says what went wrong, before or after the program had `begun`.
    """

    code: int | None = None
    begun: bool = True
    failure: str = ""


class Window:
    """Cuts out of all that a guest prints what its program does."""

    def __init__(self) -> None:
        self.begun = False
        self.ended = False
        self._held = b""

    def shown(self, printed: bytes) -> bytes:
        """The part of the next bytes that is to be shown, with what was held back before."""
        text, self._held = self._held + printed, b""
        if not self.begun:
            _, found, rest = text.partition(BEGIN)
            if not found:
                self._held = text[-len(BEGIN) :]
                return b""
            self.begun, text = True, rest
        if self.ended:
            return b""
        text, found, _ = text.partition(END)
        if found:
            self.ended = True
            return text
        held = next((n for n in range(len(END) - 1, 0, -1) if text.endswith(END[:n])), 0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]


class _Line:
    """Our end of a guest's serial line: a `Keyboard` for what is typed, and a reader."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, screen: Screen
    ) -> None:
        self._reader, self._writer, self._screen = reader, writer, screen
        self.window = Window()
        self.begun = asyncio.Event()
        self.left = asyncio.Event()
        self.tail = b""

    def send(self, typed: bytes) -> None:
        self._writer.write(typed)

    def leave(self) -> None:
        self.left.set()

    async def read(self) -> None:
        """Shows what the program prints, until it or the guest has ended."""
        while not self.window.ended and AFTER_PANIC not in self.tail:
            printed = b""
            with contextlib.suppress(ConnectionError):  # QEMU ended with keys still unread
                printed = await self._reader.read(_PIECE_BYTES)
            if not printed:
                return
            self.tail = (self.tail + printed)[-CONSOLE_KEPT_BYTES:]
            shown = self.window.shown(printed)
            if self.window.begun and not self.begun.is_set():
                self.begun.set()
                self._screen.begin(self)
            if shown:
                self._screen.show(shown)

    async def close(self) -> None:
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


async def use_terminal(
    guest: Guest, job: bytes, setting: Setting, start: Snapshot | None, screen: Screen
) -> TerminalEnd:
    """Runs a job whose program is native/terminal, from that snapshot or from power-on, until that
    or the user ends it. The setting's `seconds` are for the way to the program's begin.
    """
    write_inputs(guest, setting, job)
    async with _connected(guest, setting, start, screen) as (qemu, line):
        reading = asyncio.ensure_future(line.read())
        try:
            ended = await _begin(qemu, guest, setting, start)
            if ended == "stopped":
                ended = await _followed(line, reading, setting.seconds)
            if ended == "exited":
                with contextlib.suppress(TimeoutError):  # some machines stay after a panic
                    await asyncio.wait_for(qemu.wait_exit(), _SECONDS_TO_EXIT)
        finally:
            reading.cancel()
        code = qemu.exit_code
    if ended == "left":
        return TerminalEnd()
    console = line.tail.decode("utf-8", "replace").replace("\r\n", "\n")
    messages = read_messages(setting.folder / "counts")
    result = re.fullmatch(rb"exit (\d+)\s*", messages.get("result", b""))
    if line.window.ended and result:
        return TerminalEnd(int(result[1]))
    if (ended == "exited" and "hello" in messages) or start:
        failure = workload_outcome(ended, console, messages, setting.seconds)[1]
    else:
        failure = boot_failure(ended, console, code)
    return TerminalEnd(begun=line.begun.is_set(), failure=failure)


@contextlib.asynccontextmanager
async def _connected(
    guest: Guest, setting: Setting, start: Snapshot | None, screen: Screen
) -> AsyncIterator[tuple[Emulator, _Line]]:
    """The guest's QEMU, with the other end of its serial line."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        fd = theirs.fileno()
        argv = qemu_argv(guest, setting.folder, start, count=False, terminal=fd)
        setting.echo(shlex.join(argv))
        async with emulator(
            argv, setting.folder, math.inf, debugged=start is None, inherited=(fd,)
        ) as qemu:
            theirs.close()
            ours.setblocking(False)
            line = _Line(*await asyncio.open_connection(sock=ours), screen)
            try:
                yield qemu, line
            finally:
                await line.close()


async def _begin(qemu: Emulator, guest: Guest, setting: Setting, start: Snapshot | None) -> str:
    """Lets the guest run from there; "stopped", or how else its boot ended."""
    if start:
        await resume(qemu, start)
        return "stopped"
    try:
        ended = await asyncio.wait_for(boot_to(qemu, guest, guest.stop_address), setting.seconds)
    except TimeoutError:
        return "timeout"
    if ended == "stopped":
        await qemu.debugger.let_go()
    return ended


async def _followed(line: _Line, reading: "asyncio.Task[None]", seconds: float) -> str:
    """Until the guest has ended ("exited") or the user left ("left"), or the program did not begin
    in time ("timeout").
    """
    begun, left = (asyncio.ensure_future(event.wait()) for event in (line.begun, line.left))
    first = asyncio.FIRST_COMPLETED
    try:
        await asyncio.wait({begun, reading}, timeout=seconds, return_when=first)
        if not (begun.done() or reading.done()):
            return "timeout"
        await asyncio.wait({left, reading}, return_when=first)
        if not reading.done():
            return "left"
        reading.result()  # or what went wrong at the user's side
        return "exited"
    finally:
        begun.cancel()
        left.cancel()
