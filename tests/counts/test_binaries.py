# SPDX-License-Identifier: GPL-2.0-or-later
"""Which binary a block of user code is from, where many are at one address and share code."""

import random

import pytest

from kdelta.counts.binaries import Binary, attribute

PIE = 0x555555554000
TEXT = 0x1000


def code(seed: int, n_bytes: int = 0x3000) -> bytes:
    return random.Random(seed).randbytes(n_bytes)


def binary(name: str, text: bytes, *, fixed: bool = False) -> Binary:
    segments = ((0x400000 + TEXT if fixed else TEXT, text),)
    return Binary(name=name, fixed=fixed, is_program=True, segments=segments, symbols=())


def blocks(
    text: bytes, base: int, first: int = 0, size: int = 20, step: int = 64
) -> list[tuple[int, bytes]]:
    return [(base + TEXT + at, text[at : at + size]) for at in range(first, len(text) - size, step)]


def owners(binaries: list[Binary], found: list[tuple[int, bytes]]) -> list[tuple[str, int] | None]:
    answer = attribute(binaries, dict(enumerate(found)))
    places = [answer.get(block) for block in range(len(found))]
    return [place and (place[0].name, place[1]) for place in places]


def test_binaries_at_one_address_are_told_apart() -> None:
    one, two = code(1), code(2)
    found = [*blocks(one, PIE), *blocks(two, PIE)]
    half = len(found) // 2
    answer = owners([binary("two", two), binary("one", one)], found)
    assert answer == [("one", PIE)] * half + [("two", PIE)] * half


def test_one_that_is_loaded_at_many_places() -> None:
    """Each process has its libraries elsewhere, next to others."""
    text = code(3)
    bases = [0x7FFFF7C00000 + n * 0x5000 for n in range(9)]
    found = [block for base in bases for block in blocks(text, base)]
    answer = owners([binary("libc", text)], found)
    assert {place for place in answer if place} == {("libc", base) for base in bases}
    assert None not in answer


def test_a_small_one_among_many_blocks_of_a_large_one() -> None:
    large, small = code(4, 0x40000), code(5, 0x400)
    found = [*blocks(large, 0, step=24), *blocks(small, PIE)]
    answer = owners([binary("small", small), binary("large", large)], found)
    assert answer.count(("small", PIE)) == len(blocks(small, PIE))
    assert None not in answer


def test_shared_code_belongs_to_the_one_that_executed_more_there() -> None:
    """The same library was linked into both, a page apart."""
    shared = code(6, 0x200)
    sort = code(7) + shared
    rm = code(8, 0x2000) + shared
    found = blocks(sort, PIE)
    assert owners([binary("rm", rm), binary("sort", sort)], found) == [("sort", PIE)] * len(found)


def test_what_is_not_movable_comes_first() -> None:
    text = code(9)
    fixed = binary("static", text, fixed=True)
    found = blocks(text, 0x400000)
    assert owners([binary("pie", text), fixed], found) == [("static", 0)] * len(found)


def test_short_blocks_go_by_the_base_of_long_ones() -> None:
    text = code(10)
    found = [*blocks(text, PIE), *blocks(text, PIE, first=40, size=3)]
    assert owners([binary("one", text)], found) == [("one", PIE)] * len(found)


@pytest.mark.parametrize("at", [0, 0xFF8, 0x2FF0])
def test_blocks_at_the_edges_of_pages(at: int) -> None:
    text = code(11)
    found = [(PIE + TEXT + at, text[at : at + 16])]
    assert owners([binary("one", text)], found) == [("one", PIE)]


def test_what_no_binary_holds_is_nobodys() -> None:
    found = blocks(code(12), PIE)
    assert owners([binary("one", code(13))], found) == [None] * len(found)
    assert owners([], found) == [None] * len(found)
