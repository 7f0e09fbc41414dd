# SPDX-License-Identifier: GPL-2.0-or-later
"""What is reported to QEMU's debugger stub, and what is made of its answers."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

import pytest

from kdelta.machines.process import Debugger, encoded
from kdelta.spec.errors import LabError

STOP = ["T05thread:01;", "OK", "T05thread:01;", "OK"]


class Stub:
    """Answers each packet with the next of its answers, and keeps what it was asked."""

    def __init__(self, answers: Sequence[str]) -> None:
        self.answers = [encoded(answer.encode()) for answer in answers]
        self.asked: list[bytes] = []

    async def serve(self, theirs: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=theirs)
        while self.answers:
            data = await reader.readuntil(b"#")
            await reader.readexactly(2)
            self.asked.append(data.lstrip(b"+\x03"))
            writer.write(b"+" + self.answers.pop(0))
            await writer.drain()
        writer.close()


def log(stub: Stub, act: Callable[[Debugger], Awaitable[None]]) -> None:
    async def go() -> None:
        ours, theirs = socket.socketpair()
        serving = asyncio.ensure_future(stub.serve(theirs))
        debugger = await Debugger.connect(ours)
        try:
            await act(debugger)
        finally:
            await debugger.close()
            await serving

    asyncio.run(go())


def test_a_packet_has_the_sum_of_its_bytes() -> None:
    # As gdb's manual has it: "$OK#9a".
    assert encoded(b"OK") == b"$OK#9a"


def test_the_guest_runs_to_the_instruction_and_is_free_after_it() -> None:
    stub = Stub(STOP)
    log(stub, lambda debugger: debugger.run_to(0x15000, 4))
    assert stub.asked == [b"$?#", b"$Z1,15000,4#", b"$c#", b"$z1,15000,4#"]


def test_letting_go_and_pausing() -> None:
    stub = Stub(["T02thread:01;", "OK"])

    async def act(debugger: Debugger) -> None:
        await debugger.pause()
        await debugger.let_go()

    log(stub, act)
    assert stub.asked == [b"$c#", b"$D#"]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (["T05", "E22"], "refused Z1,15000,4: E22"),
        (["T05", ""], "refused Z1,15000,4: nothing"),
        (["T05", "OK", "T02thread:01;"], "stopped before its snapshot point: T02"),
        (["T05", "OK", "W00"], "stopped before its snapshot point: W00"),
        (["T05", "OK"], "went away at c"),
        ([], "went away at ?"),
    ],
)
def test_answers_that_are_wrong(answers: list[str], said: str) -> None:
    with pytest.raises(LabError) as raised:
        log(Stub(answers), lambda debugger: debugger.run_to(0x15000, 4))
    assert said in raised.value.message


def test_a_damaged_answer() -> None:
    stub = Stub(["T05"])
    stub.answers = [b"$T05#00"]
    with pytest.raises(LabError, match=r"answered \? by T05, damaged"):
        log(stub, lambda debugger: debugger.run_to(0x15000, 4))
