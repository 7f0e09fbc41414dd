# SPDX-License-Identifier: GPL-2.0-or-later
"""What holds of any layout that a linker could make."""

import itertools

from hypothesis import strategies as st

from kdelta.counts.arrays import U64
from kdelta.counts.symbols import parse_symbols
from kdelta.replay.functions import Placement, placement_of
from tests.replay.made_kernel import START, Row, kallsyms, text_rows, trace_of

SIZES = {"alpha": 30, "beta": 16, "gamma": 100, "delta": 1, "epsilon": 64, "zeta": 200}
AFTER = {"do_syscall_64": 70, "exc_page_fault": 90}


def placement(rows: list[Row] | None = None) -> Placement:
    return placement_of([], parse_symbols(kallsyms(rows or text_rows(SIZES, after=AFTER))))


def by_name(found: Placement, layout: U64) -> dict[str, int]:
    return {f.name: int(at) for f, at in zip(found.functions, layout, strict=True)}


def assert_possible(found: Placement, layout: U64, alignment: int | None = None) -> None:
    """No two functions overlap, each is aligned, groups keep together, the rest stays."""
    functions = found.functions[:-1]
    order = sorted(range(len(functions)), key=lambda i: (int(layout[i]), functions[i].bytes))
    for before, after in itertools.pairwise(order):
        assert int(layout[before]) + functions[before].bytes <= int(layout[after])
    distance: dict[int, int] = {}
    for function, at in zip(functions, layout.tolist(), strict=False):
        if function.movable:
            moved = at - function.address
            if function.group not in distance:
                wanted = function.alignment
                if alignment and function.kind != "unlikely":
                    wanted = alignment
                assert at % wanted == 0
            assert distance.setdefault(function.group, moved) == moved
    assert int(layout[-1]) == 0


@st.composite
def kernels(draw: st.DrawFn) -> Placement:
    """Main text at 16, some of it thunks, some falling into the next; cold text unaligned."""
    rows: list[Row] = [(START, "T", "_stext")]
    at = START
    sizes = draw(st.lists(st.integers(1, 300), min_size=1, max_size=40))
    thunks = draw(st.sets(st.integers(0, 39), max_size=2))
    for number, size in enumerate(sizes):
        rows.append((at, "t", f"{'__x86_indirect_thunk_' if number in thunks else 'f'}{number}"))
        at = -(-(at + size) // 16) * 16
    falls = draw(st.sets(st.integers(1, len(sizes)), max_size=4)) - {len(sizes)}
    trace = trace_of([(rows[number + 1][0] - 1, 2) for number in falls])
    for number, size in enumerate(draw(st.lists(st.integers(1, 90), max_size=10))):
        rows.append((at, "t", f"f{number}.cold"))
        at += size
    at += draw(st.integers(0, 20))
    rows.append((at, "T", "__noinstr_text_start"))
    rows += [(at, "t", "do_syscall_64"), (at + 80, "t", "exc_page_fault")]
    rows += [(at + 200, "T", "__noinstr_text_end")]
    entry = -(-(at + 200) // 0x1000) * 0x1000
    rows += [(entry, "T", "__entry_text_start"), (entry, "T", "entry_SYSCALL_64")]
    rows += [(entry + 300, "T", "__entry_text_end"), (entry + 0x1000, "T", "_etext")]
    return placement_of([trace], parse_symbols(kallsyms(rows)))
