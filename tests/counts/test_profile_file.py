# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles as they are kept with a run, and trees of calls from files that are damaged or wrong."""

import struct
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from kdelta.counts.model import Cost
from kdelta.counts.profile import CallTree, NodeEntry, Profile
from kdelta.counts.profile_file import (
    decode_profiles,
    encode_profiles,
    followed_all,
    read_profiles,
)
from kdelta.counts.raw import Sources
from kdelta.counts.reader import read_counts
from kdelta.spec.errors import LabError
from tests.profiles import profile_of

STACKS = {("main",): 3, ("main", "f"): 40, ("main", "f", "g"): 500, ("other:start",): 7}
BASE = 0xFFFFFFFF81000000
NONE = 0xFFFFFFFF


def _is_same(one: Profile, two: Profile) -> bool:
    for part in ("tree", "code", "rows"):
        first, second = getattr(one, part), getattr(two, part)
        for name in first.__struct_fields__:
            if not np.array_equal(getattr(first, name), getattr(second, name)):
                return False
    names = ("region", "iterations", "calls", "specials", "functions", "tasks")
    return all(getattr(one, name) == getattr(two, name) for name in names)


def test_what_is_kept_is_read_again() -> None:
    profiles = (profile_of(STACKS), profile_of({("x",): 1}, region="two", iterations=5))
    found = decode_profiles(encode_profiles(profiles))
    assert len(found) == len(profiles)
    assert all(_is_same(one, two) for one, two in zip(profiles, found, strict=True))
    assert decode_profiles(encode_profiles(())) == ()


def test_whether_all_was_followed_is_told_without_reading_it() -> None:
    every = profile_of(STACKS)
    kernel = msgspec.structs.replace(every, calls="kernel")
    assert followed_all(encode_profiles([every, every]))
    assert not followed_all(encode_profiles([every, kernel]))


def test_damaged_profiles_are_refused() -> None:
    blob = encode_profiles([profile_of(STACKS)])
    for damaged in (b"", blob[:-1], blob[:9], b"KDPROF00" + blob[8:], blob[:40] + b"?" + blob[41:]):
        with pytest.raises(LabError, match="cannot be read"):
            decode_profiles(damaged)


def chunk(tag: bytes, payload: bytes) -> bytes:
    return struct.pack("<4sIQ", tag, 0, len(payload)) + payload


def _block(number: int, address: int, insns: int) -> bytes:
    """One group of so many instructions of a byte each."""
    head = struct.pack("<IIQII", number, insns, address, 0, 1)
    return head + struct.pack("<HHH6B", insns, 0, 0, 0, 0, 0, 0, 0, 0) + b"\x90" * insns


Node = tuple[int, int, int, int, int]
"""Site, parent, block, block of the site, entry: entered once, the root never."""


def _file(
    folder: Path,
    nodes: list[Node],
    cells: list[tuple[int, int, int]],
    counted: dict[int, int],
    kinds: Sequence[tuple[int, int, str, int]] = (),
) -> tuple[Path, Sources]:
    """A plugin's file of blocks 0, 1, 2 in functions a, b, c. cells: entered, node, block; kinds:
    node, block, what kind its last instruction was, and how often.
    """
    blocks = b"".join(_block(n, BASE + 0x1000 * n, 10 + n) for n in range(3))
    region = struct.pack("<I", 1) + b"r" + struct.pack("<QQ4Q", 0, 0, 0, 0, 0, 0)
    region += b"".join(struct.pack("<IIQQQQ", b, 0, n, 0, 0, 0) for b, n in counted.items())
    extras = b""
    for place, (node, block, _, n) in enumerate(kinds, 1):
        region += struct.pack("<IIQQQQ", block, place << 24, n, 0, 0, 0)
        extras += struct.pack("<4I4q", node, block, 0, place << 24, n, 0, 0, 0)
    total = sum(count * (10 + block) for block, count in counted.items())
    region = region[:21] + struct.pack("<4Q", 0, total, 0, 0) + region[53:]
    head = struct.pack("<II5Q", 1, 1, 0, len(nodes), len(cells), len(kinds), 3) + b"r"
    tree = b"".join(
        struct.pack("<Q6I3Q", site, parent, 1, block, at, entry, 0, int(parent > 0), 0, 0)
        for site, parent, block, at, entry in nodes
    )
    tree += b"".join(struct.pack("<QIIII", n, node, block, 0, 0) for n, node, block in cells)
    tree += extras
    for n in range(3):
        tree += struct.pack("<II", n, 10 + n) + b"\x01\x00\x00" * (10 + n)
    content = chunk(b"HEAD", struct.pack("<I", 1) + b"\0") + chunk(b"BLKS", blocks)
    content += b"".join(chunk(b"KIND", name.encode()) for _, _, name, _ in kinds)
    content += chunk(b"REGN", region) + chunk(b"CALL", head + tree) + chunk(b"END ", b"")
    (folder / "counts").write_bytes(content)
    symbols = "".join(f"{BASE + 0x1000 * n:x} T {name}\n" for n, name in enumerate("abc"))
    (folder / "symbols").write_text(symbols)
    return folder / "counts", Sources(folder / "symbols")


def _names(profile: Profile) -> dict[tuple[str, ...], tuple[int, int]]:
    """By the names on its path, how often a node was entered, and its own instructions."""
    own = profile.node_costs().insns
    tree = profile.tree
    return {
        tuple(profile.functions[tree.function[step]].name for step in tree.path(node)): (
            int(tree.entered[node]),
            int(own[node]),
        )
        for node in range(len(tree))
    }


ROOT: Node = (0, 0, 0, NONE, NodeEntry.ROOT)


def test_code_of_another_function_is_a_tail_call_and_calls_from_there_hang_below(
    tmp_path: Path,
) -> None:
    nodes = [ROOT, (BASE + 0x1005, 1, 2, 1, NodeEntry.CALL)]
    cells = [(1, 1, 0), (4, 1, 1), (4, 2, 2)]
    file = _file(tmp_path, nodes, cells, {0: 1, 1: 4, 2: 4})
    (profile,) = read_profiles(*file)
    assert _names(profile) == {("a",): (0, 10), ("a", "b"): (4, 44), ("a", "b", "c"): (1, 48)}
    assert NodeEntry.TAIL in profile.tree.entry


def test_tail_calls_of_several_tasks_are_all_counted(tmp_path: Path) -> None:
    """Two tasks of one program are one root, and what they jump to is entered by both."""
    cells = [(1, 1, 0), (4, 1, 1), (1, 2, 0), (3, 2, 1)]
    file = _file(tmp_path, [ROOT, ROOT], cells, {0: 2, 1: 7})
    (profile,) = read_profiles(*file)
    assert _names(profile) == {("a",): (0, 20), ("a", "b"): (7, 77)}


def test_a_root_that_became_known_later_hangs_below_its_caller(tmp_path: Path) -> None:
    """The plugin gives numbers as nodes come about: a parent may have the higher one."""
    nodes = [(BASE, 2, 1, 0, NodeEntry.CALL), ROOT]
    file = _file(tmp_path, nodes, [(2, 1, 1), (1, 2, 0)], {0: 1, 1: 2})
    (profile,) = read_profiles(*file)
    assert _names(profile) == {("a",): (0, 10), ("a", "b"): (1, 22)}
    assert isinstance(profile.tree, CallTree)
    assert profile.tree.parent.tolist() == [-1, 0]


def test_what_kind_an_instruction_was_each_time_is_its_functions_and_at_its_address(
    tmp_path: Path,
) -> None:
    nodes = [ROOT, (BASE + 0x1005, 1, 2, 1, NodeEntry.CALL)]
    kinds = [(1, 1, "wrmsr A", 3), (1, 1, "wrmsr B", 1), (2, 2, "mmio x", 4)]
    asked = _file(tmp_path, nodes, [(1, 1, 0), (4, 1, 1), (4, 2, 2)], {0: 1, 1: 4, 2: 4}, kinds)
    (profile,) = read_profiles(*asked)
    (region,) = read_counts(*asked).regions
    costs = {one.name: one.cost for one in region.functions}
    assert costs == {one.name: one.cost for one in profile.function_costs()}
    assert costs["b"] == Cost(44, specials={"wrmsr A": 3, "wrmsr B": 1})
    assert (costs["a"], costs["c"].specials) == (Cost(10), {"mmio x": 4})
    spread = profile.address_costs()
    at = {int(address): spread.costs.cost(i) for i, address in enumerate(spread.address)}
    assert at[BASE + 0x100A] == Cost(4, specials={"wrmsr A": 3, "wrmsr B": 1})
    assert sum(at.values(), Cost()) == sum(costs.values(), Cost())


def test_a_kind_that_only_a_tree_has_is_refused(tmp_path: Path) -> None:
    file, sources = _file(tmp_path, [ROOT], [(1, 1, 0)], {0: 1}, [(1, 0, "wrmsr A", 1)])
    row = struct.pack("<IIQQQQ", 0, 1 << 24, 1, 0, 0, 0)
    file.write_bytes(file.read_bytes().replace(row, bytes(len(row)), 1))
    with pytest.raises(LabError, match="name kinds of instructions"):
        read_profiles(file, sources)


def test_a_tree_that_does_not_add_up_is_refused(tmp_path: Path) -> None:
    file = _file(tmp_path, [ROOT], [(1, 1, 0)], {0: 2})
    with pytest.raises(LabError, match=r"disagree on 1 groups .* entered -1"):
        read_profiles(*file)


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path, sources = _file(tmp_path, [ROOT], [(1, 1, 0)], {0: 1})
    content = path.read_bytes()
    path.write_bytes(content[:-10])
    with pytest.raises(LabError, match="cut short"):
        read_profiles(path, sources)
    at = content.index(b"CALL") + 16
    path.write_bytes(content[:at] + b"\xff" * 48 + content[at + 48 :])
    with pytest.raises(LabError, match="damaged"):
        read_profiles(path, sources)
    for nodes, cells in (([ROOT], [(1, 2, 0)]), ([ROOT], [(1, 1, 9)]), ([(0, 5, 0, 0, 1)], [])):
        with pytest.raises(LabError, match=r"names .* that are missing"):
            read_profiles(*_file(tmp_path, nodes, cells, {0: 1}))
