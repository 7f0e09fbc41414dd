# SPDX-License-Identifier: GPL-2.0-or-later
"""The layout of another kernel: only functions that are the same are mapped onto each other."""

from collections.abc import Mapping

from other_kernel import as_in

from kdelta.counts.arrays import U64
from kdelta.counts.symbols import parse_symbols
from kdelta.kernels.objects.digest import Digest
from kdelta.replay.functions import Placement, placement_of
from tests.replay.made_kernel import START, digest_of, kallsyms, text_rows, trace_of

SIZES = {"alpha": 40, "beta": 16, "gamma": 100, "delta": 20}
SHUFFLED = {"delta": 20, "gamma": 100, "alpha": 40, "beta": 16}
USER = 0x401000


def placement(sizes: Mapping[str, int], executed: Mapping[str, int] | None = None) -> Placement:
    """executed: name -> address of functions that a trace executes."""
    rows = text_rows(sizes)
    at = {name: address for address, _, name in rows}
    blocks = [(at[name], 4) for name in executed or ()] + [(USER, 4)]
    return placement_of([trace_of(blocks)], parse_symbols(kallsyms(rows)))


def digest(sizes: Mapping[str, int], hashes: Mapping[str, int]) -> Digest:
    held = {name: (".text", size, hashes.get(name, 1)) for name, size in sizes.items()}
    return digest_of({"all.c.o": held})


def by_name(found: Placement, layout: U64 | None) -> dict[str, int]:
    assert layout is not None
    return {f.name: int(at) for f, at in zip(found.functions, layout, strict=True)}


def test_the_same_functions_elsewhere() -> None:
    one, other = placement(SIZES, dict.fromkeys(SIZES, 0)), placement(SHUFFLED)
    mapped = as_in(one, other)
    assert by_name(one, mapped.layout) == {f.name: f.address for f in other.functions}
    assert (mapped.unmatched, mapped.missing, mapped.by) == ((), (), "names and sizes")
    assert mapped.by_size == 4
    assert by_name(one, as_in(one, one).layout) == {f.name: f.address for f in one.functions}


def test_equal_bodies_are_asked_for_where_they_are_known() -> None:
    one, other = placement(SIZES, {"alpha": 0, "beta": 0}), placement(SHUFFLED)
    same = digest(SIZES, {})
    mapped = as_in(one, other, (same, digest(SHUFFLED, {})))
    assert (mapped.by, mapped.by_size, mapped.missing) == ("bodies", 0, ())
    changed = as_in(one, other, (same, digest(SHUFFLED, {"gamma": 2})))
    assert (changed.unmatched, changed.missing) == (("gamma",), ())
    at = by_name(one, changed.layout)
    assert at["gamma"] == START + 64  # as in its own kernel: nothing executes it
    assert at["alpha"] == by_name(other, other.addresses())["alpha"]


def test_an_executed_function_without_counterpart_leaves_no_layout() -> None:
    one = placement(SIZES, {"alpha": 0, "gamma": 0})
    other = placement({"delta": 20, "gamma": 200, "beta": 16})
    mapped = as_in(one, other)
    assert mapped.layout is None
    assert mapped.unmatched == mapped.missing == ("alpha", "gamma")
    near = as_in(one, other, approximate=True)
    assert near.missing == ("alpha", "gamma")
    at = by_name(one, near.layout)
    assert at["gamma"] == START + 32
    assert at["alpha"] == other.text[1]
    assert at["[rest]"] == 0
    apart = by_name(one, as_in(one, placement({"delta": 20}), approximate=True).layout)
    assert (apart["alpha"], apart["gamma"]) == (other.text[1], other.text[1] + 64)


def test_functions_of_one_name_are_found_by_their_bodies() -> None:
    def named(sizes: Mapping[str, int], traced: bool) -> Placement:
        rows = [(at, kind, name.rstrip("0123")) for at, kind, name in text_rows(sizes)]
        blocks = [(START, 4)] if traced else []
        return placement_of([trace_of(blocks)], parse_symbols(kallsyms(rows)))

    one = named({"init1": 20, "other": 40, "init2": 70}, traced=True)
    other = named({"init0": 120, "init2": 70, "other": 40, "init1": 20}, traced=False)
    mapped = as_in(one, other)
    at = by_name(one, mapped.layout)
    assert at["init"] == START + 128 + 80 + 48
    assert at["init#2"] == START + 128
    assert mapped.unmatched == ()


def test_a_group_that_came_apart_is_no_match() -> None:
    rows = text_rows(SIZES)
    at = {name: address for address, _, name in rows}
    falls = trace_of([(at["alpha"], 48), (at["beta"], 4), (at["delta"], 4)], [[0, 1]], [0])
    one = placement_of([falls], parse_symbols(kallsyms(rows)))
    assert (
        as_in(one, placement({"gamma": 100, "alpha": 40, "beta": 16, "delta": 20})).layout
        is not None
    )
    mapped = as_in(one, placement({"alpha": 40, "gamma": 100, "beta": 16, "delta": 20}))
    assert mapped.missing == ("alpha", "beta")


def test_a_function_without_its_padding_is_another() -> None:
    one = placement({"__pfx_alpha": 16, "alpha": 16, "beta": 16}, {"alpha": 0})
    other = placement({"alpha": 32, "beta": 16})
    assert as_in(one, other).missing == ("alpha",)
    assert as_in(one, one).missing == ()


def test_of_bodies_of_one_name_only_those_of_its_size_count() -> None:
    def held(first: int, second: int) -> Digest:
        return digest_of({
            "a.c.o": {"same": (".text", 20, first)}, "b.c.o": {"same": (".text", 70, second)},
        })  # fmt: skip

    rows = [
        (at, kind, name.rstrip("12")) for at, kind, name in text_rows({"same1": 20, "same2": 70})
    ]
    found = placement_of([trace_of([(START, 4)])], parse_symbols(kallsyms(rows)))
    mapped = as_in(found, found, (held(1, 2), held(1, 3)))
    assert (mapped.unmatched, mapped.missing) == (("same#2",), ())
