# SPDX-License-Identifier: GPL-2.0-or-later
"""Times in the units that people publish."""

from pathlib import Path
from typing import Any

import pytest

from kdelta.measures.clock.boots import paired, read_folder
from kdelta.measures.clock.judged import timed_effects
from kdelta.measures.clock.units import published
from tests.measures.clock.made_runs import content, region

CYCLES = {"user_cycles": [300, 10, 10], "kernel_cycles": [1200, 10, 5]}


def figures(
    folder: Path, workload: str, *ns: float, **more: object
) -> dict[str, tuple[float, ...]]:
    """Return by operation and unit the figures of base and other, which takes twice as long."""
    name = {"aes": "user-encrypt", "nat": "udp-1400b", "kbuild": "small-j1"}.get(workload, "own")
    for side, at, factor in (("base", 0, 1), ("other", 1, 2)):
        (folder / side).mkdir()
        for number, one in enumerate(ns):
            facts: dict[str, Any] = {
                "when": 1_790_000_000 + 200 * number + 100 * at,
                "workload": workload,
            }
            facts |= {"boot_id": f"{side} {number}", "build_id": side}
            text = content({}, region(name, factor * one, **more), **facts)
            (folder / side / f"{number}.json").write_bytes(text)
    timed = paired(read_folder(folder / "base"), read_folder(folder / "other"))
    found = published(timed)
    assert timed_effects(timed, 0.01).others == found
    assert timed_effects(timed, 0.01, ("another",)).others == ()
    return {one.unit: (one.base, one.other) for one in found if one.region == name}


def test_bytes_of_a_cipher_are_megabytes_a_second(tmp_path: Path) -> None:
    assert figures(tmp_path, "aes", 5120, 5120) == {"MB/s": (100, 50)}


def test_bytes_of_a_network_are_megabits_a_second(tmp_path: Path) -> None:
    found = figures(tmp_path, "nat", 11_200, 11_200)
    assert found == {
        "Mb/s": pytest.approx((1000, 500)),
        "iterations a second": pytest.approx((1e9 / 11_200, 1e9 / 22_400)),
    }


def test_what_is_long_is_seconds_real_user_and_sys(tmp_path: Path) -> None:
    # Of 300 iterations, user and system time in microseconds.
    found = figures(tmp_path, "kbuild", 2e9, 2e9, user_us=300 * 1_500_000, system_us=300 * 400_000)
    assert found["s real"] == pytest.approx((2, 4))
    assert (found["s user"], found["s sys"]) == ((1.5, 1.5), (0.4, 0.4))


def test_cycles_are_those_that_were_counted(tmp_path: Path) -> None:
    # A counter that ran half of the time has counted half.
    assert figures(tmp_path, "bench", 100, 100, counters=CYCLES) == {"cycles": (9, 9)}
