# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPU of the catalogue a machine's core is, and that CPU with prices that were measured."""

import re
from collections.abc import Collection, Mapping

import msgspec

from kdelta.cpus.catalog import DEFAULT_CPU, list_cpus
from kdelta.cpus.model import CPU, MEASURED, Calibration, Core, MissKind, MissPrice, Price
from kdelta.spec.errors import UserError

_FLAGS = ("flags", "Features")


def base_for(arch: str, numbers: str = "", flags: Collection[str] = ()) -> CPU:
    """The CPU of the catalogue that such a core is, or is nearest to.

    numbers: its family and model, or implementer and part, as text with spaces (what follows is
    not looked at). flags: its features. The numbers decide; where no CPU has them, as under a
    hypervisor that makes them up, the features do. The generic one where neither do and there is
    one of that architecture; else UserError.
    """
    known = [cpu for cpu in list_cpus().values() if cpu.arch == arch and cpu.core is not None]
    pair = _pair(numbers)
    for cpu in known:
        if pair is not None and cpu.core is not None and _has_numbers(cpu.core, pair):
            return cpu
    for cpu in known:
        if cpu.core is not None and _has_flags(cpu.core, frozenset(flags)):
            return cpu
    default = list_cpus()[DEFAULT_CPU]
    if default.arch == arch:
        return default
    names = ", ".join(cpu.name for cpu in list_cpus().values() if cpu.arch == arch)
    raise UserError(
        f"no CPU of {arch} that is known has the numbers {numbers or 'that are missing'}",
        f"name the one that is most like it: {names}" if names else "docs/cpus.md describes a file",
    )


def flags_of(cpuinfo: str) -> frozenset[str]:
    """The features of the first CPU of a /proc/cpuinfo."""
    for line in cpuinfo.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() in _FLAGS:
            return frozenset(value.split())
    return frozenset()


def calibrated(
    base: CPU,
    *,
    name: str,
    title: str,
    calibration: Calibration,
    misses: Mapping[MissKind, Price],
    specials: Mapping[str, Price] | None = None,
    cycles_per_insn: float | None = None,
    how: str,
) -> CPU:
    """A CPU of the catalogue with prices that were measured, under another name.

    misses: kinds that were measured; a kind that did not distinguish layouts has a price from zero
    on. Of the others the base's prices stay, as they are: not calibrated. cycles_per_insn: where it
    was measured; the front end goes on delivering as fast as the base's does, which no program's
    rate tells. how: they were, in words.
    """
    source = f"{MEASURED} {how}"
    changed: dict[str, object] = {}
    sources = dict(base.sources)
    for kind in misses:
        sources[f"misses.{kind}"] = source
    for special in specials or {}:
        sources[f"special.{special}"] = source
    if cycles_per_insn is not None:
        changed["cycles_per_insn"] = cycles_per_insn
        sources["base"] = source
    measured = {kind: MissPrice(price.low, price.high, True) for kind, price in misses.items()}
    return msgspec.structs.replace(
        base,
        name=name,
        title=title,
        calibration=calibration,
        misses={**base.misses, **measured},
        specials={**base.specials, **(specials or {})},
        sources=sources,
        **changed,
    )


def _pair(numbers: str) -> tuple[int, int] | None:
    words = re.findall(r"\b(?:0x[0-9a-fA-F]+|\d+)\b", numbers)
    if len(words) < 2:
        return None
    return int(words[0], 0), int(words[1], 0)


def _has_numbers(core: Core, pair: tuple[int, int]) -> bool:
    return any(pair[0] == first and low <= pair[1] <= high for first, low, high in core.numbers)


def _has_flags(core: Core, flags: frozenset[str]) -> bool:
    return bool(core.flags) and flags.issuperset(core.flags) and flags.isdisjoint(core.without)
