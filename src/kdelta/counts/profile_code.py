# SPDX-License-Identifier: GPL-2.0-or-later
"""The code that a profile's rows are about: its blocks, groups and instructions, in their order."""

import numpy as np
import numpy.typing as npt

from kdelta.counts.profile import Code, Function, Rows
from kdelta.counts.profile_tree import GroupRows, Grown
from kdelta.counts.raw import CodeMap, RawCounts

I64 = npt.NDArray[np.int64]
Shapes = dict[int, npt.NDArray[np.uint8]]


def code_of(
    tree: Grown, shapes: Shapes, raw: RawCounts, code: CodeMap
) -> tuple[tuple[Function, ...], Code, Rows]:
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
    functions = tuple(Function(*place) for place in tree.places)
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


def _code(blocks: list[int], shapes: Shapes, raw: RawCounts, code: CodeMap) -> tuple[Code, I64]:
    """The code of these blocks; and by a group's number its index there."""
    groups: list[int] = []
    group_block: list[int] = []
    texts: list[bytes] = []
    insn_group: list[npt.NDArray[np.int64]] = []
    addresses: list[npt.NDArray[np.uint64]] = []
    for i, block in enumerate(blocks):
        shape = shapes[block].astype(np.int64)
        texts.append(raw.code[block][: int(shape[:, 0].sum())])
        at = np.cumsum(shape[:, 0]) - shape[:, 0]
        addresses.append(np.uint64(raw.vaddr[block]) + at.astype(np.uint64))
        first = last = raw.first_group[block]
        left = len(shape)
        while left > 0:
            left -= int(raw.groups["insns"][last])
            last += 1
        insn_group.append(
            np.repeat(np.arange(last - first) + len(groups), raw.groups["insns"][first:last])
        )
        groups += range(first, last)
        group_block += [i] * (last - first)
    new_group = np.full(len(raw.groups), -1, np.int64)
    new_group[groups] = np.arange(len(groups))
    group = raw.groups[groups]
    insns = np.concatenate([shapes[block] for block in blocks] or [np.zeros((0, 3), np.uint8)])
    table = Code(
        block_address=np.array([raw.vaddr[block] for block in blocks], np.uint64),
        block_function=code.of_block[blocks].astype(np.int32),
        block_offset=code.offset[blocks],
        text=b"".join(texts),
        text_start=np.concatenate([[0], np.cumsum([len(text) for text in texts], dtype=np.int64)]),
        group_block=np.array(group_block, np.int32),
        group_insns=group["insns"],
        group_inner_loads=group["inner_loads"],
        group_inner_stores=group["inner_stores"],
        group_special=group["special"],
        group_string=group["string"],
        group_element_bytes=group["element_bytes"],
        group_loads=group["loads"],
        group_stores=group["stores"],
        insn_group=np.concatenate(insn_group or [np.zeros(0, np.int64)]).astype(np.int32),
        insn_address=np.concatenate(addresses or [np.zeros(0, np.uint64)]),
        insn_size=insns[:, 0],
        insn_loads=insns[:, 1],
        insn_stores=insns[:, 2],
    )
    return table, new_group
