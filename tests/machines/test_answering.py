# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's side of a guest that asks: questions in any pieces, answers in whole ones."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kdelta.guests.job import PIECE_BYTES
from kdelta.machines.answering import Answer, open_pipes
from kdelta.machines.chunks import HEAD
from kdelta.spec.errors import UserError


def message(text: bytes) -> bytes:
    return HEAD.pack(b"MSG ", 0, len(text)) + text


async def asked(folder: Path, answer: Answer, guest: Callable[[int, int], bytes]) -> bytes:
    """What a guest got: a thread with the ends of the pipes that the plugin has."""
    (folder / "job").touch()
    async with open_pipes(folder, answer) as pipes:
        ends = [os.open(folder / name, os.O_RDWR) for name in ("job", "counts")]
        thread = asyncio.ensure_future(asyncio.to_thread(guest, *ends))
        try:
            waiting: set[asyncio.Future[Any]] = {thread, pipes.failed}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if pipes.failed.done():
                os.write(ends[0], bytes(PIECE_BYTES))  # so that the thread ends
                pipes.failed.result()
            return await thread
        finally:
            for end in ends:
                os.close(end)


def read_piece(job: int) -> bytes:
    data = b""
    while len(data) < PIECE_BYTES:
        data += os.read(job, PIECE_BYTES - len(data))
    return data


def test_each_question_is_answered_by_whole_pieces(tmp_path: Path) -> None:
    heard = []

    def answer(name: str) -> bytes:
        heard.append(name)
        return os.fsencode(name) * 3000

    def guest(job: int, counts: int) -> bytes:
        data = HEAD.pack(b"HEAD", 0, 4) + bytes(4) + message(b"note\nany") + message(b"ask\nc/a")
        for byte in data:
            os.write(counts, bytes([byte]))
        first = b"".join(read_piece(job) for _ in range(3))
        os.write(counts, message(b"ask\ns/\xff\n"))
        return first + b"".join(read_piece(job) for _ in range(3))

    got = asyncio.run(asked(tmp_path, answer, guest))
    assert heard == ["c/a", "s/\udcff\n"]
    answers = got[: 3 * PIECE_BYTES], got[3 * PIECE_BYTES :]
    assert [one.rstrip(b"\0") for one in answers] == [b"c/a" * 3000, b"s/\xff\n" * 3000]


def test_what_the_answer_raises_reaches_the_caller(tmp_path: Path) -> None:
    def answer(name: str) -> bytes:
        raise UserError(f"too much: {name}", "")

    def guest(job: int, counts: int) -> bytes:
        os.write(counts, message(b"ask\nc/a"))
        return read_piece(job)

    with pytest.raises(UserError, match="too much: c/a"):
        asyncio.run(asked(tmp_path, answer, guest))
