# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's conflicts of accesses that are made up, compared with a search by brute force."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdelta.counts.conflict_file import read_raw
from kdelta.host.emulator import NEWEST_API
from kdelta.host.native import native_folder
from kdelta.machines.chunks import read_chunks
from tests.counts.made_btf import MadeTypes

from .conftest import HERE, SANITIZERS, compile_c

pytestmark = pytest.mark.long

LINE = 64
OWN, INTERRUPTS, OTHER = range(3)
KERNEL, USER = 0xFFFF888000000000, 0x7F0000000000

Access = tuple[bool, int, int, int, int, int]
"""Whether it stores; CPU, instruction, address, the size's shift, context."""


@pytest.fixture(scope="session")
def conflicting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plugin = native_folder() / "plugin"
    parts = ("conflicts", "btf", "listener", "cpus")
    return compile_c(
        tmp_path_factory.mktemp("conflicting") / "conflicting",
        [HERE / "conflicting.c", *(plugin / f"{name}.c" for name in parts)],
        f"-I{plugin}",
        f"-DPLUGIN_API={NEWEST_API}",
        *SANITIZERS,
    )


def chunks_of(program: Path, *regions: Sequence[Access]) -> list[tuple[bytes, memoryview]]:
    words = "next 0 0 0 0 0\n".join(
        "".join(
            f"{'store' if stores else 'load'} {cpu:x} {insn:x} {vaddr:x} {shift:x} {context:x}\n"
            for stores, cpu, insn, vaddr, shift, context in accesses
        )
        for accesses in regions
    )
    done = subprocess.run([program], input=words.encode(), capture_output=True, check=True)
    path = program.parent / "chunks"
    path.write_bytes(done.stdout)
    return list(read_chunks(path))


def found(program: Path, accesses: Sequence[Access]) -> dict[tuple[int, ...], list[int]]:
    """Reads, writes and bytes of each by line, instruction, CPU and context."""
    raw = read_raw(chunks_of(program, accesses)[-1][1])
    lines = {int(row["number"]): int(row["vaddr"]) & 0xFFFFFFFF for row in raw.lines}
    assert all(int(row["special"]) == int(row["insn"]) & 1 for row in raw.accesses)
    return {
        (lines[int(row["line"])], int(row["insn"]), int(row["cpu"]), int(row["context"])): [
            int(row[name]) for name in ("reads", "writes", "bytes_read", "bytes_written")
        ]
        for row in raw.accesses
    }


def expected(accesses: Sequence[Access]) -> dict[tuple[int, ...], list[int]]:
    """The same, from every byte of every access."""
    rows: dict[tuple[int, ...], list[int]] = {}
    accessed: dict[int, set[int]] = {}
    written: dict[int, set[int]] = {}
    for stores, cpu, insn, vaddr, shift, context in accesses:
        if context == OTHER:
            continue
        physical = vaddr & 0xFFFFFFFF
        parts: dict[int, int] = {}
        for byte in range(physical, physical + (1 << shift)):
            if byte // 4096 == physical // 4096:
                line = byte // LINE * LINE
                parts[line] = parts.get(line, 0) | 1 << byte % LINE
        for line, bits in parts.items():
            row = rows.setdefault((line, insn, cpu, context), [0, 0, 0, 0])
            row[stores] += 1
            row[2 + stores] |= bits
            accessed.setdefault(line, set()).add(cpu)
            if stores:
                written.setdefault(line, set()).add(cpu)
    return {
        key: row
        for key, row in rows.items()
        if any(accessed[key[0]] - {cpu} for cpu in written.get(key[0], ()))
    }


def near(*starts: int) -> st.SearchStrategy[int]:
    return st.builds(
        lambda start, offset: start + offset, st.sampled_from(starts), st.integers(0, 300)
    )


ACCESSES = st.lists(
    st.tuples(
        st.booleans(),
        st.integers(0, 3),
        st.integers(0, 5),
        near(KERNEL, KERNEL + 4096 - 128, USER, USER + 4096 - 128),
        st.integers(0, 5),
        st.sampled_from((OWN, OWN, INTERRUPTS, OTHER)),
    ),
    max_size=200,
)


@given(ACCESSES)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.slow
def test_conflicts_are_those_of_every_access(conflicting: Path, accesses: Sequence[Access]) -> None:
    assert found(conflicting, accesses) == expected(accesses)


@pytest.mark.slow
def test_thousands_of_lines_are_all_followed(conflicting: Path) -> None:
    accesses: list[Access] = [
        (cpu == 1, cpu, n % 7, KERNEL + n * LINE, 3, OWN) for n in range(20_000) for cpu in (0, 1)
    ]
    assert len(found(conflicting, accesses)) == 2 * 20_000


@pytest.mark.slow
def test_a_line_that_is_read_alone_is_none(conflicting: Path) -> None:
    """As is one that is written by one CPU alone, or by others in background work."""
    accesses: list[Access] = [
        *((False, cpu, 1, KERNEL, 3, OWN) for cpu in range(4)),
        *((stores, 2, 1, KERNEL + LINE, 3, OWN) for stores in (False, True)),
        (True, 0, 1, KERNEL + 2 * LINE, 3, OWN),
        (True, 1, 1, KERNEL + 2 * LINE, 3, OTHER),
    ]
    assert found(conflicting, accesses) == {}


def test_types_come_with_the_first_region_that_has_lines(conflicting: Path) -> None:
    contended: list[Access] = [(True, cpu, 1, KERNEL, 3, OWN) for cpu in (0, 1)]
    chunks = chunks_of(conflicting, [], contended, contended)
    assert [tag for tag, _ in chunks] == [b"CNFL", b"BTF ", b"CNFL", b"CNFL"]
    assert bytes(chunks[1][1]) == b"types"


def test_a_field_is_found_in_unnamed_members(conflicting: Path) -> None:
    section = MadeTypes().kernel().section()

    def offset(*names: str) -> str:
        argv = [str(conflicting), "btf", *names]
        return subprocess.run(argv, input=section, capture_output=True, check=True).stdout.decode()

    assert offset("dentry", "d_lockref") == "8\n"
    assert offset("dentry", "d_flags") == "0\n"
    assert offset("lockref", "count") == "4\n"  # of an unnamed struct of an unnamed union
    assert offset("dentry", "count") == "none\n"
    assert offset("inode", "i_lock") == "none\n"


@pytest.mark.parametrize("cut", [0, 1, 23, 24, 60, -1])
def test_damaged_types_are_none(conflicting: Path, cut: int) -> None:
    section = MadeTypes().kernel().section()[:cut]
    argv = [str(conflicting), "btf", "dentry", "d_lockref"]
    done = subprocess.run(argv, input=section, capture_output=True, check=True)
    assert done.stdout == b"none\n"
