# SPDX-License-Identifier: GPL-2.0-or-later
"""What arrays of numbers are called in annotations, counting within runs of them, and sums."""

from typing import Any

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def run_offsets(lengths: I64) -> I64:
    """0, 1, ... up to each of these lengths, one after the other."""
    begins = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.arange(len(begins)) - begins


def sums_at(index: npt.NDArray[np.integer], values: npt.NDArray[Any], n: int) -> I64:
    """The sums of the values of each index, (n,), in whole numbers."""
    found = np.zeros(n, np.int64)
    np.add.at(found, index, values)
    return found
