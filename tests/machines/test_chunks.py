# SPDX-License-Identifier: GPL-2.0-or-later
"""The chunks of the plugin's file: read whole or by their tags, and cut short."""

import os
import struct
from pathlib import Path

import pytest

from kdelta.machines.chunks import (
    chunk_payloads,
    is_whole_recording,
    kept_messages,
    merged_messages,
    read_chunks,
    read_messages,
)

CHUNKS = [
    (b"HEAD", b"\1\0\0\0"),
    (b"MSG ", b"note\none, "),
    (b"SEEN", bytes(24)),
    (b"MSG ", b"result\nexit 0"),
    (b"MSG ", b"note\ntwo\nlines"),
    (b"END ", b""),
]
WHOLE = b"".join(struct.pack("<4sIQ", tag, 0, len(held)) + held for tag, held in CHUNKS)


@pytest.mark.parametrize("kept_bytes", range(len(WHOLE) + 1))
def test_file_that_is_cut_anywhere_has_the_chunks_before(tmp_path: Path, kept_bytes: int) -> None:
    path = tmp_path / "counts"
    path.write_bytes(WHOLE[:kept_bytes])
    found = [(tag, bytes(held)) for tag, held in read_chunks(path)]
    assert found == CHUNKS[: len(found)]
    for tag in {tag for tag, _ in CHUNKS}:
        assert list(chunk_payloads(path, tag)) == [held for other, held in found if other == tag]
    assert is_whole_recording(path) == (kept_bytes == len(WHOLE))


def test_messages_of_one_type_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    path.write_bytes(WHOLE)
    wanted = {"note": b"one, two\nlines", "result": b"exit 0"}
    assert read_messages(path) == kept_messages(path) == wanted


def test_a_program_does_not_change_the_agents_facts(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    sent = (b"cpuinfo\nflags", b"note\nboot", b"cpuinfo\nlie", b"result\nexit 0")
    path.write_bytes(b"".join(struct.pack("<4sIQ", b"MSG ", 0, len(one)) + one for one in sent))
    found = read_messages(path)
    assert found == {"cpuinfo": b"flags", "note": b"boot", "result": b"exit 0"}
    lies = {"cpuinfo": b"lie", "note": b"later", "kallsyms": b"symbols"}
    assert merged_messages(found, lies) == {**lies, "cpuinfo": b"flags", "result": b"exit 0"}


def test_kept_messages_are_those_of_the_file_as_it_is_now(tmp_path: Path) -> None:
    path = tmp_path / "boot"
    path.write_bytes(WHOLE)
    assert kept_messages(path)["result"] == b"exit 0"
    path.write_bytes(WHOLE.replace(b"exit 0", b"exit 1"))
    os.utime(path, ns=(1, 1))
    assert kept_messages(path)["result"] == b"exit 1"
