# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes symbols of kernels and traces of runs, as small as a test needs them."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kdelta.counts.trace import Trace
from kdelta.kernels.objects.digest import Digest, ObjectDigest
from kdelta.kernels.objects.objects import CodePiece

START = 0xFFFFFFFF81000000

Row = tuple[int, str, str]
"""Address, type letter, name."""


def kallsyms(rows: Iterable[Row], modules: Iterable[tuple[int, str, str]] = ()) -> bytes:
    """The text of /proc/kallsyms; modules: address, function, module."""
    lines = [f"{address:016x} {kind} {name}" for address, kind, name in rows]
    lines += [f"{address:016x} t {name}\t[{module}]" for address, name, module in modules]
    return "".join(f"{line}\n" for line in lines).encode()


def text_rows(
    sizes: Mapping[str, int], alignment: int = 16, after: Mapping[str, int] | None = None
) -> list[Row]:
    """Functions of these sizes in main text, then `after` between the bounds of noinstr."""
    rows: list[Row] = [(START, "T", "_stext"), (START, "T", "_text")]
    at = START
    for name, size in sizes.items():
        at = -(-at // alignment) * alignment
        rows.append((at, "t", name))
        at += size
    at = -(-at // 64) * 64
    rows.append((at, "T", "__noinstr_text_start"))
    for name, size in (after or {"do_syscall_64": 64}).items():
        rows.append((at, "T", name))
        at += size
    rows.append((at, "T", "__noinstr_text_end"))
    rows.append((-(-at // 4096) * 4096, "T", "_etext"))
    return rows


def trace_of(
    blocks: Sequence[tuple[int, int]],
    pieces: Sequence[Sequence[int]] = ((),),
    sequence: Sequence[int] = (),
) -> Trace:
    """A trace of blocks (address, bytes), in pieces of items, executed in that sequence."""
    items = [item for piece in pieces for item in piece]
    starts = np.cumsum([0, *(len(piece) for piece in pieces)])
    return Trace(
        region="made",
        addresses=np.array([address for address, _ in blocks], dtype=np.uint64),
        sizes=np.array([size for _, size in blocks], dtype=np.uint32),
        insns=np.ones(len(blocks), dtype=np.uint32),
        physical=None,
        items=np.array(items, dtype=np.uint32),
        starts=starts.astype(np.uint64),
        sequence=np.array(sequence, dtype=np.uint32),
        contexts=np.zeros(len(sequence), dtype=np.uint8),
        truncated=False,
        iterations=1,
    )


def digest_of(objects: Mapping[str, Mapping[str, tuple[str, int, int]]]) -> Digest:
    """A digest of objects by path, assembler's end in .S.o; functions: section, size, hash."""
    return Digest(
        {
            path: ObjectDigest(
                path=path,
                source=path.removesuffix(".o"),
                module="",
                options=frozenset(),
                generated=frozenset(),
                is_assembler=path.endswith(".S.o"),
                is_opaque=False,
                functions={
                    name: CodePiece(hashed, size, section, ())
                    for name, (section, size, hashed) in functions.items()
                },
                data={},
                collected={},
            )
            for path, functions in objects.items()
        },
        {},
    )
