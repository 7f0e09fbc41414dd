# SPDX-License-Identifier: GPL-2.0-or-later
"""Conflicts from the plugin's file: lines by variable, struct and field."""

import struct
from collections.abc import Iterable
from pathlib import Path

import pytest

from kdelta.counts.conflict_file import contested_bytes, read_conflicts
from kdelta.counts.conflicts import Conflicts, decode_conflicts, encode_conflicts
from kdelta.counts.raw import Sources
from kdelta.spec.errors import LabError

from .made_btf import UNION, MadeTypes

TEXT, DATA = 0xFFFFFFFF81000000, 0xFFFFFFFF82000000
DIRECT, PAGES, STACKS = 0xFFFF888000000000, 0xFFFFEA0000000000, 0xFFFFC90000000000
OWN_AREAS = (0xFFFF88803EC00000, 0xFFFF88803ED00000)
STACK = 0xFFFFFFFF
LOCKED = 1
SYMBOLS = f"""\
0000000000000000 A __per_cpu_start
0000000000000100 A runqueues
0000000000000200 A __per_cpu_end
{TEXT:x} T _text
{TEXT + 0x100:x} t reader
{TEXT + 0x200:x} t writer
{DATA:x} D global_count
{DATA + 0x20:x} D neighbour
{DATA + 0x1000:x} B _end
"""
READER, WRITER = TEXT + 0x110, TEXT + 0x210
CACHES = (("dentry", 192, 1), ("kmalloc-64", 64, 5), ("lockref", 8, 3))

Row = tuple[int, int, int, int, int, int, int]
"""Line, CPU, instruction, reads, writes, bytes read, bytes written."""


def chunk(tag: bytes, payload: bytes) -> bytes:
    return struct.pack("<4sIQ", tag, 0, len(payload)) + payload


def region(name: str, iterations: int) -> bytes:
    head = struct.pack("<I", len(name)) + name.encode() + struct.pack("<QQ", 0, iterations)
    return chunk(b"REGN", head + bytes(32 * iterations) + bytes(32))


def conflicts_chunk(
    lines: Iterable[tuple[int, int, int]],
    rows: Iterable[Row],
    *,
    began_on: int = 0,
    is_cut: bool = False,
    special: int = 0,
) -> bytes:
    """lines: cache, address, start of the object."""
    caches = b"".join(struct.pack("<32sII", name.encode(), *rest) for name, *rest in CACHES)
    table = [struct.pack("<IIQQ", number, *line) for number, line in enumerate(lines)]
    accesses = [
        struct.pack("<IBBBBQQQQQ", line, cpu, 0, special, 0, insn, *rest)
        for line, cpu, insn, *rest in rows
    ]
    return chunk(
        b"CNFL",
        struct.pack("<IIQQ", began_on, is_cut, DIRECT, PAGES)
        + struct.pack("<I", len(CACHES)) + caches
        + struct.pack("<I2Q", 2, *OWN_AREAS)
        + struct.pack("<I", len(table)) + b"".join(table) + b"".join(accesses),
    )  # fmt: skip


def read(
    folder: Path, *chunks: bytes, types: bytes | None = None, symbols: str = SYMBOLS
) -> tuple[Conflicts, ...]:
    (folder / "symbols").write_text(symbols)
    section = MadeTypes().kernel().section() if types is None else types
    head = chunk(b"HEAD", struct.pack("<I", 1) + b"\0lock\0")
    described = chunk(b"BTF ", section) if section else b""
    content = b"".join((head, described, *chunks, chunk(b"END ", b"")))
    (folder / "counts").write_bytes(content)
    return read_conflicts(folder / "counts", Sources(folder / "symbols"))


def shared(line: int, at: int = 0, times: int = 10, size: int = 4) -> list[Row]:
    """CPU 0 writes what CPU 1 reads."""
    bits = ((1 << size) - 1) << at
    return [(line, 0, WRITER, 0, times, 0, bits), (line, 1, READER, times, 0, bits, 0)]


def names(found: Conflicts) -> list[str]:
    return [line.name for line in found.lines]


def test_a_line_is_named_by_what_is_there(tmp_path: Path) -> None:
    lines = [
        (0, DATA, 0),
        (0, OWN_AREAS[1] + 0x100, 0),
        (1, DIRECT + 0x40000, DIRECT + 0x40000),
        (0, PAGES + 64 * 7, 0),
        (2, DIRECT + 0x50000, DIRECT + 0x50000),
        (0, DIRECT + 0x60000, 0),
        (0, STACKS, 0),
    ]
    where = [0x20, 8, 12, 52, 8, 0, 0]
    rows = [row for line, at in enumerate(where) for row in shared(line, at)]
    (found,) = read(tmp_path, region("r", 10), conflicts_chunk(lines, rows))
    assert set(names(found)) == {
        "neighbour",
        "runqueues of CPU 1.cpu_load[0]",
        "dentry.d_lockref.count",
        "page._refcount",
        "kmalloc-64+0x8 by writer",
        "content of a page by writer",
        "unknown memory by writer",
    }
    (line,) = (line for line in found.lines if line.name.startswith("dentry"))
    assert (line.is_true, line.is_steady, line.count) == (True, True, 1)
    assert [(one.reads, one.writes) for one in line.cpus] == [(0, 10), (10, 0)]
    assert {use.function for use in line.uses} == {"reader", "writer"}


def test_without_types_lines_are_by_symbol_and_offset(tmp_path: Path) -> None:
    lines = [(0, DATA, 0), (0, OWN_AREAS[0] + 0x100, 0), (0, PAGES, 0)]
    rows = [*shared(0, 4), *shared(1, 8), *shared(2, 52)]
    (found,) = read(tmp_path, region("r", 10), conflicts_chunk(lines, rows), types=b"")
    assert set(names(found)) == {
        "global_count+0x4 by writer",
        "runqueues of CPU 0+0x8 by writer",
        "page+0x34 by writer",
    }


def test_fields_are_named_though_the_first_region_has_no_lines(tmp_path: Path) -> None:
    section = MadeTypes().kernel().section()
    lines = [(1, DIRECT + 0x40000, DIRECT + 0x40000)]
    chunks = (
        *(region("idle", 10), conflicts_chunk([], []), chunk(b"BTF ", section)),
        *(region("r", 10), conflicts_chunk(lines, shared(0, 12))),
    )
    assert [names(one) for one in read(tmp_path, *chunks, types=b"")] == [
        [],
        ["dentry.d_lockref.count"],
    ]


def test_what_shares_a_line_alone_is_false(tmp_path: Path) -> None:
    rows: list[Row] = [
        (0, 0, WRITER, 0, 10, 0, 0xF),
        (0, 1, READER, 10, 0, 0xF << 32, 0),
    ]
    (found,) = read(tmp_path, region("r", 10), conflicts_chunk([(0, DATA, 0)], rows))
    (line,) = found.lines
    assert not line.is_true
    assert line.name == "global_count"  # that is written
    assert {use.place for use in line.uses} == {"global_count", "neighbour"}


@pytest.mark.parametrize("empty", ["__key.0", "__key", "_edata", "__start_once", "__bss_start"])
def test_what_takes_no_space_names_nothing(tmp_path: Path, empty: str) -> None:
    symbols = SYMBOLS + f"{DATA:x} b {empty}\n{DATA + 0x40:x} b {empty}\n"
    content = conflicts_chunk([(0, DATA, 0), (0, DATA + 0x40, 0)], [*shared(0), *shared(1)])
    (found,) = read(tmp_path, region("r", 10), content, symbols=symbols)
    assert sorted(names(found)) == sorted(["global_count", empty])


def apart(line: int, written: int, read: int, times: int = 10) -> list[Row]:
    """CPU 0 writes four bytes at one place, CPU 1 reads as many at another."""
    bits = [0xF << at for at in (written, read)]
    return [(line, 0, WRITER, 0, times, 0, bits[0]), (line, 1, READER, times, 0, bits[1], 0)]


@pytest.mark.parametrize(
    ("line", "rows", "is_placed"),
    [
        ((0, DATA, 0), apart(0, 0, 0x20), True),
        ((0, DATA, 0), apart(0, 0, 0x10), False),  # of one variable, wherever that is
        ((0, DATA, 0), [*apart(0, 0, 0x10), *apart(0, 0x20, 0x30)], False),
        ((0, DATA, 0), [*apart(0, 0, 0x10, 2), *apart(0, 0, 0x20)], True),
        ((0, OWN_AREAS[1] + 0x140, 0), apart(0, 0, 0x20), False),
        ((3, DIRECT + 0x50000, DIRECT + 0x50000), apart(0, 0, 8), False),  # where the heap has it
        ((0, DIRECT + 0x60000, 0), apart(0, 0, 8), False),
        ((0, DATA, 0), shared(0), False),
    ],
)
def test_false_sharing_is_placement_where_no_variable_has_it_alone(
    tmp_path: Path, line: tuple[int, int, int], rows: list[Row], is_placed: bool
) -> None:
    (found,) = read(tmp_path, region("r", 10), conflicts_chunk([line], rows))
    assert [one.is_placed for one in found.steady] == [is_placed]


def neighbors(found: Conflicts) -> dict[str, tuple[str, int, bool]]:
    """Fields that CPUs do not contend for, in lines that they do: by whom, how often, placed."""
    return {
        one.place: (one.function, one.accesses, one.is_placed)
        for line in found.steady
        for one in line.fields
        if one.is_neighbor
    }


OBJECT = (1, DIRECT + 0x40000, DIRECT + 0x40000)
PLACED = {"dentry.d_parent": ("reader", 10, True)}


@pytest.mark.parametrize(
    ("line", "at", "reads", "expected"),
    [
        # a dentry: its lock is written, another field of the same line is read
        (OBJECT, 8, (READER, 1, 10, 16), {"dentry.d_parent": ("reader", 10, False)}),
        (OBJECT, 8, (READER, 1, 5, 16), {"dentry.d_parent": ("reader", 5, False)}),
        (OBJECT, 8, (READER, 1, 4, 16), {}),  # now and then
        (OBJECT, 8, (READER, 0, 10, 16), {}),  # by the CPU that writes
        # an object that begins in the middle of a line, and another variable
        ((1, OBJECT[1], OBJECT[1] + 8), 16, (READER, 1, 10, 24), PLACED),
        ((0, DATA, 0), 0, (READER, 1, 10, 0x20), {"neighbour": ("reader", 10, True)}),
    ],
)
def test_what_is_read_in_a_written_line_is_a_field_of_it(
    tmp_path: Path,
    line: tuple[int, int, int],
    at: int,
    reads: tuple[int, int, int, int],
    expected: dict[str, tuple[str, int, bool]],
) -> None:
    function, cpu, times, where = reads
    rows = [*shared(0, at), (0, cpu, function, times, 0, 0xF << where, 0)]
    (found,) = read(tmp_path, region("r", 10), conflicts_chunk([line], rows))
    assert neighbors(found) == expected


@pytest.mark.parametrize(("times", "steady"), [(10, True), (5, True), (4, False), (1, False)])
def test_a_line_is_steady_from_half_of_the_iterations_on(
    tmp_path: Path, times: int, steady: bool
) -> None:
    rows = shared(0, times=times)
    (found,) = read(tmp_path, region("r", 10), conflicts_chunk([(0, DATA, 0)], rows))
    assert [line.is_steady for line in found.lines] == [steady]
    assert len(found.steady) == steady


def test_what_one_cpu_does_alone_is_not_steady(tmp_path: Path) -> None:
    """It writes and reads in each iteration; the other CPU reads once."""
    rows: list[Row] = [(0, 0, WRITER, 90, 90, 0xF, 0xF), (0, 1, READER, 1, 0, 0xF, 0)]
    (found,) = read(tmp_path, region("r", 10), conflicts_chunk([(0, DATA, 0)], rows))
    assert found.steady == ()


def test_objects_of_one_kind_are_one_row_and_fields_another(tmp_path: Path) -> None:
    start = DIRECT + 0x40000
    lines = [(1, start, start), (1, start + 192, start + 192)]
    rows = [*shared(0, 8), *shared(1, 8)]
    (found,) = read(tmp_path, region("r", 10), conflicts_chunk(lines, rows))
    (line,) = found.lines
    assert (line.name, line.count, line.accesses) == ("dentry.d_lockref.lock", 2, 40)


def test_an_object_in_the_middle_of_a_line_is_named_from_its_own_start(tmp_path: Path) -> None:
    start = DIRECT + 0x40000
    rows = shared(0, 60, size=4)  # of the line at 576 of the slab: 188 bytes into an object's 192
    (found,) = read(
        tmp_path, region("r", 10), conflicts_chunk([(1, start + 128, start)], shared(0, 8) + rows)
    )
    assert any(use.place.startswith("dentry+") for use in found.lines[0].uses)


def test_a_stack_is_one_line_wherever_in_it_something_is(tmp_path: Path) -> None:
    lines = [(STACK, STACKS + 64 * at, STACKS) for at in range(3)]
    rows = [row for line in range(3) for row in shared(line, times=4)]
    (found,) = read(tmp_path, region("r", 10), conflicts_chunk(lines, rows))
    (line,) = found.lines
    assert (line.name, line.where, line.is_steady) == ("kernel stack", "stack", True)


def test_lines_of_all_stacks_are_one_entry_and_the_last(tmp_path: Path) -> None:
    other = STACKS + 0x4000
    lines = [(STACK, STACKS, STACKS), (STACK, other, other), (0, DATA, 0)]
    # Of one stack no byte is shared, and both are accessed more often than the variable.
    rows = [*shared(0, times=50), *apart(1, 0, 0x20, times=50), *shared(2)]
    (found,) = read(tmp_path, region("r", 10), conflicts_chunk(lines, rows))
    assert [(one.name, one.is_true, one.count) for one in found.lines] == [
        ("global_count", True, 1),
        ("kernel stack", True, 2),
    ]


def test_locked_writes_are_counted(tmp_path: Path) -> None:
    payload = conflicts_chunk([(0, DATA, 0)], shared(0), special=LOCKED)
    (found,) = read(tmp_path, region("r", 10), payload)
    assert [one.locked for one in found.lines[0].cpus] == [10, 0]


def test_the_cpu_that_began_comes_first(tmp_path: Path) -> None:
    payload = conflicts_chunk([(0, DATA, 0)], shared(0), began_on=1)
    (found,) = read(tmp_path, region("r", 10), payload)
    assert [(one.reads, one.writes) for one in found.lines[0].cpus] == [(10, 0), (0, 10)]


def test_the_struct_of_a_merged_cache_is_taken_where_its_fields_fit(tmp_path: Path) -> None:
    start = DIRECT + 0x40000
    good = conflicts_chunk([(3, start, start)], shared(0, 4, size=4))
    bad = conflicts_chunk([(3, start, start)], shared(0, 2, size=4))
    fitting, other = read(tmp_path, region("a", 10), good, region("b", 10), bad)
    assert names(fitting) == ["lockref?.count"]
    assert names(other) == ["lockref?+0x2 by writer"]


def union_types() -> bytes:
    """A page with a union, and a description of page tables in its place."""
    made = MadeTypes()
    u32, u64 = made.number("unsigned int", 4), made.number("unsigned long", 8)
    pool = made.struct("", 16, ("pp_magic", u64, 0), ("pp_count", u64, 8))
    file = made.struct("", 16, ("order", u32, 0), ("private", u64, 8))
    either = made.struct("", 16, ("", pool, 0), ("", file, 0), kind=UNION)
    made.struct("page", 64, ("flags", u64, 0), ("", either, 8))
    made.struct("ptdesc", 24, ("__flags", u64, 0), ("ptl", u32, 16))
    return made.section()


@pytest.mark.parametrize(
    ("at", "sizes", "expected"),
    [
        (8, (4,), {"page.order"}),
        (8, (8,), {"page.pp_magic"}),
        (8, (2,), {"page.pp_magic/order"}),
        (8, (4, 8), {"page.order", "page.pp_magic"}),
        (16, (8,), {"page.pp_count/private"}),
        (16, (4,), {"ptdesc.ptl"}),
        (16, (4, 1), {"ptdesc.ptl"}),  # a byte of what is accessed as four
        (0, (8,), {"page.flags"}),
    ],
)
def test_a_member_of_a_union_is_named_by_its_width(
    tmp_path: Path, at: int, sizes: tuple[int, ...], expected: set[str]
) -> None:
    rows: list[Row] = [
        (line, cpu, insn + size, reads, writes, seen, written)
        for size in sizes
        for line, cpu, insn, reads, writes, seen, written in shared(0, at, size=size)
    ]
    chunks = region("r", 10), conflicts_chunk([(0, PAGES, 0)], rows)
    (found,) = read(tmp_path, *chunks, types=union_types())
    assert {use.place for use in found.lines[0].uses} == expected


def test_regions_are_kept_as_they_were(tmp_path: Path) -> None:
    chunks = [conflicts_chunk([(0, DATA, 0)], shared(0), is_cut=cut) for cut in (False, True)]
    found = read(tmp_path, region("a", 10), chunks[0], region("b", 0), chunks[1])
    assert [(one.region, one.iterations, one.is_cut) for one in found] == [
        ("a", 10, False),
        ("b", 1, True),
    ]
    assert decode_conflicts(encode_conflicts(found)) == found


def test_damaged_chunks_and_attachments_are_refused(tmp_path: Path) -> None:
    whole = conflicts_chunk([(0, DATA, 0)], shared(0))
    for cut in (20, 60, len(whole) - 17):
        payload = whole[16:][:cut]
        with pytest.raises(LabError, match="conflicts are damaged"):
            read(tmp_path, region("r", 10), chunk(b"CNFL", payload))
    with pytest.raises(LabError, match="conflicts of a run are damaged"):
        decode_conflicts(b'[{"region": 1}]')


def test_contested_bytes_need_a_writer_and_another_cpu() -> None:
    assert contested_bytes([(0, 0, 0b11), (1, 0b10, 0)]) == 0b10
    assert contested_bytes([(0, 0, 0b1), (1, 0, 0b1)]) == 0b1
    assert contested_bytes([(0, 0b1, 0b1)]) == 0
    assert contested_bytes([(0, 0b1, 0), (1, 0b1, 0)]) == 0
