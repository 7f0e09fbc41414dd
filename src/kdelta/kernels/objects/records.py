# SPDX-License-Identifier: GPL-2.0-or-later
"""Records about functions (alternatives, static keys, fault tables) become part of them."""

import numpy as np
import numpy.typing as npt

from kdelta.kernels.objects.elf import Array, Bytes, Elf
from kdelta.kernels.objects.references import Layout, References
from kdelta.kernels.objects.sections import walk_of

Folded = dict[int, tuple[list[bytes], list[int]]]
"""For pieces: what their records hold, ordered, and the targets that these refer to."""

_MIN_RECORD, _MAX_RECORD = 4, 64


def fold_records(
    elf: Elf, layout: Layout, references: References, records: npt.NDArray[np.void]
) -> Folded:
    """Gives each record to the piece that it is about, which its first reference names.

    Where the records of a section cannot be distinguished, each piece that it names gets all of it.
    """
    owners = _owners(elf, layout, layout.n_named_targets + len(references.texts))
    folded: Folded = {}
    for number, indexes in layout.of_section.items():
        name = elf.sections[number].name
        if not walk_of(name).is_folded or not len(indexes):
            continue
        rows = np.flatnonzero(np.isin(references.source, np.array(indexes)))
        places = references.offset[rows] + layout.starts(references.source[rows])
        content = references.content[number]
        length = _record_bytes(len(content), places)
        for start in range(0, len(content), length or len(content)):
            end = start + (length or len(content))
            held_at = np.flatnonzero((places >= start) & (places < end))
            held = rows[held_at]
            about = owners[references.target[held]]
            about = about[about >= 0]
            part = _part(name, content[start:end], records[held], places[held_at] - start)
            for owner in np.unique(about[:1] if length else about).tolist():
                parts, targets = folded.setdefault(owner, ([], []))
                parts.append(part)
                targets.extend(references.target[held].tolist())
    for parts, _ in folded.values():
        parts.sort()
    return folded


def _part(name: str, held: Bytes, records: npt.NDArray[np.void], places: Array) -> bytes:
    relative = records.copy()
    relative["offset"] = places
    return name.encode() + b"\0" + held.tobytes() + relative.tobytes()


def _owners(elf: Elf, layout: Layout, n_targets: int) -> Array:
    """For each target the piece that it is, or -1."""
    owners = np.full(n_targets, -1, dtype=np.int64)
    n_pieces = len(layout.pieces)
    owners[:n_pieces] = np.arange(n_pieces)
    symbols = elf.symbols
    for section in np.unique(symbols.section).tolist():
        if layout.has(section):
            chosen = np.flatnonzero(symbols.section == section)
            owners[n_pieces + chosen] = layout.find(section, symbols.value[chosen])
    return owners


def _record_bytes(size: int, places: Array) -> int | None:
    """The shortest length of records at which references recur alike in each."""
    for length in range(_MIN_RECORD, min(_MAX_RECORD, size) + 1):
        count, rest = divmod(size, length)
        if not rest and 0 in places:
            _, times = np.unique(places % length, return_counts=True)
            if bool(np.all(times == count)):
                return length
    return None
