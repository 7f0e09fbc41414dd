# SPDX-License-Identifier: GPL-2.0-or-later
"""What accesses to data miss, against caches written for clarity, and by arithmetic."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdelta.counts.arrays import U32
from kdelta.counts.model import CONTEXTS
from kdelta.counts.trace import DATA, Trace
from kdelta.cpus.cache import Cache
from kdelta.cpus.model import CPU, DATA_MISS_KINDS
from kdelta.replay import native
from kdelta.replay.as_executed import data_misses, known_kinds, page_bytes
from kdelta.replay.hierarchy import PreparedHierarchy
from kdelta.spec.errors import LabError, UserError
from tests.replay.small_caches import small, with_data
from tests.replay.streaming import BASE, CORE, LARGE, LARGE_PAGE, PAGE, SMALL, streaming

from .libraries import built
from .traces import Block, CacheContents, Made, looping, made_traces, make_trace, replacements

pytestmark = pytest.mark.long

tlbs = st.builds(
    Cache,
    sets=st.sampled_from([1, 2, 4]),
    ways=st.integers(2, 5),
    line_bytes=st.just(PAGE),
    replacement=replacements,
)
large_tlbs = tlbs.map(lambda tlb: msgspec.structs.replace(tlb, line_bytes=LARGE_PAGE))


def data_events(trace: Trace, cpu: CPU) -> dict[str, int]:
    """What the region itself misses, by kind."""
    return {str(kind): count for kind, count in data_misses(trace, cpu).total().items()}


@st.composite
def cpus(draw: st.DrawFn) -> CPU:
    """Small caches, with and without each of the TLBs."""
    dtlb = draw(st.none() | tlbs)
    others = {"dtlb_large": large_tlbs, "dtlb_store": tlbs, "stlb": tlbs} if dtlb else {}
    return msgspec.structs.replace(
        BASE,
        l1i=draw(small),
        l1d=draw(small),
        l2=draw(small),
        dtlb=dtlb,
        **{name: draw(st.none() | kind) for name, kind in others.items()},
    )


class DataSide:
    """The data side of a CPU, access by access."""

    def __init__(self, cpu: CPU) -> None:
        names = ("l1i", "l1d", "l2", "dtlb", "dtlb_large", "dtlb_store", "stlb")
        self.held = {n: CacheContents(c) for n in names if (c := getattr(cpu, n)) is not None}

    def fetch(self, virtual: int, size: int, physical: int) -> None:
        for line in range(virtual // 64, (virtual + size - 1) // 64 + 1):
            where = line + (physical - virtual) // 64
            if self.held["l1i"].misses(line, where):
                self.held["l2"].misses(where, where)

    def access(self, virtual: int, physical: int, *, store: bool, below: bool) -> list[str]:
        """The kinds of its misses. below: with the second levels."""
        missed = []
        if self.held["l1d"].misses(virtual // 64, physical // 64):
            missed.append("l1d")
            if below and self.held["l2"].misses(physical // 64, physical // 64):
                missed.append("l2-data")
        large = LARGE <= virtual < SMALL
        page = virtual // (LARGE_PAGE if large else PAGE)
        key = page * 2 + large
        tlb = "dtlb_large" if large and "dtlb_large" in self.held else "dtlb"
        if store and "dtlb_store" in self.held:
            tlb = "dtlb_store"
        if "dtlb" in self.held and self.held[tlb].misses(page, key):
            missed.append("dtlb")
            if below and "stlb" in self.held and self.held["stlb"].misses(page, key):
                missed.append("stlb")
        return [f"{kind}-store" if store else kind for kind in missed]


def executed(trace: Trace) -> list[tuple[int, int]]:
    """(item, context) in the order of execution."""
    found = []
    for piece, context in zip(trace.sequence.tolist(), trace.contexts.tolist(), strict=True):
        items = trace.items[int(trace.starts[piece]) : int(trace.starts[piece + 1])]
        found += [(item, context) for item in items.tolist()]
    return found


def naive(trace: Trace, cpu: CPU, rows: U32, n_rows: int, *, warm: bool) -> Any:
    """As DataMisses.counts, for caches that evict what was least recently used."""
    assert trace.physical is not None
    assert trace.data_virtual is not None
    assert trace.data_physical is not None
    assert trace.data_stores is not None
    side = DataSide(cpu)
    counts = np.zeros((n_rows + 1, len(CONTEXTS), len(DATA_MISS_KINDS)), int)
    for number in range(3) if warm else [2]:
        row = n_rows
        for item, context in executed(trace):
            if not item & DATA:
                row = int(rows[item])
                where = (int(a[item]) for a in (trace.addresses, trace.sizes, trace.physical))
                if number:
                    side.fetch(*where)
                continue
            datum = item - DATA
            missed = side.access(
                int(trace.data_virtual[datum]),
                int(trace.data_physical[datum]),
                store=bool(trace.data_stores[datum]),
                below=number > 0,
            )
            for kind in missed if number == 2 else []:
                counts[row, context, DATA_MISS_KINDS.index(kind)] += 1
    return counts.tolist()


def data_trace(made: Made, lines: Sequence[tuple[int, bool]], every: int) -> Trace:
    """With an access to one of the lines after each `every`-th block; (virtual address, store)."""
    trace = with_data(made[0], [virtual for virtual, _ in lines], every, 2)
    stores = np.array([store for _, store in lines], dtype=np.bool_)
    return msgspec.structs.replace(trace, data_stores=stores)


addresses = st.builds(
    lambda base, line, page: base + 64 * line + page,
    st.sampled_from([LARGE, SMALL, 0x400000]),
    st.integers(0, 300),
    st.sampled_from([0, PAGE, 2 * PAGE, 9 * PAGE, LARGE_PAGE, 3 * LARGE_PAGE]),
)


@settings(max_examples=80, deadline=None)
@given(
    made_traces(),
    st.lists(st.tuples(addresses, st.booleans()), max_size=14),
    st.integers(1, 4),
    cpus(),
    st.booleans(),
)
def test_misses_are_those_of_plain_caches(
    made: Made, lines: list[tuple[int, bool]], every: int, cpu: CPU, warm: bool
) -> None:
    cpu = cpu.least_recent
    trace = data_trace(made, lines, every)
    rows = np.asarray(made[1].function)
    n_rows = int(rows.max()) + 1
    found = data_misses(trace, cpu, rows=rows, n_rows=n_rows, warm=warm)
    assert found.counts.tolist() == naive(trace, cpu, rows, n_rows, warm=warm)
    assert found.kinds == known_kinds(cpu)
    plain = data_misses(trace, cpu, rows=rows, n_rows=n_rows, warm=warm, portable=True)
    assert plain.counts.tolist() == found.counts.tolist()
    unknown = [DATA_MISS_KINDS.index(k) for k in DATA_MISS_KINDS if k not in found.kinds]
    assert not found.counts[:, :, unknown].any()


def crowded(seed: int) -> tuple[Trace, CPU]:
    """500 accesses to 60 lines on few pages of both sizes, in caches that hold a part of them."""
    random = np.random.default_rng(seed)
    trace, _ = make_trace(
        [Block(n, 0, 40) for n in range(6)],
        [[0]] * 10,
        [(int(random.integers(10)), int(random.integers(3))) for _ in range(50)],
    )
    items = random.integers(0, 60, 200).astype(np.uint32) | np.uint32(DATA)
    blocks = random.random(200) < 0.3
    items[blocks] = random.integers(0, 6, int(blocks.sum()))
    pages = np.array([LARGE, LARGE + 3 * LARGE_PAGE, SMALL, SMALL + PAGE, 0x400000], np.uint64)
    virtual = random.choice(pages, 60) + random.integers(0, 12, 60).astype(np.uint64) * np.uint64(
        64
    )
    trace = msgspec.structs.replace(
        trace,
        items=items,
        starts=np.arange(0, 201, 20).astype(np.uint64),
        physical=trace.addresses,
        data_virtual=virtual,
        data_physical=virtual % np.uint64(1 << 16),
        data_stores=random.random(60) < 0.5,
    )
    tlb = Cache(1, 2, PAGE)
    cpu = msgspec.structs.replace(
        BASE,
        l1i=Cache(1, 2, 64),
        l1d=Cache(2, 3, 64),
        l2=Cache(2, 5, 64),
        dtlb=tlb,
        dtlb_large=Cache(1, 2, LARGE_PAGE) if seed % 2 else None,
        dtlb_store=tlb if seed % 3 else None,
        stlb=Cache(1, 2, PAGE),
    )
    return trace, cpu


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("warm", [False, True])
def test_a_crowd_misses_as_in_plain_caches(seed: int, warm: bool) -> None:
    trace, cpu = crowded(seed)
    rows = np.arange(6, dtype=np.uint32) // 2
    found = data_misses(trace, cpu, rows=rows, n_rows=3, warm=warm)
    assert found.counts.tolist() == naive(trace, cpu, rows, 3, warm=warm)
    assert (found.counts.sum(axis=(0, 1)) > 0).all()


@settings(max_examples=40, deadline=None)
@given(
    made_traces(),
    st.lists(st.tuples(addresses, st.booleans()), max_size=14),
    st.integers(1, 4),
    cpus(),
    st.booleans(),
)
def test_the_hierarchy_finds_the_same_under_any_layout(
    made: Made, lines: list[tuple[int, bool]], every: int, cpu: CPU, warm: bool
) -> None:
    """What a layout of code can change is the part of the L2 alone, and there it is as linked."""
    trace = data_trace(made, lines, every)
    _, placed, layouts = made
    found = data_misses(trace, cpu, warm=warm).counts.sum(axis=0)
    # As it was executed: each function where the addresses of its blocks say.
    linked = np.zeros_like(layouts[:1])
    linked[0, placed.function] = trace.addresses - placed.offset
    every_layout = np.concatenate([linked, layouts])
    prepared = PreparedHierarchy(trace, placed, cpu.l1d, warm=warm)
    other = prepared.replay(every_layout, l1i=cpu.l1i, l2=cpu.l2)
    assert other.l1d.tolist() == found[:, 0:2].sum(axis=1).tolist()
    assert other.l2_data[0].tolist() == found[:, 2:4].sum(axis=1).tolist()


@pytest.mark.parametrize("stores", [False, True])
def test_what_does_not_fit_misses_always_and_what_fits_never(stores: bool) -> None:
    """256 KiB through a 48 KiB L1D under LRU; 16 KiB stay in it. The L2 holds both."""
    large, fits = (data_events(streaming(n, 2, stores=stores), CORE) for n in (4096, 256))
    kind = "l1d-store" if stores else "l1d"
    assert large == dict.fromkeys(DATA_MISS_KINDS, 0) | {kind: 2 * 4096}
    assert fits == dict.fromkeys(DATA_MISS_KINDS, 0)


def test_pages_that_do_not_fit_a_tlb() -> None:
    """200 pages of 2 MiB, 32 of which the TLB has; both levels of 4 KiB would be too small."""
    found = data_events(streaming(200, 3, stride=LARGE_PAGE), CORE)
    assert (found["dtlb"], found["stlb"]) == (600, 0)
    one_for_all = msgspec.structs.replace(CORE, dtlb_large=None, dtlb=Cache(1, 256, PAGE))
    assert data_events(streaming(200, 3, stride=LARGE_PAGE), one_for_all)["dtlb"] == 0


def test_a_structure_that_grows_by_a_line_is_seen() -> None:
    """700 structures of a line each fit into 768 lines; with a line more each they do not."""

    def visited(lines_each: int) -> int:
        trace = streaming(700 * lines_each, 2)
        return data_events(trace, CORE)["l1d"]

    assert visited(1) == 0
    assert visited(2) == 2 * 1400


def test_a_miss_is_of_the_block_that_made_the_access_in_its_context() -> None:
    trace, _ = make_trace(
        [Block(0, 0, 16), Block(1, 0, 16)], [[0, DATA, 1, DATA | 1], [DATA | 2]], [(0, 0), (1, 1)]
    )
    lines = np.array([LARGE, LARGE + 64, LARGE + 128], dtype=np.uint64)
    trace = msgspec.structs.replace(
        trace, data_virtual=lines, data_physical=lines, data_stores=np.array([False, True, False])
    )
    found = data_misses(trace, CORE, rows=np.array([0, 1], np.uint32), n_rows=2, warm=False)
    assert found.counts[:, :, :2].tolist() == [
        [[1, 0], [0, 0], [0, 0]],
        [[0, 1], [1, 0], [0, 0]],
        [[0, 0], [0, 0], [0, 0]],
    ]
    assert found.total("own")["l1d"] == 1
    assert found.total("interrupts")["l1d"] == 1


def test_a_miss_that_no_block_made_is_in_a_row_of_its_own() -> None:
    trace = msgspec.structs.replace(
        streaming(3, 1), items=np.array([DATA, 0, DATA | 1], np.uint32), starts=np.array([0, 3])
    )
    found = data_misses(trace, CORE, warm=False)
    assert found.counts[:, 0, 0].tolist() == [1, 1]


@pytest.mark.slow
def test_what_is_not_kept_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = data_trace(looping(30, noise=7), [(LARGE + 64 * n, n % 3 == 0) for n in range(99)], 2)
    cpu = msgspec.structs.replace(CORE, l1d=Cache(4, 2, 64), dtlb_large=Cache(1, 2, LARGE_PAGE))
    known = data_misses(trace, cpu).counts
    assert known.any()
    library = built(tmp_path / "replay.so", "-O1", "-DMOST_KEPT_OF_DATA=9")
    native.library.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(native, "build_part", lambda *_: library)
        assert data_misses(trace, cpu).counts.tolist() == known.tolist()
    native.library.cache_clear()


def test_without_physical_addresses_of_code_there_is_no_l2() -> None:
    trace = msgspec.structs.replace(streaming(4096, 2), physical=None)
    found = data_events(trace, CORE)
    assert found["l1d"] == 8192
    assert "l2-data" not in found


def test_neither_where_lines_differ_in_size() -> None:
    cpu = msgspec.structs.replace(CORE, l1i=Cache(128, 8, 32))
    assert "l2-data" not in data_events(streaming(256, 1), cpu)


def test_pages_of_addresses() -> None:
    some = np.array([0x7FFFF0000000, LARGE, SMALL, 0xFFFFFFFF82000000, 0xFFFFFFFFA0000000])
    sizes = [PAGE, LARGE_PAGE, PAGE, LARGE_PAGE, PAGE]
    assert page_bytes(some.astype(np.uint64), "x86_64").tolist() == sizes
    low = np.array([0x10000, 0xC0100000, 0xF0800000], dtype=np.uint64)
    assert page_bytes(low, "arm").tolist() == [PAGE, 1 << 20, PAGE]


def test_what_cannot_be_replayed_is_refused() -> None:
    trace = streaming(16, 1)
    with pytest.raises(UserError, match="no accesses to data"):
        data_events(looping(2)[0], CORE)
    with pytest.raises(UserError, match="lines of 32 bytes"):
        data_events(trace, msgspec.structs.replace(CORE, l1d=Cache(64, 8, 32)))
    with pytest.raises(UserError, match=r"2097152 sets .* cannot be replayed"):
        data_events(trace, msgspec.structs.replace(CORE, stlb=Cache(1 << 21, 1, PAGE)))
    with pytest.raises(ValueError, match="do not fit the trace"):
        data_misses(trace, CORE, rows=np.array([1], np.uint32))


@pytest.mark.parametrize(
    "damage",
    [
        {"items": np.array([0, DATA | 16], np.uint32), "starts": np.array([0, 2], np.uint64)},
        {"data_stores": np.zeros(3, np.bool_)},
        {"data_physical": np.zeros(3, np.uint64)},
        {"items": np.array([7], np.uint32), "starts": np.array([0, 1], np.uint64)},
        {"contexts": np.array([3], np.uint8)},
    ],
)
def test_a_damaged_trace_is_refused(damage: dict[str, Any]) -> None:
    trace = msgspec.structs.replace(streaming(16, 1), **damage)
    with pytest.raises(LabError, match="is damaged"):
        data_events(trace, CORE)
