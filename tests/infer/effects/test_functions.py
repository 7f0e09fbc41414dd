# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of functions without what a compiler appends to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdelta.infer.effects.functions import strip_suffixes

SUFFIXES = [
    ".isra.0",
    ".constprop.12",
    ".part.3",
    ".cold",
    ".cold.7",
    ".llvm.14480218378325462",
    ".lto_priv.0",
]


@pytest.mark.parametrize(
    ("name", "stripped"),
    [
        ("vfs_read", "vfs_read"),
        ("__fget_light.isra.0", "__fget_light"),
        ("copy_page_range.constprop.0.isra.0", "copy_page_range"),
        ("do_exit.part.0.cold", "do_exit"),
        ("fs_init.cold.17", "fs_init"),
        ("static_fn.llvm.10277184321", "static_fn"),
        ("worker.lto_priv.0.cold", "worker"),
        # What only looks like a suffix stays.
        ("foo.isra", "foo.isra"),
        ("foo.cold_path", "foo.cold_path"),
        ("foo.isra.0.bar", "foo.isra.0.bar"),
        ("foo.0", "foo.0"),
        (".cold", ".cold"),
        ("cold", "cold"),
    ],
)
def test_suffixes(name: str, stripped: str) -> None:
    assert strip_suffixes(name) == stripped


@given(st.text(), st.lists(st.sampled_from(SUFFIXES)))
def test_stripping_twice_is_stripping_once(name: str, suffixes: list[str]) -> None:
    once = strip_suffixes(name + "".join(suffixes))
    assert strip_suffixes(once) == once


@given(
    st.from_regex(r"[A-Za-z_][A-Za-z_0-9]*", fullmatch=True), st.lists(st.sampled_from(SUFFIXES))
)
def test_any_combination_is_stripped(name: str, suffixes: list[str]) -> None:
    assert strip_suffixes(name + "".join(suffixes)) == name
