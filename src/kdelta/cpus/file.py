# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU's file, parsed: strictly, since what is unknown, impossible or without a source is the
user's slip, and named with its field. docs/cpus.md describes the file.
"""

import math
from collections.abc import Iterable

import msgspec

from kdelta.cpus.cache import LRU, Cache, Replacement, is_power_of_two
from kdelta.cpus.forced import FORCED_ON, features
from kdelta.cpus.like import LikeError, Table, whole
from kdelta.cpus.model import (
    ASSUMED,
    CPU,
    DATA_MISS_KINDS,
    DATA_TLBS,
    MAX_WAYS,
    MEASURED,
    MISS_KINDS,
    Core,
    Frontend,
    KernelPath,
    LineTransfer,
    MissKind,
    MissPrice,
    Price,
    Qemu,
)
from kdelta.spec.toml import check_toml

_FRONT_END = ("predictor", "indirect", "returns", "btb_second", "fetch", "op_cache")
_FRONT_END_COSTS = (
    *("conditional", "indirect", "return", "btb-first"),
    *("l1i-exposed", "fetch-windows", "op-cache", "fetch-waits"),
)
"""Tables of a front end, and costs of what it does, that older files have; they are left out."""


class SourcedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of a CPU's file, and where its figures are from."""

    source: str


class _Array(SourcedTable, frozen=True, kw_only=True):
    """`bytes` or `entries`, one of them: what the source says, to be checked by the rest."""

    sets: int
    ways: int
    replacement: Replacement = LRU
    bytes: int | None = None
    entries: int | None = None
    line_bytes: int | None = None
    page_bytes: int | None = None
    shared: bool | None = None
    sizes: tuple[int, ...] | None = None


class _Base(SourcedTable, frozen=True, kw_only=True):
    cycles_per_insn: float


class _Clock(SourcedTable, frozen=True, kw_only=True):
    mhz: float


class _Strings(SourcedTable, frozen=True, kw_only=True):
    bytes_per_cycle: tuple[float, float]


class _Miss(SourcedTable, frozen=True, kw_only=True):
    cycles: tuple[float, float]
    calibrated: bool


class _Transfer(SourcedTable, frozen=True, kw_only=True):
    near_ns: tuple[float, float]
    far_ns: tuple[float, float]


class _SpecialPrices(SourcedTable, frozen=True, kw_only=True):
    kinds: tuple[str, ...]
    cycles: tuple[float, float]


class _CPUTables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a CPU's TOML."""

    name: str
    title: str
    arch: str
    frontend: Frontend
    frontend_source: str
    sources: dict[str, str]
    l1i: _Array
    l1d: _Array
    l2: _Array
    itlb: _Array
    base: _Base
    strings: _Strings
    misses: dict[MissKind, _Miss]
    itlb_small: _Array | None = None
    btb: _Array | None = None
    dtlb: _Array | None = None
    dtlb_large: _Array | None = None
    dtlb_store: _Array | None = None
    stlb: _Array | None = None
    clock: _Clock | None = None
    special: tuple[_SpecialPrices, ...] = ()
    qemu: Qemu = Qemu()
    path: tuple[KernelPath, ...] = ()
    core: Core | None = None
    transfer: _Transfer | None = None


class CPUFileError(ValueError):
    """What is wrong with a CPU's file, beginning with the field."""


def decode_cpu(text: bytes) -> CPU:
    """Return the CPU of a file with that text; raises CPUFileError, which names the field."""
    own, raw = _parsed(text)
    _check_names(raw)
    sources = _sources(raw, own)
    cpu = CPU(
        name=raw.name,
        title=raw.title,
        arch=raw.arch,
        frontend=raw.frontend,
        l1i=_lines("l1i", raw.l1i),
        l1d=_lines("l1d", raw.l1d),
        l2=_lines("l2", raw.l2, may_be_shared=True),
        l2_shared=bool(raw.l2.shared),
        itlb=_pages("itlb", raw.itlb),
        itlb_small=_pages("itlb_small", raw.itlb_small) if raw.itlb_small else None,
        btb=_targets(raw.btb) if raw.btb else None,
        cycles_per_insn=_positive("base.cycles_per_insn", raw.base.cycles_per_insn),
        string_bytes_per_cycle=_rate(raw.strings),
        misses=_misses(raw),
        specials={
            kind: Price(*_interval(f"special.{kind}.cycles", special.cycles))
            for special in raw.special
            for kind in special.kinds
        },
        qemu=msgspec.structs.replace(raw.qemu, force_source=sources.get("qemu.force", "")),
        paths=tuple(
            msgspec.structs.replace(path, source=sources[f"path.{path.name}"]) for path in raw.path
        ),
        sources=sources,
        clock_mhz=_positive("clock.mhz", raw.clock.mhz) if raw.clock else None,
        sizes={
            field: sizes for field in ("l1i", "l1d", "l2") if (sizes := getattr(raw, field).sizes)
        },
        transfer=_transfer(raw.transfer) if raw.transfer else None,
        core=raw.core and msgspec.structs.replace(raw.core, source=sources["core"]),
        **_data_tlbs(raw),
    )
    _check_prices(cpu)
    _check_forced(cpu)
    return cpu


def _parsed(text: bytes) -> tuple[list[str], _CPUTables]:
    """The documents that the file has to name as sources, and its tables with those of the CPU that
    it is like.
    """
    try:
        check_toml(text.decode())
        own: Table = msgspec.toml.decode(text)
        tables = _without_front_end(own)
        found = msgspec.convert(whole(tables), _CPUTables)
        return list(own.get("sources", {})) if tables is own else [], found
    except (msgspec.DecodeError, ValueError, LikeError) as error:
        raise CPUFileError(str(error)) from error
    except RecursionError as error:
        raise CPUFileError("its brackets are nested too deeply") from error


def _without_front_end(own: Table) -> Table:
    """A file's tables without what older ones have: a front end, with a BTB that was for it alone,
    and by what costs were calibrated.
    """
    gone = {*_FRONT_END, "calibration"}
    misses = own.get("misses")
    if not isinstance(misses, dict) or gone.isdisjoint(own):
        return own
    btb = own.get("btb")
    costs = set(_FRONT_END_COSTS)
    if "fetch" in own and isinstance(btb, dict) and str(btb.get("source")).startswith(ASSUMED):
        gone.add("btb")
        costs.add("btb")
    kept = {name: table for name, table in own.items() if name not in gone}
    kept["misses"] = {kind: one for kind, one in misses.items() if kind not in costs}
    return kept


def _misses(raw: _CPUTables) -> dict[MissKind, MissPrice]:
    """The costs of misses. Where fetching runs ahead, a missing line may cost nothing."""
    found = {
        kind: MissPrice(*_interval(f"misses.{kind}.cycles", miss.cycles), miss.calibrated)
        for kind, miss in raw.misses.items()
    }
    if raw.frontend == "decoupled" and "l1i" in found:
        found["l1i"] = msgspec.structs.replace(found["l1i"], hidden=0.0)
    return found


def _data_tlbs(raw: _CPUTables) -> dict[str, Cache]:
    """Those of data that the file has."""
    given = {name: getattr(raw, name) for name in DATA_TLBS}
    found = {name: _pages(name, array) for name, array in given.items() if array is not None}
    if found and "dtlb" not in found:
        raise CPUFileError(f"there is a [{next(iter(found))}] and no [dtlb]")
    return found


def _check_names(raw: _CPUTables) -> None:
    for field in ("name", "title", "arch"):
        if not getattr(raw, field).strip():
            raise CPUFileError(f"`{field}` is empty")
    kinds = [kind for special in raw.special for kind in special.kinds]
    for field, names in (("special", kinds), ("path", [path.name for path in raw.path])):
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise CPUFileError(f"`{field}` has {min(twice)!r} twice")
    for path in raw.path:
        if not (path.flags or path.without or path.foreign):
            raise CPUFileError(f"`path` {path.name!r} says nothing by which it is recognised")


def _check_prices(cpu: CPU) -> None:
    there: dict[MissKind, bool] = {
        **dict.fromkeys(MISS_KINDS, True),
        "btb": cpu.btb is not None,
        **{
            kind: getattr(cpu, level) is not None
            for kind in DATA_MISS_KINDS
            if (level := kind.partition("-")[0]) in DATA_TLBS
        },
    }
    for kind, is_there in there.items():
        if is_there and kind in MISS_KINDS and kind not in cpu.misses:
            raise CPUFileError(f"`misses.{kind}` is missing: there is a [{kind}]")
        if kind in cpu.misses and not is_there:
            raise CPUFileError(f"`misses.{kind}` is the price of something that is not there")


def _check_forced(cpu: CPU) -> None:
    """Refuses what is no hint and no switch: a kernel might execute what QEMU lacks."""
    if not cpu.qemu.force:
        return
    if cpu.arch != FORCED_ON or not cpu.qemu.cpu:
        raise CPUFileError(f"`qemu.force` is for {FORCED_ON} and with a `qemu.cpu` only")
    for name in cpu.qemu.force:
        if name not in features():
            raise CPUFileError(
                f"`qemu.force` has {name!r}, which cannot be forced: only hints and switches can, "
                f"since a kernel may execute the instructions of others, which QEMU lacks; there "
                f"is: {', '.join(features())}"
            )


def _lines(field: str, array: _Array, *, may_be_shared: bool = False) -> Cache:
    """A cache of lines of memory."""
    _refuse(field, array, "entries", "page_bytes", *(() if may_be_shared else ("shared",)))
    size, line = _need(field, array, "bytes"), _need(field, array, "line_bytes")
    cache = _cache(field, array, "line_bytes", line)
    if cache.bytes != size:
        raise CPUFileError(
            f"`{field}`: {cache.sets} sets x {cache.ways} ways x {line} bytes are "
            f"{cache.bytes} bytes, not {size}"
        )
    for other in array.sizes or ():
        sets, rest = divmod(other, cache.ways * line)
        if rest or not is_power_of_two(sets):
            raise CPUFileError(f"`{field}.sizes`: {other} bytes are no power of two of sets")
    return cache


def _pages(field: str, array: _Array) -> Cache:
    """A TLB."""
    _refuse(field, array, "bytes", "line_bytes", "shared", "sizes")
    page = _need(field, array, "page_bytes")
    return _of_entries(field, array, _cache(field, array, "page_bytes", page))


def _targets(array: _Array) -> Cache:
    """A branch target buffer: its lines are branches, of a byte each."""
    _refuse("btb", array, "bytes", "line_bytes", "page_bytes", "shared", "sizes")
    return _of_entries("btb", array, _cache("btb", array, "", 1))


def _of_entries(field: str, array: _Array, cache: Cache) -> Cache:
    entries = _need(field, array, "entries")
    if cache.entries != entries:
        raise CPUFileError(
            f"`{field}`: {cache.sets} sets x {cache.ways} ways are {cache.entries} entries, "
            f"not {entries}"
        )
    return cache


def _cache(field: str, array: _Array, unit: str, line: int) -> Cache:
    for name, value in (("sets", array.sets), (unit, line)):
        if not is_power_of_two(value):
            raise CPUFileError(f"`{field}.{name}` is {value}, which is no power of two")
    if not 1 <= array.ways <= MAX_WAYS:
        raise CPUFileError(f"`{field}.ways` is {array.ways}; it has to be from 1 to {MAX_WAYS}")
    return Cache(array.sets, array.ways, line, array.replacement)


def _need(field: str, array: _Array, name: str) -> int:
    value = getattr(array, name)
    if not isinstance(value, int):
        raise CPUFileError(f"`{field}` has no `{name}`")
    return value


def _refuse(field: str, array: _Array, *names: str) -> None:
    for name in names:
        if getattr(array, name) is not None:
            raise CPUFileError(f"`{field}` has a `{name}`, which means nothing there")


def _interval(field: str, cycles: tuple[float, float]) -> tuple[float, float]:
    low, high = cycles
    if not (0 <= low <= high and math.isfinite(high)):
        raise CPUFileError(f"`{field}` is {list(cycles)}: it goes from 0 or more upwards")
    return low, high


def _positive(field: str, value: float) -> float:
    if not (value > 0 and math.isfinite(value)):
        raise CPUFileError(f"`{field}` is {value}; it has to be positive")
    return value


def _rate(strings: _Strings) -> Price:
    field = "strings.bytes_per_cycle"
    low, high = _interval(field, strings.bytes_per_cycle)
    return Price(_positive(field, low), high)


def _transfer(table: _Transfer) -> LineTransfer:
    near = _interval("transfer.near_ns", table.near_ns)
    far = _interval("transfer.far_ns", table.far_ns)
    if far[1] < near[1]:
        raise CPUFileError("`transfer`: far_ns ends below near_ns")
    return LineTransfer(near, far)


def _sources(raw: _CPUTables, own: Iterable[str]) -> dict[str, str]:
    """Where each field's figures are from, in full: the file names each document once. `own` are
    the keys of the file's own documents, each of which has to be the source of something.
    """
    tables_of_raw = ("l1i", "l1d", "l2", "itlb", "itlb_small", "btb", *DATA_TLBS)
    short = {
        "frontend": raw.frontend_source,
        **{
            name: table.source
            for name in (*tables_of_raw, "base", "clock", "strings", "transfer")
            if (table := getattr(raw, name))
        },
        **{f"misses.{kind}": miss.source for kind, miss in raw.misses.items()},
        **{f"special.{kind}": special.source for special in raw.special for kind in special.kinds},
        **{f"path.{path.name}": path.source for path in raw.path},
        **({"core": raw.core.source} if raw.core else {}),
        **({"qemu.force": raw.qemu.force_source} if raw.qemu.force else {}),
    }
    full = {field: _source(field, text, raw.sources) for field, text in short.items()}
    used = {text.split(maxsplit=1)[0].rstrip(",:;") for text in short.values()}
    for key in own:
        if key not in used:
            raise CPUFileError(f"`sources.{key}` is the source of nothing")
    return full


def _source(field: str, text: str, documents: dict[str, str]) -> str:
    """In full: "assumed: why", "measured: how", or a document's key and the place in it."""
    text = text.strip()
    for word in (ASSUMED, MEASURED):
        if text.startswith(word):
            if not text.removeprefix(word).strip():
                raise CPUFileError(f"`{field}`: its source is {word!r} and says no reason")
            return text
    if not text:
        raise CPUFileError(f"`{field}` has no source")
    key, _, place = text.partition(" ")
    document = documents.get(key.rstrip(",:;"), "").strip()
    if not document:
        raise CPUFileError(
            f"`{field}`: its source {text!r} is none of `sources`, and neither {ASSUMED!r} nor "
            f"{MEASURED!r}"
        )
    return f"{document}, {place.strip()}" if place.strip() else document
