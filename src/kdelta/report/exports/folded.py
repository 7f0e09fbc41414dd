# SPDX-License-Identifier: GPL-2.0-or-later
"""Folded stacks, one a line, that flamegraph.pl, inferno and difffolded.pl read."""

import re
from collections import Counter
from collections.abc import Sequence

from kdelta.counts.profile import Profile
from kdelta.report.exports.forest import forest
from kdelta.report.exports.model import Export, Naming, Sums

_TWO_COUNTS = re.compile(r" (?=\d+(?:\.\d*)?$)")


def frame_text(label: str) -> str:
    """A label as a frame. A semicolon would end it, and a number at its end would be read as the
    first of two counts, as in the differential form.
    """
    return _TWO_COUNTS.sub("_", label.replace(";", ":"))


def folded(profiles: Sequence[Profile], naming: Naming) -> bytes:
    """A line for each stack that executed anything itself."""
    trees = forest(profiles, naming)
    texts = [frame_text(frame.label) for frame in trees.frames]
    paths: list[str] = []
    # Functions of one name are one in this format.
    lines: Counter[str] = Counter()
    for node, parent in enumerate(trees.parent):
        text = texts[trees.frame[node]]
        paths.append(f"{paths[parent]};{text}" if parent >= 0 else text)
        lines[paths[node]] += trees.own[node]
    return "".join(f"{path} {own}\n" for path, own in sorted(lines.items()) if own).encode()


def read_folded(data: bytes, naming: Naming) -> Sums:
    """The sum of all lines."""
    whole = sum(int(line.rpartition(" ")[2]) for line in data.decode().splitlines())
    return Counter({("", naming.column): whole})


FOLDED = Export(
    name="folded",
    suffix=".folded",
    summary="stacks for flamegraph.pl, inferno and difffolded.pl",
    make=folded,
    read=read_folded,
)
