# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin's trace of blocks and accesses that are made up: it keeps what was executed."""

import collections
import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdelta.counts.trace import DATA, Trace
from kdelta.counts.trace_file import read_traces
from kdelta.host.emulator import NEWEST_API
from kdelta.host.native import native_folder

from .conftest import HERE, SANITIZERS, compile_c

pytestmark = pytest.mark.long

BASE = 0xFFFFFFFF81000000
PIECE_LEAST, PIECE_MOST = 32, 1024

Run = tuple[str, int]
"""A line to the program: "run" a block, "cut", "load" or "store"."""


@pytest.fixture(scope="session")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plugin = native_folder() / "plugin"
    return compile_c(
        tmp_path_factory.mktemp("traced") / "traced",
        [HERE / "traced.c", *(plugin / f"{name}.c" for name in PARTS)],
        f"-I{plugin}",
        f"-DPLUGIN_API={NEWEST_API}",
        *SANITIZERS,
    )


PARTS = ("trace", "piece", "listener", "cpus", "unit", "data", "x86", "x86_kinds")


class Block:
    """So many bytes at an address, each an instruction for the program; the last one may jump."""

    def __init__(self, address: int, size: int, *, jumps: int = 1, code: int = 0) -> None:
        self.address, self.size, self.jumps, self.code = address, size, jumps, code

    def line(self) -> str:
        code = bytes((self.address + self.code + i) % 251 for i in range(self.size))
        return f"block {code.hex()} {self.address:x} {self.jumps}\n"


def chunk(tag: bytes, payload: bytes) -> bytes:
    return struct.pack("<4sIQ", tag, 0, len(payload)) + payload


def trace_of(
    program: Path,
    blocks: Sequence[Block],
    runs: Sequence[Run],
    *,
    limit: int = 1 << 20,
    data: bool = False,
) -> Trace:
    """The first run is the region's begin and the last its end, both within their blocks. Blocks
    that are not run were never translated.
    """
    used = sorted({number for word, number in runs if word == "run"})
    runs = [(word, used.index(n) if word == "run" else n) for word, n in [*runs, ("cut", 0)]]
    blocks = [blocks[number] for number in used]
    first, last = (next(n for word, n in order if word == "run") for order in (runs, runs[::-1]))
    words = [f"limit {limit:x}\n", "data 1\n" if data else "", *(block.line() for block in blocks)]
    begun = [f"begin {first:x}\n", *(f"{word} {n:x}\n" for word, n in runs[1:]), f"end {last:x}\n"]
    done = subprocess.run(
        [program], input="".join(words + begun).encode(), capture_output=True, check=True
    )
    entered: collections.Counter[tuple[int, int]] = collections.Counter()
    waiting: list[int] = []
    for word, number in runs[1:]:  # what begins the region was entered before
        if word == "run":
            waiting.append(number)
        elif word == "cut":
            entered.update((block, number) for block in waiting)
            waiting.clear()
    rows = [
        struct.pack("<II4Q", block, context << 16, n, 0, 0, 0)
        for (block, context), n in entered.items()
    ]
    head = struct.pack("<I", 4) + b"made" + struct.pack("<QQ4Q", 0, 0, *range(4))
    path = program.parent / "counts"
    path.write_bytes(
        chunk(b"REGN", head + b"".join(rows)) + chunk(b"TRCE", done.stdout) + chunk(b"END ", b"")
    )
    (trace,) = read_traces(path)
    return trace


def executed(trace: Trace) -> list[tuple[int, int, int]]:
    """Address, bytes and context of each block, in order."""
    found = []
    for piece, context in zip(trace.sequence, trace.contexts, strict=True):
        items = trace.items[int(trace.starts[piece]) : int(trace.starts[piece + 1])]
        items = items[items < DATA]
        rows = zip(trace.addresses[items].tolist(), trace.sizes[items].tolist(), strict=True)
        found += [(address, size, int(context)) for address, size in rows]
    return found


def told(trace: Trace) -> list[tuple[int, bool]]:
    """Line and whether stored to, of each access, in order."""
    assert trace.data_virtual is not None
    assert trace.data_stores is not None
    found = []
    for piece in trace.sequence:
        for item in trace.items[int(trace.starts[piece]) : int(trace.starts[piece + 1])]:
            if item >= DATA:
                index = int(item) & (DATA - 1)
                found.append((int(trace.data_virtual[index]), bool(trace.data_stores[index])))
    return found


APART = [Block(BASE + 64 * i, 8 + i % 5) for i in range(300)]
few_examples = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.slow
@few_examples
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("run"), st.integers(0, 299)),
            st.tuples(st.just("cut"), st.integers(0, 2)),
        ),
        max_size=400,
    ),
    st.integers(1, 20),
)
def test_any_sequence_comes_back_with_its_contexts(
    traced: Path, runs: list[Run], times: int
) -> None:
    runs = [("run", 0), *runs * times]
    want, waiting = [], []
    for word, number in [*runs, ("cut", 0)]:
        if word == "run":
            waiting.append((APART[number].address, APART[number].size))
        else:
            want += [(*block, number) for block in waiting]
            waiting.clear()
    assert executed(trace_of(traced, APART, runs)) == want


def _sizes(trace: Trace) -> list[int]:
    lengths = np.diff(trace.starts.astype(np.int64))
    return [int(lengths[piece]) for piece in trace.sequence]


def test_what_repeats_is_kept_once_wherever_it_begins(traced: Path) -> None:
    """A long loop, entered in its middle the second time."""
    rng = np.random.default_rng(1)
    body = [("run", int(n)) for n in rng.integers(0, 300, 5000)]
    once = trace_of(traced, APART, [("run", 0), *body])
    often = trace_of(traced, APART, [("run", 0), *body * 10, *body[2500:], *body * 10])
    assert len(once.items) == 5001
    assert len(often.items) < 3 * 5000
    assert all(PIECE_LEAST <= size <= PIECE_MOST for size in _sizes(often)[:-1])
    assert 64 < np.mean(_sizes(often)) < 160


@pytest.mark.parametrize("period", [1, 2, 7, 90, 250])
def test_a_loop_gives_whole_passes(traced: Path, period: int) -> None:
    """Also where the hash never says that a piece ends: the same pieces again and again."""
    for start in range(0, 40, 10):
        body = [("run", (start + n) % 300) for n in range(period)]
        trace = trace_of(traced, APART, [("run", 299), *body * (20_000 // period)])
        times = np.bincount(trace.sequence)
        lengths = np.diff(trace.starts.astype(np.int64))
        repeated = lengths[times > 2]
        assert sum(lengths[times <= 2]) <= 2 * (PIECE_MOST + period)
        assert sum(repeated) % period == 0
        assert len(trace.items) < 3 * PIECE_MOST


def test_what_followed_a_piece_before_is_only_a_guess(traced: Path) -> None:
    cut = ("cut", 0)
    runs = [("run", 0), cut, ("run", 1), cut, ("run", 0), cut, ("run", 2), cut, ("run", 0)]
    blocks = [address for address, _, _ in executed(trace_of(traced, APART, runs))]
    assert blocks == [BASE, BASE + 64, BASE, BASE + 128, BASE]


def test_a_piece_ends_where_the_context_may_change(traced: Path) -> None:
    runs = [("run", 0), ("run", 1), ("cut", 0), ("run", 1), ("cut", 1), ("run", 2)]
    trace = trace_of(traced, APART, runs)
    assert _sizes(trace) == [2, 1, 1]
    assert trace.contexts.tolist() == [0, 1, 0]


# Straight code of 32 bytes that ends with a jump, whole (0), in two parts (1, 2) or in three
# (1, 3, 4); what jumps there (5), and what comes from it (6).
STRAIGHT = [
    Block(BASE, 32),
    Block(BASE, 10, jumps=0),
    Block(BASE + 10, 22),
    Block(BASE + 10, 6, jumps=0),
    Block(BASE + 16, 16),
    Block(BASE + 64, 8),
    Block(BASE + 32, 8),
]


def test_straight_code_is_one_block_however_it_was_translated(traced: Path) -> None:
    def run(*numbers: int) -> Trace:
        return trace_of(traced, STRAIGHT, [("run", 5), *(("run", n) for n in numbers), ("run", 6)])

    whole = run(*[0, 5] * 100)
    parts = [run(*[1, 2, 5] * 100), run(*[1, 3, 4, 5] * 100), run(*[0, 5, 1, 2, 5] * 50)]
    for trace in parts:
        assert trace == whole
    assert whole.insns.tolist() == [32, 8, 8]


def test_straight_code_that_is_interrupted_stays_apart(traced: Path) -> None:
    runs = [("run", 5), ("run", 1), ("cut", 0), ("run", 5), ("cut", 1), ("run", 2)]
    assert executed(trace_of(traced, STRAIGHT, runs)) == [
        (BASE + 64, 8, 0),
        (BASE, 10, 0),
        (BASE + 64, 8, 1),
        (BASE + 10, 22, 0),
    ]


def test_straight_code_that_faults_stays_apart(traced: Path) -> None:
    """What follows it then is elsewhere."""
    runs = [("run", 5), ("run", 1), ("run", 6), ("run", 2)]
    assert [size for _, size, _ in executed(trace_of(traced, STRAIGHT, runs))] == [8, 10, 8, 22]


def test_other_code_at_the_same_address_is_another_block(traced: Path) -> None:
    blocks = [Block(BASE, 8), Block(BASE, 8, code=1)]
    trace = trace_of(traced, blocks, [("run", 0), ("run", 1), ("run", 1)])
    assert trace.addresses.tolist() == [BASE, BASE]
    assert sorted(trace.executions().tolist()) == [1, 2]


@pytest.mark.parametrize("jumps", [1, 2])
def test_code_behind_a_jump_that_was_not_taken_stays_apart(traced: Path, jumps: int) -> None:
    """Even where QEMU might have left the jump out, and did not."""
    blocks = [Block(BASE, 32, jumps=jumps), *STRAIGHT[1:]]
    runs = [("run", 5), ("run", 0), ("run", 6)]
    assert [size for _, size, _ in executed(trace_of(traced, blocks, runs))] == [8, 32, 8]


def test_a_limit_ends_the_trace_for_good(traced: Path) -> None:
    """Pieces that are known, and would fit, do not follow the gap."""
    rng = np.random.default_rng(2)
    known = [("run", int(n)) for n in rng.integers(0, 100, 200)]
    new = [("run", int(n)) for n in rng.integers(0, 300, 2000)]
    runs = [("run", 0), *known, ("cut", 0), *new, ("cut", 0), *known]
    whole = trace_of(traced, APART, runs)
    cut = trace_of(traced, APART, runs, limit=1000)
    assert cut.truncated
    assert not whole.truncated
    kept = executed(cut)
    assert 200 < len(kept) <= 1000
    assert kept == executed(whole)[: len(kept)]


A, B, C = 0x1000, 0x2000, 0x3000


@pytest.mark.parametrize(
    ("accesses", "kept"),
    [
        ([("load", A), ("load", A + 8), ("load", A)], [(A, False)]),
        ([("load", A), ("store", A)], [(A, False), (A, True)]),
        ([("load", A), ("store", B)] * 50, [(A, False), (B, True)]),
        ([("load", A), ("load", B), ("load", A)], [(A, False), (B, False), (A, False)]),
        (
            [("load", A), ("load", B), ("load", A), ("load", C)],
            [(A, False), (B, False), (A, False), (C, False)],
        ),
        (
            [("load", A), ("load", B), ("load", A), ("load", A), ("load", B), ("load", C)],
            [(A, False), (B, False), (C, False)],
        ),
        (
            [("load", A), ("load", B), ("load", C)] * 2,
            [(A, False), (B, False), (C, False)] * 2,
        ),
    ],
)
def test_accesses_that_change_nothing_are_not_told(
    traced: Path, accesses: list[Run], kept: list[tuple[int, bool]]
) -> None:
    trace = trace_of(traced, APART, [("run", 0), *accesses, ("run", 1)], data=True)
    assert told(trace) == kept


@few_examples
@given(
    st.lists(
        st.tuples(st.sampled_from(["load", "store"]), st.integers(0, 5).map(lambda n: n * 64)),
        max_size=60,
    ),
    st.integers(2, 4),
    st.sampled_from([1, 2]),
)
def test_what_is_not_told_changes_no_cache(
    traced: Path, accesses: list[Run], ways: int, sets: int
) -> None:
    trace = trace_of(traced, APART, [("run", 0), *accesses], data=True)
    assert len(told(trace)) <= len(accesses)
    all_lines = [address for _, address in accesses]
    assert _misses([line for line, _ in told(trace)], sets, ways) == _misses(all_lines, sets, ways)


def _misses(lines: Iterable[int], sets: int, ways: int) -> tuple[int, list[list[int]]]:
    """How many there were, and what the cache holds after them."""
    cache: list[list[int]] = [[] for _ in range(sets)]
    misses = 0
    for line in lines:
        held = cache[line // 64 % sets]
        misses += line not in held
        if line in held:
            held.remove(line)
        held.insert(0, line)
        del held[ways:]
    return misses, cache


def test_data_follows_the_whole_of_straight_code(traced: Path) -> None:
    """Its accesses come after it, also when it is known only later that it goes on."""

    def order(*runs: Run) -> Trace:
        return trace_of(traced, STRAIGHT, [("run", 5), *runs, ("run", 6)], data=True)

    whole = order(("run", 0), ("load", A), ("store", B), ("run", 5), ("load", C))
    split = order(
        ("run", 1), ("load", A), ("run", 3), ("run", 4), ("store", B), ("run", 5), ("load", C)
    )
    assert split == whole
    assert whole.items.tolist() == [2, 0, DATA | 0, DATA | 1, 2, DATA | 2, 1]


def test_physical_addresses_of_code_follow_from_the_images_data(traced: Path) -> None:
    """Here physical addresses are 32 bits of virtual ones, and QEMU's begin at 0x7f0000000000."""
    image_data = BASE + 0x100000
    runs = [("run", 0), ("load", image_data), ("run", 1)]
    trace = trace_of(traced, APART, runs, data=True)
    assert trace.physical is not None
    assert trace.physical.tolist() == [block.address & 0xFFFFFFFF for block in APART[:2]]
    assert trace.data_physical is not None
    assert trace.data_physical.tolist() == [image_data & 0xFFFFFFFF]
    unknown = trace_of(traced, APART, [("run", 0), ("load", A), ("run", 1)], data=True)
    assert unknown.physical is None
