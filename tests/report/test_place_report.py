# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta place` as text and as JSON."""

import msgspec

from kdelta.infer.ensembles import Interval
from kdelta.report.model import ReportedCPU, Unlike
from kdelta.report.place_json import place_json
from kdelta.report.place_model import PlacedMisses, PlacedRegion, PlaceReport
from kdelta.report.place_text import place_text
from tests.report.example import MACHINE, report
from tests.report.test_json import decoded
from tests.report.test_text import against_golden

NONE = PlacedMisses(0, 0, 0, 0, None, None, {"shipped": 0, "annealed": 0})


def _region(
    name: str, shipped: float, predicted: float, weight: float = 1.0, btb: PlacedMisses = NONE
) -> PlacedRegion:
    misses = PlacedMisses(
        shipped=shipped,
        predicted=predicted,
        median=shipped * 1.1,
        best=shipped * 0.7,
        associative=predicted / 2,
        bound=predicted / 4,
        methods={"shipped": shipped, "annealed": predicted},
    )
    return PlacedRegion(
        name=name,
        weight=weight,
        iterations=100,
        misses={"l1i": misses, "btb": btb},
        shipped=Interval(5000, 5000 + 14 * shipped),
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
            "aes/cbc", 10, 12.5, 0, PlacedMisses(1, 2, 1, 1, None, None, {"shipped": 1.0})
        ),
    ),
    unlike=(Unlike("ERMS", "ERMS: strings move by eight bytes", ("kernel",), ("aes/cbc",)),),
    notes=("something is not in the model",),
    warnings=("the guest never became quiet",),
)  # fmt: skip


def test_golden() -> None:
    against_golden("place.txt", place_text(REPORT))


def test_who_pays_is_said() -> None:
    text = place_text(REPORT)
    assert "aes/cbc: 2.50 L1I misses, 1.00 BTB misses" in text
    (line,) = [one for one in text.splitlines() if one.startswith("aes/cbc*") and "12.50" in one]
    assert line.endswith("!")
    nobody = msgspec.structs.replace(REPORT, regions=REPORT.regions[:3])
    assert "no operation has more misses of any kind than as shipped" in place_text(nobody)
    assert " !" not in place_text(nobody)


def test_where_nothing_is_better_no_file_is_named() -> None:
    same = msgspec.structs.replace(REPORT, file="", functions=0, method="shipped")
    text = place_text(same)
    assert "none is better than the layout as shipped; no file is written" in text
    assert "shipped                24.45 %  <- taken" in text


def test_a_run_that_failed_is_said() -> None:
    failed = msgspec.structs.replace(REPORT, kernel=report().others[0].side, regions=(), file="")
    text = place_text(failed)
    assert "failed runs" in text
    assert "none is better" not in text


def test_json_has_it_all() -> None:
    document = decoded(place_json(REPORT, "0.1.0"))
    assert document["schema"] == "kdelta.place/1"
    assert (document["file"], document["method"], document["functions"]) == (
        "order.txt",
        "annealed",
        278,
    )
    assert document["payers"] == ["aes/cbc"]
    one = document["regions"][3]["misses"]["btb"]
    assert (one["pays"], one["associative"], one["bound"]) == (1, None, None)
    assert document["regions"][1]["weight"] == 3
    assert document["regions"][1]["predicted"] == {"low": 5000, "high": 5000 + 14 * 2.88}
