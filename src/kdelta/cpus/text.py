# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU's file as text: what `file.py` reads the very same CPU from."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from kdelta.cpus.cache import LRU, Cache
from kdelta.cpus.file import CPUFileError, decode_cpu
from kdelta.cpus.front_end import FrontEnd
from kdelta.cpus.model import ASSUMED, CPU, DATA_TLBS, MEASURED
from kdelta.spec.errors import LabError

_HEAD = "# SPDX-License-Identifier: GPL-2.0-or-later\n# docs/cpus.md describes this file.\n"
_SIZED = ("l1i", "l1d", "l2")

Table = dict[str, object]


def write_cpu(cpu: CPU, path: Path) -> None:
    """Writes a CPU's file, whole or not at all. LabError where it cannot be written, or where what
    would be written is no such CPU.
    """
    text = to_toml(cpu)
    try:
        same = decode_cpu(text.encode()) == cpu
    except CPUFileError as error:
        raise LabError(f"a file of the CPU {cpu.name} would be wrong: {error}") from error
    if not same:
        raise LabError(f"a file of the CPU {cpu.name} would not say all of it")
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_text(text, "utf-8")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise LabError(f"the CPU file {path} cannot be written: {error.strerror}") from error


def to_toml(cpu: CPU) -> str:
    """The text of a CPU's file; decode_cpu makes the same CPU of it."""
    return _HEAD + "".join(_lines(_FileTables(cpu).tables()))


class _FileTables:
    """A CPU on its way to tables. Its sources are whole texts, each of which is named once."""

    def __init__(self, cpu: CPU) -> None:
        """Names those that are documents."""
        self._cpu = cpu
        documents = dict.fromkeys(
            text for text in cpu.sources.values() if not text.startswith((ASSUMED, MEASURED))
        )
        self._names = {text: f"source-{at}" for at, text in enumerate(documents, start=1)}

    def tables(self) -> Table:
        """All of the file, in its order."""
        cpu = self._cpu
        rate = cpu.string_bytes_per_cycle
        clock = {"mhz": cpu.clock_mhz}
        return _there(
            {
                "name": cpu.name,
                "title": cpu.title,
                "arch": cpu.arch,
                "frontend": cpu.frontend,
                "frontend_source": self._source("frontend"),
                "sources": {name: text for text, name in self._names.items()},
                "core": self._sourced("core", _fields(cpu.core)) if cpu.core else None,
                "calibration": _fields(cpu.calibration) if cpu.calibration else None,
                **self._caches(),
                "base": self._sourced("base", {"cycles_per_insn": cpu.cycles_per_insn}),
                "clock": None if cpu.clock_mhz is None else self._sourced("clock", clock),
                "strings": self._sourced("strings", {"bytes_per_cycle": [rate.low, rate.high]}),
                **(self._front_end(cpu.front_end) if cpu.front_end else {}),
                "misses": {
                    str(kind): self._sourced(
                        f"misses.{kind}",
                        {"cycles": [price.hidden, price.exposed], "calibrated": price.calibrated},
                    )
                    for kind, price in cpu.misses.items()
                },
                "special": self._specials(),
                "qemu": {**_fields(cpu.qemu), **self._forced()},
                "path": [self._sourced(f"path.{path.name}", _fields(path)) for path in cpu.paths],
            }
        )

    def _forced(self) -> Table:
        return {"force_source": self._source("qemu.force")} if self._cpu.qemu.force else {}

    def _caches(self) -> Table:
        cpu = self._cpu
        found: dict[str, Table] = {}
        for name in _SIZED:
            cache: Cache = getattr(cpu, name)
            found[name] = {
                "bytes": cache.bytes,
                **_geometry(cache),
                "line_bytes": cache.line_bytes,
                "shared": cpu.l2_shared if name == "l2" else None,
                "sizes": list(cpu.sizes.get(name, ())) or None,
            }
        for name in ("itlb", "itlb_small", *DATA_TLBS):
            tlb: Cache | None = getattr(cpu, name)
            if tlb is not None:
                found[name] = {
                    "entries": tlb.entries, **_geometry(tlb), "page_bytes": tlb.line_bytes
                }  # fmt: skip
        levels = cpu.front_end.btb if cpu.front_end else ()
        if btb := cpu.btb or next(iter(levels), None):
            found["btb"] = {"entries": btb.entries, **_geometry(btb)}
        return {name: self._sourced(name, table) for name, table in found.items()}

    def _front_end(self, ahead: FrontEnd) -> Table:
        run, ops = ahead.run_ahead, ahead.op_cache
        second = ahead.btb[1] if len(ahead.btb) > 1 else None
        rate = ahead.cycles_per_insn
        found: dict[str, Table | None] = {
            "predictor": msgspec.to_builtins(ahead.conditional),
            "indirect": msgspec.to_builtins(ahead.indirect),
            "returns": {"entries": ahead.returns} if ahead.returns else None,
            "btb_second": None if second is None else {
                "entries": second.entries,
                "sets": second.sets,
                "ways": second.ways,
                "cycles": run.second_btb_cycles if run else 0,
            },
            "fetch": {
                "miss_cycles": ahead.miss_cycles,
                "next_line": ahead.next_line,
                "window_bytes": ahead.fetch_bytes,
                "ahead_windows": run and run.windows,
                "window_cycles": run and run.window_cycles,
                "delivery_cycles": (run and run.delivery_cycles) or None,
                "cycles_per_insn": None if rate == self._cpu.cycles_per_insn else rate,
            },
            "op_cache": None if ops is None else {
                "sets": ops.sets, "ways": ops.ways, "window_bytes": ops.line_bytes
            },
        }  # fmt: skip
        return {name: self._sourced(name, table) for name, table in found.items() if table}

    def _specials(self) -> list[Table]:
        """Those of one price and source together."""
        alike: dict[tuple[float, float, str], list[str]] = {}
        for kind, price in self._cpu.specials.items():
            source = self._source(f"special.{kind}")
            alike.setdefault((price.low, price.high, source), []).append(kind)
        return [
            {"kinds": kinds, "cycles": [low, high], "source": source}
            for (low, high, source), kinds in alike.items()
        ]

    def _sourced(self, field: str, table: Mapping[str, object]) -> Table:
        return {**_there(table), "source": self._source(field)}

    def _source(self, field: str) -> str:
        text = self._cpu.sources[field]
        return self._names.get(text, text)


def _there(table: Mapping[str, object]) -> Table:
    """What is not None."""
    return {name: value for name, value in table.items() if value is not None}


def _geometry(cache: Cache) -> Table:
    policy = {} if cache.replacement == LRU else {"replacement": cache.replacement}
    return {"sets": cache.sets, "ways": cache.ways, **policy}


def _fields(struct: msgspec.Struct) -> Table:
    """What is not empty."""
    found: Table = msgspec.to_builtins(struct)
    return {name: value for name, value in found.items() if value not in ("", [], (), {}, False)}


def _lines(table: Mapping[str, object], path: str = "") -> Iterator[str]:
    """A table of TOML: first its own values, then the tables in it."""
    for key, value in table.items():
        if not isinstance(value, dict) and not _are_tables(value):
            yield f"{_key(key)} = {_value(value)}\n"
    for key, value in table.items():
        name = f"{path}{_key(key)}"
        if isinstance(value, dict):
            nested = bool(value) and all(isinstance(one, dict) for one in value.values())
            yield "" if nested else f"\n[{name}]\n"
            yield from _lines(value, f"{name}.")
        elif isinstance(value, list) and _are_tables(value):
            for one in value:
                yield f"\n[[{name}]]\n"
                yield from (f"{_key(field)} = {_value(part)}\n" for field, part in one.items())


def _are_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _key(key: str) -> str:
    plain = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if plain else _value(key)


def _value(value: object) -> str:
    """A value of TOML. Its basic strings are escaped as JSON's are, and DEL is, too."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
