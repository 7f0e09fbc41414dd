# SPDX-License-Identifier: GPL-2.0-or-later
"""The code that a profile's rows are about: its blocks, groups and instructions, in their order."""

import numpy as np
import numpy.typing as npt

from kdelta.counts.profile import ExecutedCode, ProfiledFunction, Rows
from kdelta.counts.profile_tree import GroupRows, Grown
from kdelta.counts.raw import CodeMap, RawCounts

I64 = npt.NDArray[np.int64]
Shapes = dict[int, npt.NDArray[np.uint8]]


def code_of(
    tree: Grown, shapes: Shapes, raw: RawCounts, code: CodeMap
) -> tuple[tuple[ProfiledFunction, ...], ExecutedCode, Rows]:
    """Functions, code and rows of a profile. Blocks that no row is about are left out.

    shapes: by a block's number, (n_insns, 3): size, loads and stores of each instruction.
    """
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
    return functions, table, _rows(rows, tree, new_group)


def _rows(rows: GroupRows, tree: Grown, new_group: I64) -> Rows:
    order = tree.order()
    node = np.empty(len(order), np.int64)
    node[order] = np.arange(len(order))
    place = np.lexsort((new_group[rows.group], node[rows.node]))
    return Rows(
        node=node[rows.node][place].astype(np.int32),
        group=new_group[rows.group][place].astype(np.int32),
        entered=rows.entered[place],
        lost=rows.lost[place],
        elements=rows.elements[place],
        mmio=rows.mmio[place],
    )


def _code(
    blocks: list[int], shapes: Shapes, raw: RawCounts, code: CodeMap
) -> tuple[ExecutedCode, I64]:
    """The code of these blocks; and by a group's number its index there."""
    insns = np.concatenate([shapes[block] for block in blocks] or [np.zeros((0, 3), np.uint8)])
    per_block = np.array([len(shapes[block]) for block in blocks], np.int64)
    size = insns[:, 0].astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(size)])
    of_insn = np.concatenate([[0], np.cumsum(per_block)])
    text_start = ends[of_insn]
    within = ends[:-1] - np.repeat(text_start[:-1], per_block)
    vaddr = np.array([raw.vaddr[block] for block in blocks], np.uint64)
    first = np.array([raw.first_group[block] for block in blocks], np.int64)
    times = raw.group_ends(blocks, per_block.tolist()) - first
    groups = np.repeat(first - (np.cumsum(times) - times), times) + np.arange(times.sum())
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
        group_insns=group["insns"],
        group_inner_loads=group["inner_loads"],
        group_inner_stores=group["inner_stores"],
        group_special=group["special"],
        group_string=group["string"],
        group_element_bytes=group["element_bytes"],
        group_loads=group["loads"],
        group_stores=group["stores"],
        insn_group=np.repeat(np.arange(len(groups)), group["insns"]).astype(np.int32),
        insn_address=np.repeat(vaddr, per_block) + within.astype(np.uint64),
        insn_size=insns[:, 0],
        insn_loads=insns[:, 1],
        insn_stores=insns[:, 2],
    )
    return table, new_group
