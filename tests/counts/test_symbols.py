# SPDX-License-Identifier: GPL-2.0-or-later
"""Symbol tables: which name of an address is taken, and what is kept in memory of a file."""

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kdelta.counts.symbols import (
    END,
    NO_SYMBOL,
    SymbolTable,
    kallsyms_file,
    kallsyms_table,
    parse_kallsyms,
)

TEXT = b"""\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _text
ffffffff81000040 t helper
ffffffff81000040 T exported
ffffffff81000080 D data
"""
MODULES = b"ffffffffc0000000 t init\t[nat]\n"


def test_global_native_and_short_names_are_taken_first() -> None:
    names = {
        0: [("t", "local"), ("T", "global")],
        1: [("T", "__ia32_sys_read"), ("T", "__do_something_longer")],
        2: [("T", "longer"), ("T", "long")],
        3: [("T", "b"), ("T", "a")],
        4: [(END, NO_SYMBOL), ("t", "next_one")],
    }
    rows = [(at, kind, name, "kernel") for at, found in names.items() for kind, name in found]
    wanted = ["global", "__do_something_longer", "long", "a", "next_one"]
    for order in (rows, rows[::-1]):
        assert [name for _, name in SymbolTable(order).labels] == wanted


def test_functions_are_named_rather_than_where_their_section_begins() -> None:
    """Names of Debian's 7.2.12 and 6.12.117, each for one address."""
    shared = [
        ("srso_alias_untrain_ret", ["T __pi__text", "T _stext", "T _text"]),
        ("swapgs_restore_regs_and_return_to_usermode", ["T __irqentry_text_end"]),
        ("intel_cc_platform_has", ["T __noinstr_text_start"]),
        ("set_reset_devices", ["T _sinittext"]),
    ]
    for function, others in shared:
        names = [f"t {function}", *others]
        rows = [(0, *name.split(" "), "kernel") for name in names]
        for order in (rows, rows[::-1]):
            assert SymbolTable(order).labels == [("kernel", function)]  # type: ignore[arg-type]
    alone = SymbolTable([(0, "T", "_text", "kernel"), (0, "T", "_stext", "kernel")])
    assert alone.labels == [("kernel", "_text")]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.sampled_from(["t", "T", "W", END]),
            st.sampled_from(["a", "b", "__ia32_a", "longer"]),
            st.just("kernel"),
        ),
        max_size=12,
    )
)
def test_order_of_symbols_does_not_matter(rows: list[tuple[int, str, str, str]]) -> None:
    table, other = SymbolTable(rows), SymbolTable(rows[::-1])
    assert table.labels == other.labels
    assert table.starts.tolist() == sorted({row[0] for row in rows})


def test_kept_table_is_the_one_that_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "symbols"
    path.write_bytes(TEXT)
    for modules in (b"", MODULES, b""):
        wanted = SymbolTable([*parse_kallsyms(TEXT), *parse_kallsyms(modules)])
        for _ in range(2):
            found = kallsyms_table(path, modules)
            assert (found.labels, found.starts.tolist()) == (wanted.labels, wanted.starts.tolist())
    assert ("[nat]", "init") not in kallsyms_table(path, b"").labels


def test_file_that_is_written_again_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "symbols"
    path.write_bytes(TEXT)
    first = kallsyms_table(path, b""), kallsyms_file(path)
    path.write_bytes(TEXT.replace(b"exported", b"imported"))
    os.utime(path, ns=(1, 1))
    second = kallsyms_table(path, b""), kallsyms_file(path)
    assert [name for _, name in first[0].labels] == ["_text", "exported"]
    assert [name for _, name in second[0].labels] == ["_text", "imported"]
    assert [row[2] for row in second[1]] == ["_text", "helper", "imported"]
