# SPDX-License-Identifier: GPL-2.0-or-later
"""Ablations of the fake tree, and a stand-in for the guests that run what comes of them."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from kdelta.infer.effects.estimate import Estimate
from kdelta.infer.effects.paths import RegionPath
from kdelta.kernels.config.kconfig import Config, parse_config
from kdelta.kernels.kbuild.failure import NoKernel
from kdelta.kernels.model import Kernel
from kdelta.spec.run import RunStatus
from kdelta.studies.search import measure as measuring
from kdelta.studies.search.measure import Bench, MeasuredKernel, SearchedRegion

EXECUTED = {"start", "start_kernel", "lock", "clear_pages", "list_valid"}
Truth = Callable[[Config], dict[str, int] | None]
"""What a kernel of that config executes, by region; None if it does not boot."""


def on(config: Config, name: str) -> bool:
    return config.get(f"CONFIG_{name}") == "y"


def plain(config: Config) -> dict[str, int] | None:
    size = 5 * on(config, "OPTIMIZE_FOR_SIZE")
    return {
        "open": 100 + 30 * on(config, "DEBUG_LIST") + 7 * on(config, "DEBUG_LOCK") + size,
        "fault": 200 + 100 * on(config, "ZERO_PAGES") + size,
        "empty": 4,
    }


class AblatedLab:
    """Stands for guests: counts the runs, and tells what the truth is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, truth: Truth) -> None:
        self.truth = truth
        self.measured = 0
        lab = self

        async def measure(
            _: Bench, label: str, kernel: Kernel | NoKernel, **options: Any
        ) -> MeasuredKernel:
            return lab.measure(label, kernel, options.get("runs") or 0)

        monkeypatch.setattr(Bench, "measure", measure)
        monkeypatch.setattr(measuring, "executed_names", lambda *_: frozenset(EXECUTED))

    def measure(self, label: str, kernel: Kernel | NoKernel, runs: int) -> MeasuredKernel:
        if isinstance(kernel, NoKernel):
            return MeasuredKernel(label, kernel, (), {}, kernel.text, kernel.status)
        self.measured += 1
        found = self.truth(parse_config(Path(kernel.config or "").read_text()))
        if found is None:
            return MeasuredKernel(
                label, kernel, (), {}, "boot-failed: panic", RunStatus.BOOT_FAILED
            )
        nothing = exactly(0, runs)
        return MeasuredKernel(
            label,
            kernel,
            (),
            {
                name: SearchedRegion(
                    "syscalls", RegionPath(exactly(n, runs), exactly(n, runs), nothing)
                )
                for name, n in found.items()
            },
        )


def exactly(value: int, runs: int) -> Estimate:
    return Estimate(Fraction(value), Fraction(value), Fraction(value), runs or 3)
