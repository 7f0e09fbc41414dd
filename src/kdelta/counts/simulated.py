# SPDX-License-Identifier: GPL-2.0-or-later
"""Misses of an instruction cache that the plugin simulated while the guest ran."""

import struct
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kdelta.counts.model import CONTEXTS
from kdelta.cpus.model import Cache
from kdelta.machines.chunks import read_chunks, require_complete
from kdelta.spec.errors import LabError

_HEAD = struct.Struct("<4I3Q")
_ROW = struct.Struct("<QQQQ")


class SimulatedMisses(msgspec.Struct, frozen=True, array_like=True):
    """What a region missed in a cache of lines of virtual addresses, as the kernel is linked.

    misses: by context in the order of CONTEXTS. A block is fetched whole, so this is what a replay
    of the region's trace counts that begins with the cache as it was. The cache is empty at the
    guest's first ARM mark, and warm from then on.
    places: what was fetched first of a line that missed -> misses by context. Its address is the
    line's, or the block's if that starts within the line.
    """

    region: str
    cache: Cache
    misses: tuple[int, int, int]
    places: dict[int, tuple[int, int, int]]

    def total(self) -> int:
        """Misses in all contexts."""
        return sum(self.misses)


def read_simulated(path: Path) -> tuple[SimulatedMisses, ...]:
    """What a finished run's file holds of it; regions of one name are one. LabError for a file that
    is cut short or damaged, or whose places' misses do not add up.
    """
    require_complete(path)
    found: dict[str, SimulatedMisses] = {}
    for tag, payload in read_chunks(path):
        if tag == b"MISS":
            one = _one(payload)
            found[one.region] = _sum(found[one.region], one) if one.region in found else one
    return tuple(found.values())


def _one(payload: memoryview) -> SimulatedMisses:
    try:
        head = _HEAD.unpack_from(payload)
        sets, ways, line_bytes, length = head[:4]
        name = bytes(payload[_HEAD.size : _HEAD.size + length])
        places: dict[int, tuple[int, int, int]] = {}
        for address, *misses in _ROW.iter_unpack(payload[_HEAD.size + length :]):
            places[address] = _added(places.get(address, (0, 0, 0)), misses)
    except struct.error as error:
        raise LabError(f"the misses of a region are damaged: {error}", "run again") from error
    cache = Cache(sets, ways, line_bytes)
    found = SimulatedMisses(name.decode("utf-8", "replace"), cache, head[4:7], places)
    for context, word in enumerate(CONTEXTS):
        counted = sum(misses[context] for misses in places.values())
        if counted != found.misses[context]:
            raise LabError(
                f"region {found.region}: the {word} misses add up to {counted}, not "
                f"{found.misses[context]}",
                "this is a fault of kdelta's; please report it with the kernel and the workload",
            )
    return found


def _added(a: Sequence[int], b: Sequence[int]) -> tuple[int, int, int]:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _sum(a: SimulatedMisses, b: SimulatedMisses) -> SimulatedMisses:
    places = dict(a.places)
    for address, misses in b.places.items():
        places[address] = _added(places.get(address, (0, 0, 0)), misses)
    return SimulatedMisses(a.region, a.cache, _added(a.misses, b.misses), places)


def encode_simulated(found: Sequence[SimulatedMisses]) -> bytes:
    """The misses of a run's regions as JSON."""
    return msgspec.json.encode(found)


def decode_simulated(text: bytes) -> tuple[SimulatedMisses, ...]:
    """Reads that JSON; LabError for anything else."""
    try:
        return msgspec.json.decode(text, type=tuple[SimulatedMisses, ...])
    except msgspec.MsgspecError as error:
        raise LabError(
            f"a run's simulated misses cannot be read: {error}", "make the run again with --rerun"
        ) from error
