# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU's front end: what predicts branches, and how far ahead of execution it fetches.

docs/replay.md, "The front end", says what the replay makes of it; docs/cpus.md has the tables.
"""

import math
from itertools import pairwise

import msgspec

from kdelta.cpus.cache import Cache, is_power_of_two

MOST_CONDITIONAL_TABLES = 12
MOST_INDIRECT_TABLES = 4
MOST_HISTORY = 1000
"""Taken branches."""
MOST_ENTRIES = 1 << 16
MOST_TAG_BITS = 16
MOST_RETURNS = 256
MOST_AHEAD = 256
"""Windows."""


class FrontEndError(ValueError):
    """What is wrong with the tables of a front end, beginning with the field."""


class Predictor(msgspec.Struct, frozen=True):
    """A base table, by a branch's address alone, and tagged ones, by address and history.

    base_entries  of the base table
    entries       of each tagged table
    tag_bits      of each entry
    histories     of each table: how many taken branches tell its entry, upwards
    """

    base_entries: int
    entries: int
    tag_bits: int
    histories: tuple[int, ...]


class RunAhead(msgspec.Struct, frozen=True):
    """How fetching runs ahead along the prediction.

    windows            that can be predicted and not yet executed
    window_cycles      a window is predicted every so many cycles
    second_btb_cycles  that go by when the first BTB does not have a branch that the second has
    delivery_cycles    a window is delivered to execution every so many cycles at most, and as many
                       more go by at a branch that the first BTB does not have; 0: not known
    """

    windows: int
    window_cycles: float
    second_btb_cycles: float
    delivery_cycles: float = 0


class FrontEnd(msgspec.Struct, frozen=True):
    """What is known of it. What is None, empty or 0 is not modelled: it never misses.

    conditional      predicts whether a branch is taken
    indirect         predicts where an indirect jump or call goes
    returns          entries of the stack of return addresses
    btb              levels of the branch target buffer, the nearest first: one or two
    fetch_bytes      aligned windows of so many bytes are fetched
    op_cache         of decoded operations: a line is a window of code
    next_line        a line that is fetched brings the next one along
    run_ahead        None: fetching waits for each branch ("coupled")
    miss_cycles      from asking for a line that is not in the L1I until it is there
    cycles_per_insn  at which instructions are executed meanwhile: how fast they are delivered
    """

    conditional: Predictor | None = None
    indirect: Predictor | None = None
    returns: int = 0
    btb: tuple[Cache, ...] = ()
    fetch_bytes: int | None = None
    op_cache: Cache | None = None
    next_line: bool = False
    run_ahead: RunAhead | None = None
    miss_cycles: float = 0
    cycles_per_insn: float = 0.5


class SourcedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of a CPU's file, and where its figures are from."""

    source: str


class _PredictorTable(SourcedTable, frozen=True, kw_only=True):
    base_entries: int
    entries: int = 1
    tag_bits: int = 1
    histories: tuple[int, ...] = ()


class _Returns(SourcedTable, frozen=True, kw_only=True):
    entries: int


class _Second(SourcedTable, frozen=True, kw_only=True):
    entries: int
    sets: int
    ways: int
    cycles: float


class _Fetch(SourcedTable, frozen=True, kw_only=True):
    miss_cycles: float
    window_bytes: int | None = None
    next_line: bool = False
    ahead_windows: int | None = None
    window_cycles: float = 1
    delivery_cycles: float = 0
    cycles_per_insn: float | None = None


class _OpCache(SourcedTable, frozen=True, kw_only=True):
    sets: int
    ways: int
    window_bytes: int


class FrontEndTables(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tables of a CPU's file that describe its front end, besides `frontend` and [btb]."""

    predictor: _PredictorTable | None = None
    indirect: _PredictorTable | None = None
    returns: _Returns | None = None
    btb_second: _Second | None = None
    fetch: _Fetch | None = None
    op_cache: _OpCache | None = None

    def sources(self) -> dict[str, str]:
        """Where the figures of each table that is there are from."""
        tables = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: table.source for name, table in tables.items() if table is not None}


def front_end(
    tables: FrontEndTables, *, decoupled: bool, btb: Cache | None, cycles_per_insn: float
) -> FrontEnd | None:
    """The front end that the tables describe; None without [fetch], if nothing else is there.

    decoupled: what the file's `frontend` says. btb: of its [btb]. cycles_per_insn: of its [base],
    where [fetch] has none of its own. Raises FrontEndError, which names the field.
    """
    if not tables.sources():
        return None
    if tables.fetch is None:
        raise FrontEndError("`fetch` is missing: there are other tables of the front end")
    fetch, ops = tables.fetch, tables.op_cache
    window = fetch.window_bytes
    if window is not None and not (is_power_of_two(window) and window <= 4096):
        raise FrontEndError(f"`fetch.window_bytes` is {window}; it is a power of two up to 4096")
    rate = cycles_per_insn if fetch.cycles_per_insn is None else fetch.cycles_per_insn
    if not (rate > 0 and math.isfinite(rate)):
        raise FrontEndError(f"`fetch.cycles_per_insn` is {rate}; it is positive")
    return FrontEnd(
        conditional=_predictor("predictor", tables.predictor, MOST_CONDITIONAL_TABLES),
        indirect=_predictor("indirect", tables.indirect, MOST_INDIRECT_TABLES),
        returns=_returns(tables.returns),
        btb=_levels(btb, tables.btb_second),
        fetch_bytes=window,
        op_cache=_geometry("op_cache", ops.sets, ops.ways, ops.window_bytes) if ops else None,
        next_line=fetch.next_line,
        run_ahead=_run_ahead(fetch, tables.btb_second, decoupled=decoupled),
        miss_cycles=_cycles("fetch.miss_cycles", fetch.miss_cycles),
        cycles_per_insn=rate,
    )


def _predictor(field: str, table: _PredictorTable | None, most: int) -> Predictor | None:
    if table is None:
        return None
    for name in ("base_entries", "entries"):
        value = getattr(table, name)
        if not (is_power_of_two(value) and value <= MOST_ENTRIES):
            raise FrontEndError(
                f"`{field}.{name}` is {value}; it is a power of two up to {MOST_ENTRIES}"
            )
    if not 1 <= table.tag_bits <= MOST_TAG_BITS:
        raise FrontEndError(
            f"`{field}.tag_bits` is {table.tag_bits}; it is from 1 to {MOST_TAG_BITS}"
        )
    lengths = table.histories
    if len(lengths) > most:
        raise FrontEndError(f"`{field}.histories` has {len(lengths)} tables; {most} at most")
    upwards = all(a < b for a, b in pairwise(lengths))
    if lengths and not (upwards and lengths[0] >= 1 and lengths[-1] <= MOST_HISTORY):
        raise FrontEndError(
            f"`{field}.histories` is {list(lengths)}; they go upwards, from 1 to {MOST_HISTORY}"
        )
    return Predictor(table.base_entries, table.entries, table.tag_bits, lengths)


def _returns(table: _Returns | None) -> int:
    if table is None:
        return 0
    if not 1 <= table.entries <= MOST_RETURNS:
        raise FrontEndError(f"`returns.entries` is {table.entries}; it is from 1 to {MOST_RETURNS}")
    return table.entries


def _levels(first: Cache | None, second: _Second | None) -> tuple[Cache, ...]:
    if second is None:
        return (first,) if first else ()
    if first is None:
        raise FrontEndError("there is a [btb_second] and no [btb]")
    found = _geometry("btb_second", second.sets, second.ways, 1)
    if found.entries != second.entries:
        raise FrontEndError(
            f"`btb_second`: {second.sets} sets x {second.ways} ways are {found.entries} entries, "
            f"not {second.entries}"
        )
    return first, found


def _geometry(field: str, sets: int, ways: int, line: int) -> Cache:
    if not (is_power_of_two(sets) and is_power_of_two(line) and 1 <= ways <= 64):
        raise FrontEndError(
            f"`{field}` has {sets} sets of {ways} ways; sets and windows are powers of two, "
            "and ways from 1 to 64"
        )
    return Cache(sets, ways, line)


def _run_ahead(fetch: _Fetch, second: _Second | None, *, decoupled: bool) -> RunAhead | None:
    ahead = fetch.ahead_windows
    if not decoupled:
        if ahead is not None:
            raise FrontEndError("`fetch.ahead_windows` means nothing where fetching is coupled")
        if fetch.delivery_cycles:
            raise FrontEndError("`fetch.delivery_cycles` means nothing where fetching is coupled")
        return None
    if ahead is None or not 1 <= ahead <= MOST_AHEAD:
        raise FrontEndError(
            f"`fetch.ahead_windows` is {ahead}; it is from 1 to {MOST_AHEAD} in a decoupled "
            "front end"
        )
    return RunAhead(
        ahead,
        _cycles("fetch.window_cycles", fetch.window_cycles),
        _cycles("btb_second.cycles", second.cycles if second else 0),
        _cycles("fetch.delivery_cycles", fetch.delivery_cycles),
    )


def _cycles(field: str, value: float) -> float:
    if not (0 <= value <= 1000 and math.isfinite(value)):
        raise FrontEndError(f"`{field}` is {value}; it is from 0 to 1000 cycles")
    return value
