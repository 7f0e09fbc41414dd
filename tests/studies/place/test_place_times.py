# SPDX-License-Identifier: GPL-2.0-or-later
"""The clock next to an order: the relinked kernel is timed, and the prediction is next to it."""

import asyncio
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from kdelta.cpus.catalog import load_cpu
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Word
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab
from kdelta.lab.options import TimedBy
from kdelta.lab.progress import Silent
from kdelta.lab.request import LabRequest
from kdelta.lab.wanted import RunResult
from kdelta.lab.work import Work
from kdelta.report.model import KernelRuns
from kdelta.spec.errors import UserError
from kdelta.spec.run import MachineOptions, RunStatus
from kdelta.store.store import Store
from kdelta.studies.layout.traced_kernel import TracedKernel
from kdelta.studies.place.model import Applied, AppliedRegion, PlacedRegion, PlaceReport
from kdelta.studies.place.request import PlaceRequest
from kdelta.studies.place.study import run_place
from kdelta.studies.place.timed import place_measures, predicted_change, with_measures
from tests.lab.fake_lab import FakeLab
from tests.report.example import stored
from tests.report.shown import unwrapped
from tests.studies.fake_clock import FakeClock, set_clock
from tests.studies.placed import KERNEL, small_cpu, traced_run
from tests.synthetic import own, region, run

MACHINE = MachineOptions(memory_mib=700)
REQUEST = PlaceRequest(
    kernel="tree:/linux +sections",
    cpu=load_cpu("zen2"),
    file=Path("order.txt"),
    apply=True,
    timed=TimedBy(clock="emulated"),
    lab=LabRequest(perturbations=1, machine=MACHINE),
)
WORKS = (Work("w", ("read",)), Work("v"))
SAME = Applied(KernelRuns("x", "b", "6.12", ()), (AppliedRegion("w/read", 10, 0, 0, 0, 0, 0, 0),))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    return set_clock(monkeypatch)


def placed(name: str, predicted: tuple[float, float]) -> PlacedRegion:
    """Return a region of 100 to 200 model cycles, and these in the order."""
    return PlacedRegion(name, 1, 10, {}, Interval(100, 200), Interval(*predicted))


def traced(name: str, read: int, stat: int) -> TracedKernel:
    """Return a kernel under two workloads, with instructions of the first one's regions."""
    kernel = Kernel(name, name, "", "x86_64", "6.12")
    counts = {
        "w": run(region("read", {own("f"): read}, 10), region("stat", {own("f"): stat}, 10)),
        "v": run(region("read", {own("f"): 1000}, 10)),
    }
    ended = {
        workload: msgspec.structs.replace(stored(0, RunStatus.OK), workload=workload)
        for workload in counts
    }
    done = tuple(RunResult(ended[workload], one) for workload, one in counts.items())
    return TracedKernel(name, kernel, done)


def measured(done: Applied = SAME, read: tuple[float, float] = (100, 190)) -> Applied:
    predicted = [placed("w/read", read), placed("w/stat", (100, 200)), placed("v/read", (100, 210))]
    kernels = traced("as linked", 100_000, 1000), traced("relinked", 99_800, 1100)
    measures = place_measures(REQUEST, WORKS)
    lab = FakeLab(request=REQUEST.lab)
    return asyncio.run(with_measures(done, measures, kernels, predicted, lab))


def test_the_relinked_kernel_is_timed_next_to_what_the_model_predicted(clock: FakeClock) -> None:
    done = measured()
    assert [(one.spec, other.spec) for one, other in clock.timed] == [("as linked", "relinked")] * 2
    assert [(one.timed, one.works) for one in clock.asked] == [(REQUEST.timed, WORKS)]
    assert clock.machines == [MACHINE, MACHINE]
    (found,) = done.measured
    assert {one.region: (one.word, one.reason) for one in found.effects} == {
        "w/read": (Word.FASTER, "explained by placement"),
        "w/stat": (Word.SLOWER, "explained by the path"),
        "v/read": (Word.SAME, "no difference"),
    }
    first, second = clock.expected
    assert {name: one.path for name, one in first.items()} == {
        "read": Word.SAME,
        "stat": Word.SLOWER,
    }
    assert second["read"].as_linked == predicted_change(placed("x", (100, 210)))
    assert done.notes == ("w: 1 pairs of boots", "v: 2 pairs of boots")


def test_a_clock_that_disagrees_with_the_model_is_a_finding(clock: FakeClock) -> None:
    done = measured(read=(100, 210))
    assert done.measured[0].effects[0].reason == "clock and model disagree"
    assert clock.timed
    assert done.notes[1].startswith("w: clock and model disagree on read")


def test_a_clock_that_fails_is_a_note(clock: FakeClock) -> None:
    clock.broken = "Kernel panic"
    done = measured()
    assert [one.effects for one in done.measured] == [()]
    assert done.notes == ("w: not timed: Kernel panic", "v: not timed: Kernel panic")
    assert done.regions == SAME.regions


def test_a_kernel_that_was_not_relinked_is_not_timed(clock: FakeClock) -> None:
    done = measured(msgspec.structs.replace(SAME, regions=()))
    assert clock.timed == []
    assert done.notes == (
        "times are not known: the relinked kernel was not built, or did not run well",
    )


def place_of(
    sets: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[PlaceReport, list[str]]:
    """Return what becomes of a kernel two functions of which are two lines apart."""
    asked: list[str] = []
    with Store.open(tmp_path / "store") as store:

        async def made(spec: str, *_: object, **__: object) -> TracedKernel:
            asked.append(spec)
            counts = run(region("a", {own("f"): 1000 - 100 * len(asked)}, 10))
            kernel = msgspec.structs.replace(KERNEL, spec=spec, identity=spec)
            return TracedKernel(spec, kernel, (traced_run(store, counts, {"a": [0, 2] * 10}),))

        for module in ("study", "apply"):
            monkeypatch.setattr(f"kdelta.studies.place.{module}.traced_kernel", made)
        request = msgspec.structs.replace(
            REQUEST, cpu=small_cpu(sets), file=tmp_path / "order", evaluations=50, layouts=4
        )
        report = asyncio.run(run_place(request, FakeLab(store)))
    return report, asked


def test_place_times_what_it_relinked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    report, asked = place_of(2, tmp_path, monkeypatch)
    assert report.applied is not None
    assert [tuple(one.spec for one in pair) for pair in clock.timed] == [tuple(asked)]
    assert clock.checked == [REQUEST.kernel]
    (found,) = report.applied.measured
    assert [(one.region, one.word) for one in found.effects] == [("a", Word.FASTER)]
    text = unwrapped("place", report)
    assert "times, relinked: Of 1 operation: 1 faster." in text
    assert "By times, from the kernel as linked to the relinked one" in text
    assert "- 1 pairs of boots" in text


def test_nothing_is_timed_where_no_order_is_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    report, asked = place_of(4, tmp_path, monkeypatch)
    assert asked == [REQUEST.kernel]
    assert report.applied is None
    assert clock.timed == []
    assert "times are not known: no order is better, so nothing was relinked" in report.notes


def test_predicted_change_is_over_the_prices_of_misses() -> None:
    faster, slower = (predicted_change(placed("x", (100, high))) for high in (190, 210))
    assert (faster.low, slower.high) == pytest.approx((-0.05, 0.05))
    assert faster.high == slower.low == 0
    nothing = msgspec.structs.replace(placed("x", (0, 0)), as_linked=Interval(0, 0))
    assert predicted_change(nothing) == Interval(0, 0)


def test_what_cannot_be_timed_is_refused_before_anything_is_obtained(
    tmp_path: Path, own_cache: Path, clock: FakeClock
) -> None:
    def place(**more: object) -> None:
        request = msgspec.structs.replace(REQUEST, file=tmp_path / "order.txt", **more)
        with Store.open(tmp_path / "store") as store:
            asyncio.run(run_place(request, Lab(store, Silent())))

    with pytest.raises(UserError, match="--apply is not there") as raised:
        place(apply=False)
    assert raised.value.hint == "add --apply, or leave out --clock"
    with pytest.raises(UserError, match="are of a clock, and none is named"):
        place(timed=TimedBy(margin=Fraction(1, 50)))
    clock.refused = "KVM cannot be used"
    with pytest.raises(UserError, match="KVM cannot be used"):
        place()
    assert not (own_cache / "kernels").exists()
