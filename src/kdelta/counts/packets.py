# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets of regions, as a workload reports them: lines of "REGION PACKETS BYTES"."""

from collections.abc import Iterable

import msgspec

from kdelta.counts.model import Packets, RegionCounts
from kdelta.spec.errors import LabError


def with_packets(regions: Iterable[RegionCounts], said: bytes) -> tuple[RegionCounts, ...]:
    """The regions, each with the packets that were told of its name; a region that comes again has
    those of its own line. LabError for lines that are none, or of regions that were not counted.
    """
    told = [_parsed(line) for line in said.decode("utf-8", "replace").splitlines()]
    found = []
    for region in regions:
        at = next((index for index, (name, _) in enumerate(told) if name == region.name), None)
        packets = None if at is None else told.pop(at)[1]
        found.append(msgspec.structs.replace(region, packets=packets))
    if told:
        raise LabError(f"the workload reported packets of {told[0][0]}, which is no region of it")
    return tuple(found)


def _parsed(line: str) -> tuple[str, Packets]:
    words = line.rsplit(None, 2)
    if len(words) != 3 or not all(word.isascii() and word.isdigit() for word in words[1:]):
        raise LabError(f"the workload reported packets so: {line!r}")
    return words[0], Packets(int(words[1]), int(words[2]))
