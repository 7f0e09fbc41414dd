# SPDX-License-Identifier: GPL-2.0-or-later
"""Ablations of the fake tree, and what the kernels that come of them execute."""

from collections.abc import Callable
from pathlib import Path

from kdelta.counts.model import RunCounts
from kdelta.kernels.config.kconfig import Config, parse_config
from kdelta.kernels.model import Kernel
from kdelta.store.store import Store
from tests.studies.search_lab import SearchLab, counts_of

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


class AblatedLab(SearchLab):
    """Kernels that execute what the truth says of their configs."""

    executed = frozenset({"start", "start_kernel", "lock", "clear_pages", "list_valid"})

    def __init__(self, store: Store, truth: Truth) -> None:
        super().__init__(store)
        self.truth = truth

    def counts(self, kernel: Kernel, _index: int) -> RunCounts | None:
        """Return what the truth comes to."""
        found = self.truth(config_of(kernel))
        if found is None:
            return None
        return counts_of({name: {f"do_{name}": n} for name, n in found.items()})


def config_of(kernel: Kernel) -> Config:
    """Return the config that a kernel was built with."""
    return parse_config(Path(kernel.config or "").read_text())
