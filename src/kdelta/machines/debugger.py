# SPDX-License-Identifier: GPL-2.0-or-later
"""Stops a guest at an address by QEMU's debugger stub: the few packets of gdb's protocol for that.

The format is that of gdb's manual, "Remote Protocol": $DATA#CHECKSUM, each answered by +.
"""

import asyncio
import socket

from kdelta.spec.errors import LabError

_STOPPED_BY_TRAP = b"T05"
_STOPPED_BY_USER = b"T02"
_BREAK = b"\x03"
_LIMIT_BYTES = 1 << 16


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

    def close(self) -> None:
        """Leaves QEMU alone."""
        self._writer.close()

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
