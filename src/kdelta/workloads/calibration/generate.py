# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of the calibration, as C text: deterministic, of a footprint and a flow each."""

from collections.abc import Iterator

import msgspec

from kdelta.spec.timings import Flow


class ProgramSource(msgspec.Struct, frozen=True):
    """One program: C text and the arguments that its links are run with.

    Programs of one `code` have the same `c_source`, so that it is compiled and linked once; they
    differ in `arguments` (order of calls, bytes of data). `relinks`: how many links of it tell
    something, at most.
    """

    name: str
    code: str
    flow: Flow
    functions: int
    statements: int
    data: str
    data_bytes: int
    arguments: tuple[str, ...]
    relinks: int
    c_source: str


def programs(*, quick: bool = False) -> Iterator[ProgramSource]:
    """The default set, or fewer programs."""
    yield from _QUICK if quick else _DEFAULT


_DEFAULT: tuple[ProgramSource, ...] = ()
_QUICK: tuple[ProgramSource, ...] = ()
