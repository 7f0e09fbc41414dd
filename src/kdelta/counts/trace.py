# SPDX-License-Identifier: GPL-2.0-or-later
"""The trace of a region: the sequence of blocks that it executed, in pieces that repeat."""

import msgspec
import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

DATA = 1 << 31
"""In an item: the rest is an index into the table of data lines, not of blocks."""


class Trace(msgspec.Struct, frozen=True):
    """What one region executed, in order. All arrays are little-endian and read-only.

    Blocks (n_blocks,): virtual address, bytes and instructions of each; `physical` with data only.
    Items (n_items,): all distinct pieces, one after the other, as indexes of blocks, or, with the
    bit DATA, of data lines. Piece i is items[starts[i]:starts[i + 1]]; starts is (n_pieces + 1,).
    Sequence (n_executed,): the pieces in the order of execution, each in the context that
    `contexts` gives as an index into counts.model.CONTEXTS.
    Data lines (n_data,): addresses of lines of 64 bytes; a line that is stored to has an entry of
    its own for that. None without data.
    truncated: a limit was reached, and what came after is missing.
    """

    region: str
    addresses: U64
    sizes: U32
    insns: U32
    physical: U64 | None
    items: U32
    starts: U64
    sequence: U32
    contexts: U8
    truncated: bool
    iterations: int
    data_virtual: U64 | None = None
    data_physical: U64 | None = None
    data_stores: Flags | None = None
