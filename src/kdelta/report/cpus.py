# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs in reports: what `kdelta cpus` lists for programs."""

from collections.abc import Iterable

import msgspec

from kdelta.cpus.model import CPU, MissKind


class ListedPrice(msgspec.Struct, frozen=True):
    """What a miss costs, in cycles, from hidden to exposed; whether that was measured; the source
    of the figures.
    """

    low: float
    high: float
    calibrated: bool
    source: str


class ListedCPU(msgspec.Struct, frozen=True):
    """A CPU whose model cycles are available."""

    name: str
    title: str
    arch: str
    frontend: str
    cycles_per_insn: float
    misses: dict[MissKind, ListedPrice]


class CPUList(msgspec.Struct, frozen=True):
    """The whole of `kdelta cpus`. wrong: what the user's files say that are no CPUs."""

    cpus: tuple[ListedCPU, ...]
    wrong: tuple[str, ...]


def listed_cpus(known: Iterable[CPU], wrong: Iterable[str] = ()) -> CPUList:
    """Return the list of these CPUs."""
    return CPUList(tuple(map(_listed, known)), tuple(wrong))


def _listed(cpu: CPU) -> ListedCPU:
    prices = {
        kind: ListedPrice(
            price.hidden, price.exposed, price.calibrated, cpu.sources.get(f"misses.{kind}", "")
        )
        for kind, price in cpu.misses.items()
    }
    return ListedCPU(cpu.name, cpu.title, cpu.arch, cpu.frontend, cpu.cycles_per_insn, prices)


def bytes_text(count: int) -> str:
    """Bytes in the largest unit that needs no more than two decimals."""
    return f"{count >> 10} KiB" if count < 1 << 20 else f"{count / (1 << 20):g} MiB"


def prices_word(cpu: CPU) -> str:
    """For a table: how many of the prices of misses were measured, of how many."""
    known = [price.calibrated for price in cpu.misses.values()]
    return f"{sum(known)}/{len(known)}" if any(known) else "none"
