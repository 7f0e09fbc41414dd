# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta place` as text and as JSON."""

import msgspec
import pytest

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Word
from kdelta.measures.cycles.cut import CutRegion
from kdelta.report.model import Mismatch, ReportedCPU
from kdelta.studies.documents import document_text
from kdelta.studies.place.model import (
    Applied,
    AppliedRegion,
    PlacedMisses,
    PlacedRegion,
    PlaceReport,
)
from tests.report.decoded import decoded
from tests.report.example import MACHINE, report
from tests.report.example_times import effect, times
from tests.report.shown import unwrapped

NONE = PlacedMisses(0, 0, 0, 0, None, {"shipped": 0, "annealed": 0})


def _region(
    name: str, shipped: float, predicted: float, weight: float = 1.0, btb: PlacedMisses = NONE
) -> PlacedRegion:
    misses = PlacedMisses(
        as_linked=shipped,
        predicted=predicted,
        median=shipped * 1.1,
        best=shipped * 0.7,
        associative=predicted / 2,
        methods={"shipped": shipped, "annealed": predicted},
    )
    return PlacedRegion(
        name=name,
        weight=weight,
        iterations=100,
        misses={"l1i": misses, "btb": btb},
        as_linked=Interval(5000, 5000 + 14 * shipped),
        predicted=Interval(5000, 5000 + 14 * predicted),
    )


REPORT = PlaceReport(
    workloads=("syscalls", "aes"),
    cpu=ReportedCPU("zen3", "AMD Zen 3: EPYC 7003", ("l1i", "btb"), ("l1i",)),
    caches=("L1I 32 KiB, 8-way, lines of 64", "BTB 6656 branches, 13-way"),
    machine=MACHINE,
    kernel=report().base,
    layouts=64,
    seed=1,
    file="order.txt",
    functions=278,
    padding=12,
    method="annealed",
    costs={"shipped": 0.2445, "c3": 0.0199, "annealed": 0.0056},
    median=0.2462,
    best=0.1377,
    evaluations=3000,
    regions=(
        _region("syscalls/getppid", 0, 0),
        _region("syscalls/open-close", 125.15, 2.88, 3),
        _region("syscalls/a-name-that-is-longer-than-its-column", 1e6, 5e5),
        _region(
            "aes/cbc", 10, 12.5, 0, PlacedMisses(1, 2, 1, 1, None, {"shipped": 1.0})
        ),
    ),
    cut=(CutRegion("syscalls/fork", 1.3),),
    mismatches=(Mismatch("ERMS", "ERMS: strings move by eight bytes", ("kernel",), ("aes/cbc",)),),
    notes=("something is not in the model",),
    warnings=("the guest never became quiet",),
)  # fmt: skip


APPLIED = Applied(
    kernel=report().base,
    regions=(
        AppliedRegion("syscalls/getppid", 500, 0, 0, 0, 0, 0, 0),
        AppliedRegion("syscalls/open-close", 100, 125.15, 137.67, 87.61, 2.88, 2.9, 0),
        AppliedRegion("syscalls/a-name-longer-than-its-column", 9, 1e6, 11e5, 7e5, 5e5, 6e5, -1.5),
        AppliedRegion("aes/cbc", 10, 10, 11, 7, 12.5, 12.5, 0.25),
    ),
    warnings=("the guest never became quiet", "another"),
    measured=times(
        effect("syscalls/open-close", Word.FASTER, -0.2, -0.1,
               "explained by placement"),
        effect("aes/cbc", Word.SAME, -0.001, 0.004, "no difference"),
    ),
    notes=("20 pairs of boots, each in an order that was drawn",),
)  # fmt: skip


def test_what_was_measured_is_compared_with_all_else() -> None:
    one = AppliedRegion("x", 10, 10, 20, 5, 9, 10, 0)
    assert (one.is_halved, one.is_as_predicted, one.pays) == (True, True, 0)
    assert APPLIED.total("as_linked") == 12515 + 9e6 + 100
    change = msgspec.structs.replace
    assert not change(one, measured=10.1).is_halved
    assert change(one, measured=10.1).pays == pytest.approx(0.1)
    assert not change(one, median=0, measured=0).is_halved
    assert change(one, predicted=5).is_as_predicted  # 50 misses in ten iterations
    assert not change(one, predicted=4.9).is_as_predicted
    assert change(one, predicted=990, measured=1000).is_as_predicted
    assert not change(one, predicted=1010.2, measured=1000).is_as_predicted


def test_where_nothing_pays_and_all_is_as_predicted_that_is_reported() -> None:
    good = msgspec.structs.replace(APPLIED, regions=APPLIED.regions[:2])
    text = unwrapped("place", msgspec.structs.replace(REPORT, applied=good))
    assert "Measured, no operation has more L1I misses than as linked" in text
    assert "Every prediction is within 1 % or 50 misses of what was measured" in text
    assert "47.47 times fewer than the median" in text


def test_a_kernel_that_cannot_be_relinked_or_run_is_reported() -> None:
    failed = Applied(report().others[0].side)
    text = unwrapped("place", msgspec.structs.replace(REPORT, applied=failed))
    assert "relinked, perturbation 3: workload-failed" in text
    none = Applied(msgspec.structs.replace(failed.kernel, failure="it does not link", runs=()))
    text = unwrapped("place", msgspec.structs.replace(REPORT, applied=none))
    assert "it does not link" in text


def test_who_pays_is_reported() -> None:
    text = unwrapped("place", REPORT)
    assert "aes/cbc: 2.50 L1I misses, 1 BTB misses" in text
    none = msgspec.structs.replace(REPORT, regions=REPORT.regions[:3])
    assert "No operation has more misses of any kind than as linked" in unwrapped("place", none)


def test_where_nothing_is_better_no_file_is_named() -> None:
    same = msgspec.structs.replace(REPORT, file="", functions=0, method="shipped")
    text = unwrapped("place", same)
    assert text.startswith("No order is better than the layout as linked; half of the random")
    assert "as linked 24.45 % taken" in text


def test_a_run_that_failed_is_reported() -> None:
    failed = msgspec.structs.replace(REPORT, kernel=report().others[0].side, regions=(), file="")
    text = unwrapped("place", failed)
    assert "kernel, perturbation 3: workload-failed: signal 11 SIGSEGV" in text
    assert "is better" not in text


def test_json_has_it_all() -> None:
    document = decoded(document_text(REPORT, "0.1.0"))
    assert document["schema"] == "kdelta.place/3"
    assert (document["file"], document["method"], document["functions"]) == (
        "order.txt",
        "annealed",
        278,
    )
    assert (document["padding"], document["applied"]) == (12, None)
    assert document["regions"][3]["misses"]["btb"]["associative"] is None
    assert document["regions"][1]["weight"] == 3
    assert document["regions"][1]["predicted"] == {"low": 5000, "high": 5000 + 14 * 2.88}


def test_json_has_what_was_measured() -> None:
    document = decoded(document_text(msgspec.structs.replace(REPORT, applied=APPLIED), "0.1.0"))
    found = document["applied"]
    assert found["regions"][2] == {
        "name": "syscalls/a-name-longer-than-its-column",
        "iterations": 9,
        "as_linked": 1e6,
        "median": 11e5,
        "best": 7e5,
        "predicted": 5e5,
        "measured": 6e5,
        "path": -1.5,
    }
    assert found["kernel"]["identity"] == report().base.identity
    assert found["warnings"] == ["the guest never became quiet", "another"]
