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
from kdelta.cpus.model import ASSUMED, CPU, DATA_TLBS, MEASURED, KernelPath
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
    return _HEAD + "".join(_lines(_File(cpu).tables()))


class _File:
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
        found: Table = {
            "name": cpu.name,
            "title": cpu.title,
            "arch": cpu.arch,
            "frontend": cpu.frontend,
            "frontend_source": self._source("frontend"),
            "sources": {name: text for text, name in self._names.items()},
        }
        if cpu.core is not None:
            found["core"] = {**_fields(cpu.core), "source": self._source("core")}
        if cpu.calibration is not None:
            found["calibration"] = _fields(cpu.calibration)
        found |= self._caches()
        found["base"] = self._sourced("base", {"cycles_per_insn": cpu.cycles_per_insn})
        if cpu.clock_mhz is not None:
            found["clock"] = self._sourced("clock", {"mhz": cpu.clock_mhz})
        rate = cpu.string_bytes_per_cycle
        found["strings"] = self._sourced("strings", {"bytes_per_cycle": [rate.low, rate.high]})
        if cpu.front_end is not None:
            found |= self._front_end(cpu.front_end)
        found["misses"] = {
            str(kind): self._sourced(
                f"misses.{kind}",
                {"cycles": [price.hidden, price.exposed], "calibrated": price.calibrated},
            )
            for kind, price in cpu.misses.items()
        }
        found["special"] = self._specials()
        found["qemu"] = _fields(cpu.qemu)
        found["path"] = [self._path(path) for path in cpu.paths]
        return found

    def _caches(self) -> Table:
        cpu = self._cpu
        found: Table = {}
        for name in _SIZED:
            cache: Cache = getattr(cpu, name)
            table: Table = {
                "bytes": cache.bytes,
                **_geometry(cache),
                "line_bytes": cache.line_bytes,
            }
            if name == "l2":
                table["shared"] = cpu.l2_shared
            if sizes := cpu.sizes.get(name):
                table["sizes"] = list(sizes)
            found[name] = self._sourced(name, table)
        for name in ("itlb", "itlb_small", *DATA_TLBS):
            tlb: Cache | None = getattr(cpu, name)
            if tlb is not None:
                page = {"entries": tlb.entries, **_geometry(tlb), "page_bytes": tlb.line_bytes}
                found[name] = self._sourced(name, page)
        levels = cpu.front_end.btb if cpu.front_end else ()
        btb = cpu.btb or (levels[0] if levels else None)
        if btb is not None:
            found["btb"] = self._sourced("btb", {"entries": btb.entries, **_geometry(btb)})
        return found

    def _front_end(self, ahead: FrontEnd) -> Table:
        found: Table = {}
        for name, predictor in (("predictor", ahead.conditional), ("indirect", ahead.indirect)):
            if predictor is not None:
                found[name] = self._sourced(name, msgspec.to_builtins(predictor))
        if ahead.returns:
            found["returns"] = self._sourced("returns", {"entries": ahead.returns})
        run = ahead.run_ahead
        if len(ahead.btb) > 1:
            second = ahead.btb[1]
            table: Table = {"entries": second.entries, "sets": second.sets, "ways": second.ways}
            table["cycles"] = run.second_btb_cycles if run else 0
            found["btb_second"] = self._sourced("btb_second", table)
        fetch: Table = {"miss_cycles": ahead.miss_cycles, "next_line": ahead.next_line}
        if ahead.fetch_bytes is not None:
            fetch["window_bytes"] = ahead.fetch_bytes
        if run is not None:
            fetch |= {"ahead_windows": run.windows, "window_cycles": run.window_cycles}
            if run.delivery_cycles:
                fetch["delivery_cycles"] = run.delivery_cycles
        if ahead.cycles_per_insn != self._cpu.cycles_per_insn:
            fetch["cycles_per_insn"] = ahead.cycles_per_insn
        found["fetch"] = self._sourced("fetch", fetch)
        if ahead.op_cache is not None:
            held = ahead.op_cache
            window: Table = {"sets": held.sets, "ways": held.ways, "window_bytes": held.line_bytes}
            found["op_cache"] = self._sourced("op_cache", window)
        return found

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

    def _path(self, path: KernelPath) -> Table:
        return {**_fields(path), "source": self._source(f"path.{path.name}")}

    def _sourced(self, field: str, table: Mapping[str, object]) -> Table:
        return {**table, "source": self._source(field)}

    def _source(self, field: str) -> str:
        text = self._cpu.sources[field]
        return self._names.get(text, text)


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
