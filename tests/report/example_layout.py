# SPDX-License-Identifier: GPL-2.0-or-later
"""A small report on layouts with something of everything it can say."""

from fractions import Fraction

import numpy as np

from kdelta.cpus import load_cpu
from kdelta.infer.cycles.ensembles import Ensemble, Interval, RegionCost
from kdelta.infer.cycles.prices import INSNS, prices_of
from kdelta.infer.cycles.sensitivity import cycle_range, distribution
from kdelta.infer.effects.estimate import estimate
from kdelta.measures.cycles.cut import CutRegion
from kdelta.report.model import Mismatch, ReportedCPU
from kdelta.studies.layout.model import Aligned, Collision, LayoutRegion, LayoutReport
from tests.report.example import MACHINE, report

LAYOUTS = 64


def region(name: str, mean: float, reach: float, seed: int) -> LayoutRegion:
    """Misses of lines around a mean; none of pages."""
    draws = np.round(np.random.default_rng(seed).uniform(mean - reach, mean + reach, LAYOUTS), 2)
    shipped = {"l1i": mean + 0.5 * reach, "itlb": 0.0}
    misses = {"l1i": draws, "itlb": np.zeros(LAYOUTS)}
    insns = estimate([Fraction(5000)])
    cost = RegionCost({INSNS: insns}, Ensemble(tuple(range(LAYOUTS)), misses), shipped)
    return LayoutRegion(
        name=name,
        iterations=100,
        insns=insns,
        misses={kind: distribution(held, shipped[kind]) for kind, held in misses.items()},
        draws={kind: tuple(held.tolist()) for kind, held in misses.items()},
        cycles=cycle_range(cost, prices_of(load_cpu("zen3"))),
        aligned=tuple(
            Aligned(
                size,
                {"l1i": mean * 16 / size, "itlb": 0.0},
                {
                    "l1i": distribution(draws * 16 / size, mean * 16 / size),
                    "itlb": distribution(misses["itlb"], 0.0),
                },
            )
            for size in (16, 32, 64)
        ),
        collisions=(
            Collision(("do_dentry_open", "alloc_fd"), 2.5, (3, 4, 5, 9, 11, 13, 15, 17, 19),
                      Interval(0, 35)),
            Collision(("memset_erms", "memset_erms"), 1.0, (7,), Interval(0, 14)),
            Collision(("link_path_walk.part.0.constprop.0", "__check_object_size#2"), 0.5, (1, 2),
                      Interval(0, 7)),
        ) if reach else (),
        colliding=mean if reach else 0.0,
        pairs=30 if reach else 0,
    )  # fmt: skip


def layout_report() -> LayoutReport:
    """Of a kernel whose run went well."""
    return LayoutReport(
        workload="syscalls",
        cpu=ReportedCPU("zen3", "AMD Zen 3: EPYC 7003", ("l1i", "itlb"), ("l1i", "itlb")),
        caches=("L1I 32 KiB, 8-way, lines of 64", "ITLB 64 pages of 2 MiB"),
        machine=MACHINE,
        kernel=report().base,
        layouts=LAYOUTS,
        seed=1,
        executed=161,
        movable=141,
        alignment=16,
        regions=(
            region("getppid", 0, 0, 1),
            region("open-close", 120, 40, 2),
            region("a-name-that-is-longer-than-its-column", 1.5e7, 1e6, 3),
            region("pipe", 7, 6.5, 4),
        ),
        cut=(
            CutRegion("fork-large", 1.3),
            CutRegion("fork"),
        ),
        mismatches=(Mismatch("ERMS", "ERMS: strings move by eight bytes", ("kernel",), ("pipe",)),),
        notes=("something is not in the model",),
        warnings=("the guest never became quiet",),
    )
