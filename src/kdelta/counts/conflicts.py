# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of memory that one CPU writes and another one accesses, by variable, field and function."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from kdelta.spec.errors import LabError

LINE_BYTES = 64

Place = Literal["variable", "per-CPU", "object", "stack", "page", "memory"]
"""Where a line is: in a variable, in one of a CPU's own, in an object of a cache (slab), in a
task's kernel stack, in the description of a page, or in memory that nothing more is known of."""


class CpuAccesses(msgspec.Struct, frozen=True):
    """What one CPU did. `locked`: writes by instructions that lock the line."""

    reads: int = 0
    writes: int = 0
    locked: int = 0

    def __add__(self, other: "CpuAccesses") -> "CpuAccesses":
        """Return the accesses of both."""
        return CpuAccesses(
            self.reads + other.reads, self.writes + other.writes, self.locked + other.locked
        )

    @property
    def total(self) -> int:
        return self.reads + self.writes


class FieldUse(msgspec.Struct, frozen=True):
    """The accesses of one function to one place of a line, by CPU, the first being that which began
    the region. place: the variable or kind of object, with the field there or an offset in it.
    """

    place: str
    function: str
    cpus: tuple[CpuAccesses, ...]


class ContestedField(msgspec.Struct, frozen=True):
    """A place that CPUs contend for, or that lies in a line which they contend for: see FieldUse.

    is_named    it is known by a name that other kernels have for it, too
    function    the one that writes it most often; of what is only read, reads it
    accesses    of all CPUs, as are `writes`
    is_neighbor   CPUs do not contend for its bytes: one reads it in each iteration and another one
                writes the line, or one writes it and another one accesses the line
    is_placed   it is in the line of another variable or object alone, or of one that does not begin
                at a line: where these are decides that it is
    skew_bytes  so far behind a line's start its variable or object begins
    """

    place: str
    is_named: bool
    function: str
    accesses: int
    writes: int
    is_neighbor: bool = False
    is_placed: bool = False
    skew_bytes: int = 0

    @property
    def name(self) -> str:
        """Return what it is called: a place that has no name of its own with its function."""
        return self.place if self.is_named else f"{self.place} by {self.function}"


class ContendedLine(msgspec.Struct, frozen=True):
    """A line, or several that hold the same of objects of one kind.

    fields       what CPUs contend for in it, the most written first; of a line whose bytes are not
                 shared, what is written in it. Then what is read or written next to it in each
                 iteration, the most accessed first
    is_true      a CPU writes bytes that another one accesses; else they share the line alone
    is_steady    in each such line one CPU writes and another one accesses, each in half of the
                 iterations or more often; else now and then
    count        of lines
    is_placed    its bytes are not shared, and no variable in it is contended for on its own: that
                 several lie in it is the linker's doing
    """

    where: Place
    fields: tuple[ContestedField, ...]
    is_true: bool
    is_steady: bool
    count: int
    uses: tuple[FieldUse, ...]
    is_placed: bool = False

    @property
    def name(self) -> str:
        """Return what is contended for most in it."""
        return self.fields[0].name

    @property
    def cpus(self) -> tuple[CpuAccesses, ...]:
        """Return what each CPU did to them."""
        return sum_by_cpu([use.cpus for use in self.uses])

    @property
    def accesses(self) -> int:
        """Return how often they were accessed."""
        return sum(one.total for one in self.cpus)


def sum_by_cpu(rows: Sequence[Sequence[CpuAccesses]]) -> tuple[CpuAccesses, ...]:
    """Return the sum by CPU of one row or more."""
    return tuple(sum(column, CpuAccesses()) for column in zip(*rows, strict=True))


class Conflicts(msgspec.Struct, frozen=True):
    """What CPUs contended for in a region, the most accessed lines first.

    is_cut  the region accessed more than is kept: lines may be missing
    """

    region: str
    iterations: int
    cpus: int
    is_cut: bool
    lines: tuple[ContendedLine, ...]

    @property
    def steady(self) -> tuple[ContendedLine, ...]:
        """Return the lines that are contended for in each iteration."""
        return tuple(line for line in self.lines if line.is_steady)


def encode_conflicts(found: tuple[Conflicts, ...]) -> bytes:
    """Return what `decode_conflicts` reads."""
    return msgspec.json.encode(found)


def decode_conflicts(content: bytes) -> tuple[Conflicts, ...]:
    """Return what was kept; LabError for what is damaged."""
    try:
        return msgspec.json.decode(content, type=tuple[Conflicts, ...])
    except msgspec.MsgspecError as error:
        raise LabError(f"the conflicts of a run are damaged: {error}", "run again") from error
