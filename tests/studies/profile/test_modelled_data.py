# SPDX-License-Identifier: GPL-2.0-or-later
"""A profile with what functions' accesses to data miss, and what that costs."""

import msgspec
import pytest

from kdelta.counts.model import Cost
from kdelta.cpus.model import CPU, DATA_MISS_KINDS, MissPrice
from kdelta.infer.profiles.profile import FIGURES, FunctionLine, RegionProfile, Sort
from kdelta.lab.progress import Silent
from kdelta.studies.profile.document import FunctionsAsked
from kdelta.studies.profile.model import ProfileReport
from kdelta.studies.profile.parts import usual_columns
from kdelta.studies.profile.study import with_model_cycles
from tests.replay.streaming import CORE, streaming
from tests.report.test_profile_report import functions_of, profile_report

LINES = MissPrice(2, 10, calibrated=True)
SYMBOLS = [(0, "t", "f0", "kernel"), (0x10000, "t", "f1", "kernel")]


def modelled(cpu: CPU, *, data: bool = True) -> tuple[RegionProfile, tuple[str, ...]]:
    """Two functions of 4096 lines that are read twice: f0 reads, f1 does nothing."""
    trace = msgspec.structs.replace(streaming(4096, 2), region="r")
    cost = Cost(insns=100)
    lines = tuple(FunctionLine("own", "kernel", name, cost) for name in ("f0", "f1"))
    regions, notes = with_model_cycles(
        [RegionProfile("r", 1, lines)],
        [],
        [trace],
        symbols=SYMBOLS,
        cpu=cpu,
        progress=Silent(),
        data=data,
    )
    return regions[0], notes


def test_each_function_has_its_own() -> None:
    cpu = msgspec.structs.replace(CORE, misses={"l1i": LINES, "l2": LINES, "l1d": LINES})
    region, notes = modelled(cpu)
    f0, f1 = region.lines
    assert f0.modelled
    assert f1.modelled
    assert f0.modelled.misses["l1d"] == 8192
    assert not any(f1.modelled.misses.values())
    assert set(DATA_MISS_KINDS) <= f0.modelled.misses.keys()
    assert f0.modelled.low - f1.modelled.low == pytest.approx(2 * 8192)
    assert f0.modelled.high - f1.modelled.high == pytest.approx(10 * 8192)
    assert FIGURES[Sort.L1D](f0) == 8192
    assert FIGURES[Sort.DTLB](f0) == FIGURES[Sort.MISSES](f0) == 0
    assert "free: l1d-store, dtlb, dtlb-store, stlb, stlb-store" in notes[0]


@pytest.mark.parametrize(("own", "low"), [(None, 2), (MissPrice(5, 7, calibrated=True), 5)])
def test_a_miss_in_the_l2_costs_what_one_of_code_does_or_its_own(
    own: MissPrice | None, low: float
) -> None:
    """8192 lines and more than the L2 of 64 holds."""
    misses = {"l1i": LINES, "l2": LINES} | ({"l2-data": own} if own else {})
    small = msgspec.structs.replace(CORE.l2, sets=1)
    region, _ = modelled(msgspec.structs.replace(CORE, l2=small, misses=misses))
    f0, f1 = region.lines
    assert f0.modelled
    assert f1.modelled
    assert f0.modelled.misses["l2-data"] == 8192
    assert f0.modelled.low - f1.modelled.low == pytest.approx(low * 8192)


def test_without_data_there_is_nothing_of_it() -> None:
    region, notes = modelled(CORE, data=False)
    assert region.lines[0].modelled
    assert not set(DATA_MISS_KINDS) & region.lines[0].modelled.misses.keys()
    assert "Misses of the L2 are not in them." in notes[0]


def test_the_columns_that_are_shown() -> None:
    def shown(*, data: bool) -> ProfileReport:
        region, _ = modelled(CORE, data=data)
        return msgspec.structs.replace(profile_report(), regions=(region,), calls="all")

    assert usual_columns(shown(data=True), Sort.INSNS) == (
        Sort.MISSES,
        Sort.L1D,
        Sort.DTLB,
        Sort.CYCLES,
    )
    assert Sort.L1D not in usual_columns(shown(data=False), Sort.INSNS)
    both = shown(data=True)
    asked = FunctionsAsked(by=Sort.L1D, columns=usual_columns(both, Sort.L1D))
    first = functions_of(both, asked)[0]
    assert [*first] == ["function", "insns", "%", "misses", "l1d", "dtlb", "cycles"]
    assert [*first.values()][3:6] == ["", "8192", ""]
    (first, *_) = functions_of(shown(data=False), FunctionsAsked(columns=(Sort.L1D,)))
    assert first == {"function": "f0", "insns": "100", "%": "50.0%", "l1d": ""}
