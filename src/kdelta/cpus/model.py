# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU: its caches, what things cost on it, and the paths that a kernel takes on it.

docs/cpus.md describes the file. A file is taken apart strictly: what is unknown, impossible or
without a source is the user's slip, and named with its field.
"""

import math
from typing import Literal, get_args

import msgspec

from kdelta.cpus.cache import LRU as LRU  # noqa: PLC0414 (for others to import from here)
from kdelta.cpus.cache import Cache as Cache  # noqa: PLC0414
from kdelta.cpus.cache import Replacement as Replacement  # noqa: PLC0414
from kdelta.cpus.cache import is_power_of_two

DataMissKind = Literal[
    "l1d", "l1d-store", "l2-data", "l2-data-store", "dtlb", "dtlb-store", "stlb", "stlb-store"
]
"""What accesses to data can miss, loads and stores apart: a line in the L1D; in the L2, too; a page
in the first-level TLB of data; in the second-level TLB, too."""

DATA_MISS_KINDS: tuple[DataMissKind, ...] = get_args(DataMissKind)

MissKind = Literal["l1i", "itlb", "btb", "l2", DataMissKind]
"""What can miss: a line of code, a page of code, a branch's target, a line in the unified L2; and
what accesses to data can."""

MISS_KINDS: tuple[MissKind, ...] = ("l1i", "itlb", "btb", "l2")
"""Those that hang on where code lies; all CPUs have prices of them, if they have such a thing."""

Frontend = Literal["coupled", "decoupled"]
"""Whether fetching waits for the branch that it follows ("coupled"), or runs ahead of execution
along predicted branches ("decoupled"), which hides misses."""

ASSUMED = "assumed:"
MEASURED = "measured:"

_DATA_TLBS = ("dtlb", "dtlb_large", "dtlb_store", "stlb")

MAX_WAYS = 128
"""Fully associative TLBs of the cores described here have up to so many entries."""


class Price(msgspec.Struct, frozen=True):
    """What something costs, in cycles: at least `low`, at most `high`."""

    low: float
    high: float


class MissPrice(msgspec.Struct, frozen=True):
    """What a miss costs: `hidden`, behind other work, to `exposed`, in full; in cycles.

    `calibrated` says whether the interval was measured with a clock on such a CPU.
    """

    hidden: float
    exposed: float
    calibrated: bool


class Qemu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What makes an emulated machine look like this CPU to a kernel.

    cpu     QEMU's model and flags; empty where no machine of kdelta's emulates it yet
    append  words for the kernel's command line, where no flag makes it take the CPU's path
    reason  why these
    """

    cpu: str = ""
    append: str = ""
    reason: str = ""


class KernelPath(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A path that a kernel takes on this CPU, how to tell whether it did, and what hangs on it.

    name         what it is, in words
    source       from where it is known that this CPU has it
    flags        of /proc/cpuinfo, which this CPU has; without them a kernel takes another path
    without      flags of /proc/cpuinfo that this CPU has not
    mitigations  file of /sys/devices/system/cpu/vulnerabilities -> what a kernel that was built
                 with all mitigations says there on this CPU
    foreign      such a file -> words that no kernel says there on this CPU: one that says any of
                 them took another path. (What a kernel was not built to do it does nowhere.)
    not_emulated what of it QEMU's TCG cannot offer, in words; empty where it can
    otherwise    what the kernel does without it, in words
    functions    patterns (as of a shell) of functions whose path it changes
    specials     special instructions whose number it changes
    strings      whether it changes how strings are copied and cleared
    entries      whether it changes each way into the kernel and out of it
    """

    name: str
    source: str
    otherwise: str
    flags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    mitigations: dict[str, str] = {}
    foreign: dict[str, tuple[str, ...]] = {}
    not_emulated: str = ""
    functions: tuple[str, ...] = ()
    specials: tuple[str, ...] = ()
    strings: bool = False
    entries: bool = False


class CPU(msgspec.Struct, frozen=True):
    """All that is known about a CPU.

    itlb         for pages of the size in which the kernel's own code is mapped
    itlb_small   for pages of 4 KiB, in which modules and programs are; None where not published
    btb          None where its geometry was not published
    dtlb         of data, for pages of 4 KiB; for all sizes where there is no other. None where
                 nothing is known of the TLBs of data
    dtlb_large   for larger pages, where these have one of their own
    dtlb_store   for stores, where these have one of their own, for pages of all sizes
    stlb         the second level, for pages of all sizes; None where there is none or it is unknown
    cycles_per_insn  the base rate: stated, not measured
    string_bytes_per_cycle  how fast string operations (rep movs) are, from worst to best
    misses       the prices of misses, by kind
    specials     special instruction -> what it costs beyond an instruction
    sources      field of the file -> where its figures are from, in full
    clock_mhz    at which such a core runs; None where no device is meant
    sizes        "l1i", "l1d", "l2" -> what sizes it comes in, in bytes, where a licensee chooses
    """

    name: str
    title: str
    arch: str
    frontend: Frontend
    l1i: Cache
    l1d: Cache
    l2: Cache
    l2_shared: bool
    itlb: Cache
    itlb_small: Cache | None
    btb: Cache | None
    cycles_per_insn: float
    string_bytes_per_cycle: Price
    misses: dict[MissKind, MissPrice]
    specials: dict[str, Price]
    qemu: Qemu
    paths: tuple[KernelPath, ...]
    sources: dict[str, str]
    clock_mhz: float | None = None
    sizes: dict[str, tuple[int, ...]] = {}
    dtlb: Cache | None = None
    dtlb_large: Cache | None = None
    dtlb_store: Cache | None = None
    stlb: Cache | None = None

    @property
    def least_recent(self) -> "CPU":
        """The same with caches that all evict what was least recently used."""
        caches = {
            name: cache.least_recent
            for name in ("l1i", "l1d", "l2", "itlb", "itlb_small", "btb", *_DATA_TLBS)
            if (cache := getattr(self, name)) is not None
        }
        return msgspec.structs.replace(self, **caches)

    @property
    def calibrated(self) -> bool:
        """Whether all prices of misses were measured with a clock on such a CPU."""
        return all(price.calibrated for price in self.misses.values())


class _Array(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`bytes` or `entries`, one of them: what the source says, to be checked by the rest."""

    source: str
    sets: int
    ways: int
    replacement: Replacement = LRU
    bytes: int | None = None
    entries: int | None = None
    line_bytes: int | None = None
    page_bytes: int | None = None
    shared: bool | None = None
    sizes: tuple[int, ...] | None = None


class _Base(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cycles_per_insn: float
    source: str


class _Clock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mhz: float
    source: str


class _Strings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bytes_per_cycle: tuple[float, float]
    source: str


class _Miss(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cycles: tuple[float, float]
    calibrated: bool
    source: str


class _Special(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kinds: tuple[str, ...]
    cycles: tuple[float, float]
    source: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    special: tuple[_Special, ...] = ()
    qemu: Qemu = Qemu()
    path: tuple[KernelPath, ...] = ()


class CPUFileError(ValueError):
    """What is wrong with a CPU's file, beginning with the field."""


def decode_cpu(text: bytes) -> CPU:
    """A CPU from the text of its file; raises CPUFileError, which names the field."""
    try:
        raw = msgspec.toml.decode(text, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CPUFileError(str(error)) from error
    _check_names(raw)
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
        misses={kind: _miss(kind, miss) for kind, miss in raw.misses.items()},
        specials={
            kind: Price(*_interval(f"special.{kind}.cycles", special.cycles))
            for special in raw.special
            for kind in special.kinds
        },
        qemu=raw.qemu,
        paths=raw.path,
        sources=_sources(raw),
        clock_mhz=_positive("clock.mhz", raw.clock.mhz) if raw.clock else None,
        sizes={
            field: sizes for field in ("l1i", "l1d", "l2") if (sizes := getattr(raw, field).sizes)
        },
        **_data_tlbs(raw),
    )
    _check_prices(cpu)
    return cpu


def _data_tlbs(raw: _File) -> dict[str, Cache]:
    """Those of data that the file has."""
    given = {name: getattr(raw, name) for name in _DATA_TLBS}
    found = {name: _pages(name, array) for name, array in given.items() if array is not None}
    if found and "dtlb" not in found:
        raise CPUFileError(f"there is a [{next(iter(found))}] and no [dtlb]")
    return found


def _check_names(raw: _File) -> None:
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
            raise CPUFileError(f"`path` {path.name!r} says nothing by which it can be told")


def _check_prices(cpu: CPU) -> None:
    for kind in MISS_KINDS:
        there = kind != "btb" or cpu.btb is not None
        if there and kind not in cpu.misses:
            raise CPUFileError(f"`misses.{kind}` is missing: there is a [{kind}]")
        if kind in cpu.misses and not there:
            raise CPUFileError(f"`misses.{kind}` is the price of something that is not there")
    for kind in DATA_MISS_KINDS:
        level = kind.partition("-")[0]
        if kind in cpu.misses and level in _DATA_TLBS and getattr(cpu, level) is None:
            raise CPUFileError(f"`misses.{kind}` is the price of something that is not there")


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


def _miss(kind: MissKind, miss: _Miss) -> MissPrice:
    return MissPrice(*_interval(f"misses.{kind}.cycles", miss.cycles), miss.calibrated)


def _sources(raw: _File) -> dict[str, str]:
    """Where each field's figures are from, in full: the file names each document once."""
    short = {
        "frontend": raw.frontend_source,
        "l1i": raw.l1i.source,
        "l1d": raw.l1d.source,
        "l2": raw.l2.source,
        "itlb": raw.itlb.source,
        **({"itlb_small": raw.itlb_small.source} if raw.itlb_small else {}),
        **({"btb": raw.btb.source} if raw.btb else {}),
        **{name: array.source for name in _DATA_TLBS if (array := getattr(raw, name))},
        "base": raw.base.source,
        **({"clock": raw.clock.source} if raw.clock else {}),
        "strings": raw.strings.source,
        **{f"misses.{kind}": miss.source for kind, miss in raw.misses.items()},
        **{f"special.{kind}": special.source for special in raw.special for kind in special.kinds},
        **{f"path.{path.name}": path.source for path in raw.path},
    }
    full = {field: _source(field, text, raw.sources) for field, text in short.items()}
    used = {text.split(maxsplit=1)[0].rstrip(",:;") for text in short.values()}
    for key in raw.sources:
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
