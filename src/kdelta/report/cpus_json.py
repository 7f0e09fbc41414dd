# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs as JSON: kdelta.cpus/1."""

from collections.abc import Iterable

import msgspec

from kdelta.cpus.model import CPU, Calibration


class JsonPrice(msgspec.Struct, frozen=True):
    """What a miss costs, in cycles, from hidden to exposed; whether that was measured; the source
    of the figures.
    """

    low: float
    high: float
    calibrated: bool
    source: str


class JsonCalibration(msgspec.Struct, frozen=True):
    """By what calibrated prices were measured; rank correlation: over the links of programs whose
    branches are not predictable.
    """

    when: str
    host: str
    programs: int
    relinks: int
    least_rank_correlation: float
    median_rank_correlation: float
    by: str


class JsonKnownCPU(msgspec.Struct, frozen=True):
    """A CPU that model cycles can be had for. calibration: null where there was none."""

    name: str
    title: str
    arch: str
    frontend: str
    cycles_per_insn: float
    misses: dict[str, JsonPrice]
    calibration: JsonCalibration | None


class JsonCpus(msgspec.Struct, frozen=True):
    """What `kdelta cpus --json` prints. wrong: what the user's files say that are no CPUs."""

    schema: str
    cpus: list[JsonKnownCPU]
    wrong: list[str]


def cpus_json(known: Iterable[CPU], wrong: Iterable[str] = ()) -> str:
    """The document, with a newline at its end."""
    found = JsonCpus("kdelta.cpus/1", [_cpu(cpu) for cpu in known], list(wrong))
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n"


def _cpu(cpu: CPU) -> JsonKnownCPU:
    prices = {
        str(kind): JsonPrice(
            price.hidden, price.exposed, price.calibrated, cpu.sources.get(f"misses.{kind}", "")
        )
        for kind, price in cpu.misses.items()
    }
    return JsonKnownCPU(
        name=cpu.name,
        title=cpu.title,
        arch=cpu.arch,
        frontend=cpu.frontend,
        cycles_per_insn=cpu.cycles_per_insn,
        misses=prices,
        calibration=json_calibration(cpu.calibration),
    )


def json_calibration(found: Calibration | None) -> JsonCalibration | None:
    """A calibration, if there was one."""
    if found is None:
        return None
    return JsonCalibration(
        found.when, found.host, found.programs, found.relinks, *found.rank_correlation, found.by
    )
