# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles from the plugin's file, compared with the counters of the same file."""

import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from kdelta.counts.arrays import I64, U8, run_offsets
from kdelta.counts.model import CONTEXTS
from kdelta.counts.profile import (
    GROUP_COLUMNS,
    TALLY,
    CallTree,
    ExecutedCode,
    Profile,
    ProfiledFunction,
    Rows,
    Task,
)
from kdelta.counts.profile_tree import GroupRows, Grown, RawTree, grown
from kdelta.counts.raw import ChunkColumns, CodeMap, RawCounts, RawRegion, Sources, contexts_of
from kdelta.machines.chunks import require_complete
from kdelta.spec.errors import LabError

_HEAD = struct.Struct("<II5Q")
_NODE = np.dtype(
    [("site", "<u8")]
    + [(n, "<u4") for n in ("parent", "task", "block", "site_block", "entry", "is_return")]
    + [("entered", "<u8", (len(CONTEXTS),))]
)
_CELL = np.dtype(
    [("entered", "<u8")] + [(name, "<u4") for name in ("node", "block", "context", "unused")]
)
_EXTRA = np.dtype(
    [(name, "<u4") for name in ("node", "block", "context", "place")]
    + [(name, "<i8") for name in TALLY]
)
_SHAPE_BYTES = 3  # size, loads, stores of an instruction
_NONE = 0xFFFFFFFF


_Shapes = dict[int, U8]
"""By a block's number, (n_insns, 3): size, loads and stores of each instruction."""


class _ProfilePart(msgspec.Struct):
    """One time that a region ran."""

    region: str
    is_all: bool
    iterations: int
    nodes: npt.NDArray[np.void]
    cells: npt.NDArray[np.void]
    extras: npt.NDArray[np.void]
    shapes: _Shapes


def read_profiles(path: Path, sources: Sources) -> tuple[Profile, ...]:
    """Return the profiles of a finished run's regions, in the order in which they first began; none
    of a run of which calls were not followed.

    Regions of one name are one. Raises LabError for a file that is cut short or damaged, and for a
    tree of calls that does not add up to what the groups counted alone.
    """
    require_complete(path)
    raw = RawCounts(path)
    if not raw.calls:
        return ()
    code = CodeMap(raw, sources)
    parts: dict[str, list[tuple[_ProfilePart, GroupRows]]] = {}
    for region, payload in raw.calls:
        part = _part(payload)
        rows = _rows(part, raw)
        _check(region, rows, raw)
        parts.setdefault(part.region, []).append((part, rows))
    return tuple(_profile(same, raw, code) for same in parts.values())


def _part(payload: memoryview) -> _ProfilePart:
    try:
        return _broken_down(payload)
    except (struct.error, ValueError, OverflowError) as error:  # frombuffer raises the latter
        raise LabError(f"a tree of calls is damaged: {error}", "run again") from error


def _broken_down(payload: memoryview) -> _ProfilePart:
    is_all, length, iterations, *sizes = _HEAD.unpack_from(payload, 0)
    columns = ChunkColumns(payload, _HEAD.size + length)
    name = columns.name(length)
    kinds = (_NODE, _CELL, _EXTRA)
    nodes, cells, extras = (columns.next(*one) for one in zip(kinds, sizes[:3], strict=True))
    shapes = {}
    for _ in range(sizes[3]):
        block, n = columns.next("<u4", 2).tolist()
        shapes[block] = columns.next(np.uint8, n * _SHAPE_BYTES).reshape(n, -1)
    columns.require_end()
    for rows in (cells, extras):
        if not ((rows["node"] > 0) & (rows["node"] <= len(nodes))).all():
            raise ValueError("it names nodes that are missing")
        if not (rows["context"] < len(CONTEXTS)).all():
            raise ValueError("it names contexts that there are not")
        if not np.isin(rows["block"], list(shapes)).all():
            raise ValueError("it names blocks that are missing")
    if not (nodes["parent"] <= len(nodes)).all():
        raise ValueError("it names parents that are missing")
    return _ProfilePart(name, bool(is_all), iterations, nodes, cells, extras, shapes)


def _rows(part: _ProfilePart, raw: RawCounts) -> GroupRows:
    """Cells spread over the groups of their blocks, and what differs of single ones: all by
    (node, context, group).
    """
    first_group = raw.first_groups()
    n_groups = np.zeros(len(first_group), np.int64)
    blocks = list(part.shapes)
    ends = raw.group_ends(blocks, [len(shape) for shape in part.shapes.values()])
    n_groups[blocks] = ends - first_group[blocks]
    cells, extras = part.cells, part.extras
    times = n_groups[cells["block"]]
    of = np.repeat(np.arange(len(cells)), times)
    group = first_group[cells["block"]][of] + run_offsets(times)
    has_insns = raw.groups["insns"][group] > 0  # of kinds extras alone say how often
    of, group = of[has_insns], group[has_insns]
    node = np.concatenate([cells["node"][of], extras["node"]]).astype(np.int64) - 1
    context = np.concatenate([cells["context"][of], extras["context"]]).astype(np.int64)
    group = np.concatenate([group, raw.group_of(extras["block"], extras["place"])])
    columns = {name: np.concatenate([np.zeros(len(of), np.int64), extras[name]]) for name in TALLY}
    columns["entered"][: len(of)] = cells["entered"][of]
    return GroupRows(node, context, group, **columns).summed()


def _check(region: RawRegion, rows: GroupRows, raw: RawCounts) -> None:
    """Over all nodes, each group did what it counted alone."""
    counted = GroupRows(
        node=np.zeros(len(region.rows), np.int64),
        context=contexts_of(region.rows),
        group=raw.group_of(region.rows["block"], region.rows["place"]),
        **{name: -region.rows[name].astype(np.int64) for name in TALLY},
    )
    rest = rows.joined(counted, node=0).summed()
    if len(rest):
        raise LabError(
            f"region {region.name}: its tree of calls and its counters disagree on {len(rest)} "
            f"groups of instructions, the first: {rest.shown(0)}",
            "this is a fault of kdelta's; please report it with the kernel and the workload",
        )


def _profile(
    same: Sequence[tuple[_ProfilePart, GroupRows]], raw: RawCounts, code: CodeMap
) -> Profile:
    """One of all times that the region ran."""
    shapes: _Shapes = {}
    for part, _ in same:
        shapes.update(part.shapes)  # what was found to be no part of a block is left out
    trees = []
    for part, rows in same:
        nodes = part.nodes
        block, site_block = (
            np.where(nodes[name] == _NONE, -1, nodes[name].astype(np.int64))
            for name in ("block", "site_block")
        )
        trees.append(
            RawTree(
                parent=nodes["parent"].astype(np.int64) - 1,
                task=nodes["task"].astype(np.int64),
                block=block,
                site_block=site_block,
                entry=nodes["entry"].astype(np.int64),
                site=nodes["site"],
                is_return=nodes["is_return"].astype(bool),
                entered=nodes["entered"].astype(np.int64),
                rows=rows,
            )
        )
    first = same[0][0]
    calls = "all" if first.is_all else "kernel"
    tree = Grown(calls, code)
    tree.calls_before = _last_insns(shapes, raw)
    grown(tree, trees, raw, code)
    functions, table, spread = _code_of(tree, shapes, raw, code)
    return Profile(
        region=first.region,
        iterations=sum(part.iterations for part, _ in same),
        calls=calls,
        specials=tuple(raw.specials),
        functions=functions,
        tasks=tree.tasks,
        tree=tree.numbered(),
        code=table,
        rows=spread,
    )


def _last_insns(shapes: _Shapes, raw: RawCounts) -> dict[int, int]:
    """Where each block ends, and its last instruction."""
    found = {}
    for block, shape in shapes.items():
        end = raw.vaddr[block] + int(shape[:, 0].sum())
        found[end] = end - int(shape[-1, 0])
    return found


def _code_of(
    tree: Grown, shapes: _Shapes, raw: RawCounts, code: CodeMap
) -> tuple[tuple[ProfiledFunction, ...], ExecutedCode, Rows]:
    """Functions, code and rows of a profile. Blocks that no row is about are left out."""
    rows = tree.rows[0]
    for more in tree.rows[1:]:
        rows = rows.joined(more)
    rows = rows.summed()
    first = np.fromiter(raw.first_group.values(), np.int64, len(raw.first_group))
    numbers = np.fromiter(raw.first_group, np.int64, len(raw.first_group))
    block_of_row = numbers[np.searchsorted(first, rows.group, side="right") - 1]
    blocks = sorted(np.unique(block_of_row).tolist(), key=lambda b: (raw.vaddr[b], raw.code[b]))
    table, new_group = _code(blocks, shapes, raw, code)
    functions = tuple(ProfiledFunction(*place) for place in tree.places)
    return functions, table, _spread(rows, tree, new_group)


def _spread(rows: GroupRows, tree: Grown, new_group: I64) -> Rows:
    order = tree.order()
    node = np.empty(len(order), np.int64)
    node[order] = np.arange(len(order))
    place = np.lexsort((new_group[rows.group], node[rows.node]))
    return Rows(
        node=node[rows.node][place].astype(np.int32),
        group=new_group[rows.group][place].astype(np.int32),
        **{name: getattr(rows, name)[place] for name in TALLY},
    )


def _code(
    blocks: list[int], shapes: _Shapes, raw: RawCounts, code: CodeMap
) -> tuple[ExecutedCode, I64]:
    """The code of these blocks; and by a group's number its index there."""
    insns = np.concatenate([shapes[block] for block in blocks] or [np.zeros((0, 3), np.uint8)])
    per_block = np.array([len(shapes[block]) for block in blocks], np.int64)
    ends = np.concatenate([[0], np.cumsum(insns[:, 0].astype(np.int64))])
    of_insn = np.concatenate([[0], np.cumsum(per_block)])
    text_start = ends[of_insn]
    within = ends[:-1] - np.repeat(text_start[:-1], per_block)
    vaddr = np.array([raw.vaddr[block] for block in blocks], np.uint64)
    first = np.array([raw.first_group[block] for block in blocks], np.int64)
    times = raw.group_ends(blocks, per_block.tolist()) - first
    groups = np.repeat(first, times) + run_offsets(times)
    new_group = np.full(len(raw.groups), -1, np.int64)
    new_group[groups] = np.arange(len(groups))
    group = raw.groups[groups]
    lengths = np.diff(text_start).tolist()
    texts = [raw.code[block][:length] for block, length in zip(blocks, lengths, strict=True)]
    table = ExecutedCode(
        block_address=vaddr,
        block_function=code.of_block[blocks].astype(np.int32),
        block_offset=code.offset[blocks],
        text=b"".join(texts),
        text_start=text_start,
        group_block=np.repeat(np.arange(len(blocks)), times).astype(np.int32),
        **{f"group_{name}": group[name] for name in GROUP_COLUMNS},
        insn_group=np.repeat(np.arange(len(groups)), group["insns"]).astype(np.int32),
        insn_address=np.repeat(vaddr, per_block) + within.astype(np.uint64),
        insn_size=insns[:, 0],
        insn_loads=insns[:, 1],
        insn_stores=insns[:, 2],
    )
    return table, new_group


_MAGIC = b"KDPROFKE"
_ALL_MAGIC = b"KDPROFAL"  # the same, and calls of user code were followed in all
_LENGTH = struct.Struct("<Q")
_LEVEL = 6


class _StoredProfile(msgspec.Struct):
    region: str
    iterations: int
    calls: str
    specials: tuple[str, ...]
    functions: tuple[ProfiledFunction, ...]
    tasks: tuple[Task, ...]
    text: bytes
    arrays: dict[str, tuple[str, bytes]]  # by part and name: type and content


_AS_IT_IS = ("region", "iterations", "calls", "specials", "functions", "tasks")
_PARTS = (("tree", CallTree), ("code", ExecutedCode), ("rows", Rows))
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_StoredProfile)


def encode_profiles(profiles: Sequence[Profile]) -> bytes:
    """Profiles as one blob: a word that names the format, then each compressed after its length."""
    found = [_ALL_MAGIC if all(profile.calls == "all" for profile in profiles) else _MAGIC]
    for profile in profiles:
        arrays = {
            f"{part}.{name}": (array.dtype.newbyteorder("<").str, np.ascontiguousarray(array))
            for part, _ in _PARTS
            for name in getattr(profile, part).__struct_fields__
            if isinstance(array := getattr(getattr(profile, part), name), np.ndarray)
        }
        stored = _StoredProfile(
            **{name: getattr(profile, name) for name in _AS_IT_IS},
            text=profile.code.text,
            arrays={name: (kind, a.astype(kind).tobytes()) for name, (kind, a) in arrays.items()},
        )
        packed = zlib.compress(_ENCODER.encode(stored), _LEVEL)
        found += [_LENGTH.pack(len(packed)), packed]
    return b"".join(found)


def followed_all(blob: bytes) -> bool:
    """Whether calls of user code were followed, too, in all regions of such a blob."""
    return blob.startswith(_ALL_MAGIC)


def decode_profiles(blob: bytes) -> tuple[Profile, ...]:
    """The profiles of such a blob; LabError when it is damaged or cut off."""
    try:
        return tuple(_decoded(blob))
    except (
        zlib.error,
        struct.error,
        msgspec.DecodeError,
        ValueError,
        KeyError,
        TypeError,
    ) as error:
        raise LabError(
            f"a run's profiles cannot be read: {error}", "make the run again with --rerun"
        ) from error


def _decoded(blob: bytes) -> Iterator[Profile]:
    if not blob.startswith((_MAGIC, _ALL_MAGIC)):
        raise ValueError("they are none, or of another version")
    at = len(_MAGIC)
    while at < len(blob):
        (size,) = _LENGTH.unpack_from(blob, at)
        at += _LENGTH.size
        if at + size > len(blob):
            raise ValueError("they are cut off")
        stored = _DECODER.decode(zlib.decompress(blob[at : at + size]))
        at += size
        parts: dict[str, dict[str, Any]] = {part: {} for part, _ in _PARTS}
        parts["code"]["text"] = stored.text
        for name, (kind, content) in stored.arrays.items():
            part, _, field = name.partition(".")
            parts[part][field] = np.frombuffer(content, kind)
        yield Profile(
            **{name: getattr(stored, name) for name in _AS_IT_IS},
            tree=CallTree(**parts["tree"]),
            code=ExecutedCode(**parts["code"]),
            rows=Rows(**parts["rows"]),
        )
