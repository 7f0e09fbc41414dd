# SPDX-License-Identifier: GPL-2.0-or-later
"""What the proof of docs/cases/option-groups refuses, and which options its configs differ in."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from kdelta.infer.effects.estimate import Estimate
from kdelta.kernels.config.kconfig import parse_config
from kdelta.studies.ablate.model import AblatedGroup, AblationReport, GroupOutcome
from kdelta.studies.search.model import AblatedRegion
from scripts.proofs.option_groups import HARDENED, PLAIN, WITHOUT, problems
from tests.report.test_ablation import REPORT

FOLDER = Path(__file__).parents[3] / "docs/cases/option-groups"
NAMES = ("stat", "mmap-munmap")


def figure(value: Fraction | int, reach: Fraction | int = 0) -> Estimate:
    return Estimate(Fraction(value), Fraction(value) - reach, Fraction(value) + reach, 8)


def unit(name: str, stat: Estimate, mapping: Estimate) -> AblatedGroup:
    effects = dict(zip(NAMES, (stat, mapping), strict=True))
    return AblatedGroup(name, (f"{name} n -> y",), (), GroupOutcome.MEASURED, "", 1, 1, effects)


def region(name: str, remainder: Estimate) -> AblatedRegion:
    return AblatedRegion(
        workload="syscalls",
        name=name,
        before=figure(10_000),
        after=figure(10_100),
        whole=figure(100 + remainder.value),
        explained=figure(100),
        remainder=remainder,
        lookups=figure(0),
    )


def report(
    left: Estimate | None = None,
    buckets: Estimate | None = None,
    random: tuple[Estimate, Estimate] | None = None,
) -> AblationReport:
    """Two regions of 10,000, in which 10 more or less is 0.1 %."""
    nothing = figure(0, 5)
    return msgspec.structs.replace(
        REPORT,
        regions=tuple(region(name, left or nothing) for name in NAMES),
        option_groups=(
            unit("INIT_ON_ALLOC_DEFAULT_ON", figure(100), figure(100)),
            unit("SLAB_BUCKETS", buckets or nothing, nothing),
            unit("SLAB_FREELIST_RANDOM", *(random or (nothing, figure(8, 2)))),
        ),
    )


def said(found: AblationReport) -> list[str]:
    return list(problems(found))


def test_parts_and_whole_that_agree_closely_are_the_proof() -> None:
    assert said(report()) == []


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda: report(left=figure(0, 11)), "is known to 0.220 %, and 0.2 % are allowed"),
        (lambda: report(left=figure(0, 11)), "parts and whole: cannot tell"),
        (lambda: report(left=figure(30, 5)), "parts and whole: does not add up: +0.300 %"),
        (lambda: report(buckets=figure(-50, 2)), "SLAB_BUCKETS has -0.250 %, and +0.000 %"),
        (lambda: report(buckets=figure(4, 2)), "SLAB_BUCKETS does something in stat: +4.00"),
        (
            lambda: report(random=(figure(50, 5), figure(0, 5))),
            "SLAB_FREELIST_RANDOM has +0.250 %, and +0.000 %",
        ),
        (
            lambda: report(random=(figure(6, 5), figure(8, 50))),
            "SLAB_FREELIST_RANDOM does something in stat: +6.00",
        ),
        (
            lambda: msgspec.structs.replace(report(), option_groups=()),
            "SLAB_BUCKETS was not measured",
        ),
        (lambda: msgspec.structs.replace(report(), failure="B: build-failed"), "B: build-failed"),
    ],
)
def test_what_does_not_agree_is_named(broken: Callable[[], AblationReport], words: str) -> None:
    assert any(words in line for line in said(broken())), said(broken())


def test_the_configs_differ_in_the_groups_alone() -> None:
    plain, hardened = (
        parse_config((FOLDER / f"{name}.config").read_text()) for name in (PLAIN, HARDENED)
    )
    assert set(plain.values()) == {"n"}
    assert set(hardened.values()) == {"y"}
    assert hardened.keys() - plain.keys() == {"CONFIG_STACKPROTECTOR_STRONG"}
    assert len(plain) == 8
    assert {f"CONFIG_{name}" for name in WITHOUT} <= plain.keys()
