# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPU of the catalogue a machine's core is, and that CPU with prices that were measured."""

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

import msgspec

from kdelta.cpus.catalog import DEFAULT_CPU, list_cpus
from kdelta.cpus.cores import with_core
from kdelta.cpus.model import CPU, MEASURED, Calibration, MissKind, MissPrice, Price
from kdelta.spec.errors import UserError


def base_for(arch: str, numbers: str = "", flags: Collection[str] = ()) -> CPU:
    """The CPU of the catalogue that such a core is, or is nearest to.

    numbers: its family and model, or implementer and part, as text with spaces (what follows is
    not looked at). flags: its features. The numbers decide; where no CPU has them, as under a
    hypervisor that makes them up, the features do. The generic one where neither do and there is
    one of that architecture; else UserError.
    """
    cpus = [cpu for cpu in list_cpus().values() if cpu.arch == arch]
    known = with_core(cpus, _pair(numbers), flags)
    found = [known] if known else [cpu for cpu in cpus if cpu.name == DEFAULT_CPU]
    if found:
        return found[0]
    names = ", ".join(cpu.name for cpu in cpus)
    raise UserError(
        f"no CPU of {arch} that is known has the numbers {numbers or 'that are missing'}",
        f"name the one that is most like it: {names}" if names else "docs/cpus.md describes a file",
    )


def calibrated(
    base: CPU,
    *,
    name: str,
    title: str,
    calibration: Calibration,
    misses: Mapping[MissKind, Price],
    specials: Mapping[str, Price] = MappingProxyType({}),
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
    fields = [*(f"misses.{kind}" for kind in misses), *(f"special.{kind}" for kind in specials)]
    fields += [] if cycles_per_insn is None else ["base"]
    measured = {kind: MissPrice(price.low, price.high, True) for kind, price in misses.items()}
    return msgspec.structs.replace(
        base,
        name=name,
        title=title,
        calibration=calibration,
        misses={**base.misses, **measured},
        specials={**base.specials, **specials},
        sources=base.sources | dict.fromkeys(fields, source),
        cycles_per_insn=base.cycles_per_insn if cycles_per_insn is None else cycles_per_insn,
    )


def _pair(numbers: str) -> tuple[int, int] | None:
    words = re.findall(r"\b(?:0x[0-9a-fA-F]+|\d+)\b", numbers)
    if len(words) < 2:
        return None
    return int(words[0], 0), int(words[1], 0)
