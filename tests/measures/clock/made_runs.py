# SPDX-License-Identifier: GPL-2.0-or-later
"""Files as bundles write them, of runs that never took place."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kdelta.measures.clock.results import fnv1a

FACTS: dict[str, Any] = {
    "kdelta_bundle": 1,
    "bundle": "0123456789abcdef",
    "workload": "syscalls",
    "when": 1_790_000_000,
    "cpu": 1,
    "page_bytes": 4096,
    "clock": "tsc",
    "machine": "x86_64",
    "release": "6.12.0",
    "version": "Linux version 6.12.0",
    "build_id": "a" * 40,
    "boot_id": "boot-1",
    "command_line": "quiet",
    "uptime": "100.00 190.00",
    "load": "0.00 0.01 0.05 1/80 500",
    "memory": "MemTotal: 1000 kB",
    "cpu_model": "A CPU",
    "cpu_flags": "fpu constant_tsc nonstop_tsc",
    "microcode": "0x1",
    "online": "0-1",
    "smt": "off",
    "boost": "",
    "no_turbo": "",
    "governor": "performance",
    "driver": "acpi-cpufreq",
    "least_khz": "1000",
    "most_khz": "1000",
    "temperature": "40000",
    "clock_source": "tsc",
    "paranoid": "2",
    "file_system": 0x01021994,
}
TICKS_A_NS = 3


def region(name: str, nanoseconds: float, **more: Any) -> dict[str, Any]:
    """A region of three batches of 100 iterations, the last of which was disturbed."""
    ticks = round(100 * nanoseconds * TICKS_A_NS)
    samples = [[ticks, 100], [ticks, 100], [50 * ticks, 100]]
    total = sum(one for one, _ in samples)
    return {
        "region": name,
        "iterations": 300,
        "ticks": total,
        "ns": total // TICKS_A_NS,
        "overhead_ticks": 30,
        "samples": samples,
        "counters": {},
        "counter_errno": 2,
    } | more


def content(
    times: Mapping[str, float], *regions: dict[str, Any], status: int = 0, **facts: Any
) -> bytes:
    """A run in which an iteration of these regions takes so many nanoseconds."""
    rows = [region(name, ns) for name, ns in times.items()] + list(regions)
    lines = [json.dumps(one, separators=(",", ":")) for one in (FACTS | facts, *rows)]
    text = "".join(f"{line}\n" for line in lines).encode()
    end = {
        "regions": len(rows),
        "status": status,
        "involuntary_switches": 0,
        "online": (FACTS | facts)["online"],
        "boot_id": facts.get("boot_id", FACTS["boot_id"]),
        "hash": f"{fnv1a(text):016x}",
    }
    return text + f"{json.dumps(end)}\n".encode()


def write_boots(folder: Path, *boots: Mapping[str, float], first: int = 0, **facts: Any) -> Path:
    """A folder with a run for each of these boots, two hours apart from one another."""
    folder.mkdir()
    for at, times in enumerate(boots):
        when = FACTS["when"] + 7200 * at + first
        named = {"boot_id": f"{folder.name}-{at}", "when": when} | facts
        (folder / f"{at}.json").write_bytes(content(times, **named))
    return folder
