# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a CPU its buyer chooses: "cortex-a9,l2=256KiB,clock=1GHz" is a cortex-a9 with these.

l1i, l1d, l2=SIZE    of the sizes that the file says it comes in; the ways stay
l2-latency=CYCLES    what a miss of the L1I costs at most that hits the L2; the least moves too
replacement=POLICY   of the L1I, and of the instruction side's TLBs and BTB that have its
                     policy: lru, round-robin, random
clock=FREQUENCY      as 800MHz or 1.4GHz
"""

import math
import re
from collections.abc import Callable
from typing import get_args

import msgspec

from kdelta.cpus.model import CPU, Cache, MissPrice, Replacement
from kdelta.spec.errors import UserError

_CHOSEN = "chosen: {text}"
_SIZE = re.compile(r"(\d+) ?(KiB|MiB|K|M|)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20}
_CLOCK = re.compile(r"(\d+(?:\.\d+)?) ?(MHz|GHz)", re.IGNORECASE)
_FOLLOWING = ("itlb", "itlb_small", "btb")


def with_options(cpu: CPU, options: str) -> CPU:
    """The CPU with these options, "NAME=VALUE,...", which are added to its name; itself without.

    UserError for an option that there is not, or a value that the CPU does not come with.
    """
    for option in filter(None, (part.strip() for part in options.split(","))):
        name, has_value, value = option.partition("=")
        setter = _OPTIONS.get(name.strip())
        if setter is None or not has_value:
            raise UserError(
                f"{cpu.name}: {option!r} is no option of a CPU",
                f"there is: {', '.join(f'{known}=...' for known in _OPTIONS)}",
            )
        cpu = setter(cpu, name.strip(), value.strip())
        cpu = msgspec.structs.replace(cpu, name=f"{cpu.name},{name.strip()}={value.strip()}")
    return cpu


def _size(cpu: CPU, field: str, value: str) -> CPU:
    found = _SIZE.fullmatch(value)
    size = int(found[1]) * _UNITS[found[2].lower()] if found else 0
    sizes = cpu.sizes.get(field, ())
    if size not in sizes:
        known = ", ".join(f"{one >> 10}KiB" for one in sizes)
        raise UserError(
            f"{cpu.name} has no {field} of {value}",
            f"it comes with {known}" if known else "its size is no matter of choice",
        )
    cache: Cache = getattr(cpu, field)
    sets = size // (cache.ways * cache.line_bytes)
    return _replaced(cpu, field, value, {field: msgspec.structs.replace(cache, sets=sets)})


def _latency(cpu: CPU, name: str, value: str) -> CPU:
    cycles = _number(cpu, name, value)
    price = cpu.misses["l1i"]
    hidden = max(0.0, price.hidden + cycles - price.exposed)
    misses = {**cpu.misses, "l1i": MissPrice(hidden, cycles, price.calibrated)}
    fields: dict[str, object] = {"misses": misses}
    if cpu.front_end is not None:
        fields["front_end"] = msgspec.structs.replace(cpu.front_end, miss_cycles=cycles)
    return _replaced(cpu, "misses.l1i", f"{value} cycles", fields)


def _replacement(cpu: CPU, name: str, value: str) -> CPU:
    known = get_args(Replacement)
    if value not in known:
        raise UserError(f"{cpu.name}: no {name} is called {value!r}", f"there is: {_list(known)}")
    fields = ["l1i"]
    for field in _FOLLOWING:
        held: Cache | None = getattr(cpu, field)
        if held is not None and held.replacement == cpu.l1i.replacement:
            fields.append(field)
    changed: dict[str, object] = {
        field: msgspec.structs.replace(getattr(cpu, field), replacement=value) for field in fields
    }
    if cpu.front_end is not None:
        levels = (
            msgspec.structs.replace(level, replacement=value)
            if level.replacement == cpu.l1i.replacement
            else level
            for level in cpu.front_end.btb
        )
        changed["front_end"] = msgspec.structs.replace(cpu.front_end, btb=tuple(levels))
    return msgspec.structs.replace(cpu, **changed)


def _clock(cpu: CPU, name: str, value: str) -> CPU:
    found = _CLOCK.fullmatch(value)
    mhz = float(found[1]) * (1000 if found[2].lower() == "ghz" else 1) if found else 0.0
    if not mhz:
        raise UserError(f"{cpu.name}: {value!r} is no {name}", "give it as 800MHz or 1.4GHz")
    return _replaced(cpu, "clock", value, {"clock_mhz": mhz})


def _number(cpu: CPU, name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not (number > 0 and math.isfinite(number)):
        raise UserError(f"{cpu.name}: {name}={value} is no number of cycles", "it is positive")
    return number


def _replaced(cpu: CPU, source: str, text: str, fields: dict[str, object]) -> CPU:
    sources = {**cpu.sources, source: _CHOSEN.format(text=text)}
    return msgspec.structs.replace(cpu, sources=sources, **fields)


def _list(words: tuple[str, ...]) -> str:
    return ", ".join(words)


_OPTIONS: dict[str, Callable[[CPU, str, str], CPU]] = {
    "l1i": _size,
    "l1d": _size,
    "l2": _size,
    "l2-latency": _latency,
    "replacement": _replacement,
    "clock": _clock,
}
