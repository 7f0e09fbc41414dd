# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of ARM: functions at any word, code next to them without a name, orders in the middle."""

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from other_kernel import as_in

from kdelta.counts.symbols import parse_symbols
from kdelta.kernels.objects.digest import Digest
from kdelta.kernels.objects.objects import CodePiece
from kdelta.replay.functions import placement_of
from kdelta.replay.layouts import aligned, ordered
from kdelta.replay.units import units_of
from tests.replay.aligned_rows import WORD, at, both, digest, found_in, of_own, rows_of
from tests.replay.kernels import region
from tests.replay.made_kernel import START, kallsyms, text_rows
from tests.replay.same_layout import assert_same_layout


def test_a_function_is_aligned_as_its_own_section() -> None:
    rows = rows_of((0, "one"), (20, "two"), (32, "three"), (44, "four"))
    known = both(
        digest(of_own(one=20, two=8, four=8)), digest(of_own(three=12), "b.c.o", alignment=8)
    )
    (part,) = found_in(rows, known).ranges
    assert part.alignments.tolist() == [4, 4, 8, 4]
    # What aligns the third is no code of the second.
    assert at(found_in(rows, known))["two"].bytes == 8


def test_code_between_words_without_a_name_is_a_piece_of_its_own() -> None:
    rows = rows_of((0, "one"), (20, "two"), (40, "three"), (44, "four"))
    found = found_in(rows, digest(of_own(one=20, two=8, three=4, four=8)))
    assert at(found)["two"].bytes == 8
    fixup = at(found)["[after two]"]
    assert (fixup.address - START, fixup.bytes, fixup.movable) == (28, 12, True)
    assert fixup.group not in (at(found)["two"].group, at(found)["three"].group)


def test_an_assembler_function_begins_with_what_its_section_has_before_it() -> None:
    rows = rows_of((0, "one"), (44, "sum"), (60, "two"))
    known = both(digest(of_own(one=20, two=8)), digest({"sum": (".text", 16)}, "sum.S.o", lead=24))
    found = at(found_in(rows, known))["sum"]
    assert (found.address - START, found.entry, found.bytes) == (20, 24, 40)
    assert at(found_in(rows, known))["one"].bytes == 20


def test_what_follows_an_assembler_function_is_of_its_section_only_if_that_has_more() -> None:
    rows = rows_of((0, "copy"), (40, "two"), (48, "three"))
    plain = both(digest(of_own(two=8, three=8)), digest({"copy": (".text", 16)}, "copy.S.o"))
    found = at(found_in(rows, plain))
    assert found["[after copy]"].group != found["copy"].group
    thing = plain.objects["copy.S.o"]
    tail = {":.text#copy": CodePiece(9, 24, ".text", ())}
    more = Digest({**plain.objects, "copy.S.o": msgspec.structs.replace(thing, data=tail)}, {})
    found = at(found_in(rows, more))
    assert found["[after copy]"].group == found["copy"].group


def test_a_name_that_only_ends_something_is_none_for_what_follows() -> None:
    rows = rows_of((0, "call"), (16, "call_end"), (16, "network_update"), (32, "three"))
    known = both(
        digest(of_own(network_update=16, three=8)), digest({"call": (".text", 16)}, "call.S.o")
    )
    found = at(found_in(rows, known))
    assert "call_end" not in found
    assert found["network_update"].address == START + 16


def test_an_alignment_of_the_compiler_leaves_assembler_as_it_is() -> None:
    rows = rows_of((0, "one"), (20, "copy"), (36, "two"))
    known = both(digest(of_own(one=20, two=8)), digest({"copy": (".text", 16)}, "copy.S.o"))
    found = found_in(rows, known)
    layout = aligned(found, 64).tolist()
    where = {f.name: start - START for f, start in zip(found.functions, layout, strict=True)}
    assert (where["one"], where["copy"], where["two"]) == (0, 20, 64)


def test_an_order_lies_in_the_middle_of_the_rest() -> None:
    sizes = {"a": 16, "b": 32, "c": 16, "d": 16, "e": 48, "f": 16}
    rows = text_rows(sizes, alignment=WORD)
    found = found_in(rows, digest(of_own(**sizes)), middle=True)

    def order(*names: str) -> list[str]:
        layout = ordered(found, names)[0].tolist()
        where = dict(zip((f.name for f in found.functions), layout, strict=True))
        return sorted(sizes, key=where.__getitem__)

    # Of a, b, e, f, 112 bytes, a and b are 48, and e passes half of them.
    assert order("d", "c") == ["a", "b", "d", "c", "e", "f"]
    # Of b, c, d, e, f, 128 bytes, b, c and d are just half.
    assert order("a") == ["b", "c", "d", "a", "e", "f"]
    assert order() == list(sizes)
    front = found_in(rows, digest(of_own(**sizes)))
    assert int(ordered(front, ["d"])[0][3]) == START


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 60).map(lambda n: n * WORD), min_size=3, max_size=12),
    st.sets(st.integers(0, 11), min_size=1, max_size=4),
    st.integers(0, 99),
)
def test_layouts_of_units_in_the_middle_are_those_of_the_whole_kernel(
    lengths: list[int], executed: set[int], seed: int
) -> None:
    sizes = {f"f{number}": size for number, size in enumerate(lengths)}
    rows = text_rows(sizes, alignment=WORD)
    run = [f"f{number}" for number in sorted(executed) if number < len(lengths)]
    trace = region(rows, run or ["f0"], left=2)
    whole = placement_of(
        [trace], parse_symbols(kallsyms(rows)), digest=digest(of_own(**sizes)), middle=True
    )
    units = units_of(whole)
    order = np.random.default_rng(seed).permutation(len(units.names))
    assert_same_layout(whole, units, order)


def test_code_without_a_counterpart_parts_no_group() -> None:
    """Its name depends on what is linked before it."""
    objects = both(
        digest({"copy": (".text", 16)}, "copy.S.o"), digest(of_own(two=8, three=8)), _tail("copy")
    )
    one = found_in(rows_of((0, "two"), (8, "copy"), (40, "three")), objects)
    other = found_in(rows_of((0, "three"), (64, "copy"), (80, "two")), objects)
    found = as_in(one, other, (objects, objects))
    assert found.layout is not None
    where = {f.name: int(a) for f, a in zip(one.functions, found.layout, strict=True)}
    assert where["copy"] == START + 64
    assert found.unmatched == ("[after copy]",)


def _tail(name: str) -> Digest:
    held = digest({name: (".text", 16)}, f"{name}.S.o")
    (thing,) = held.objects.values()
    data = {f":.text#{name}": CodePiece(9, 16, ".text", ())}
    return Digest({thing.path: msgspec.structs.replace(thing, data=data)}, {})
