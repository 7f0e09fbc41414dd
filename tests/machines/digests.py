# SPDX-License-Identifier: GPL-2.0-or-later
"""What two equal runs have in common, as hashes: more than the counts that users see."""

import hashlib
from pathlib import Path

import msgspec
import numpy as np

from kdelta.counts.raw import RawCounts, RawRegion
from kdelta.counts.trace import Trace
from kdelta.counts.trace_file import read_traces


class Digests(msgspec.Struct, frozen=True):
    """counts: the instructions of each iteration by context. trace: all units in their order, with
    contexts. blocks: what was executed of each translated block. QEMU may end a block elsewhere in
    another run; that changes no other figure.
    """

    counts: str
    blocks: str
    trace: str


def digests(path: Path) -> Digests:
    """Those of the plugin's file of a run. Numbers of blocks and addresses of the host are out."""
    raw = RawCounts(path)
    counts = [region.iterations.tobytes() + region.whole.tobytes() for region in raw.regions]
    blocks = [repr(_rows(raw, region)).encode() for region in raw.regions]
    traces = [_executed(trace) for trace in read_traces(path)]
    return Digests(_hash(counts), _hash(blocks), _hash(traces))


def _hash(parts: list[bytes]) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def _rows(raw: RawCounts, region: RawRegion) -> list[tuple[int, ...]]:
    return sorted(
        (raw.vaddr[row["block"]], len(raw.code[row["block"]]), *(int(n) for n in row.tolist()[1:]))
        for row in region.rows
    )


def _executed(trace: Trace) -> bytes:
    units = np.split(trace.addresses[trace.items], trace.starts[1:-1].astype(np.int64))
    pieces = [hashlib.sha256(piece.tobytes()).digest() for piece in units]
    return b"".join(pieces[piece] for piece in trace.sequence) + trace.contexts.tobytes()
