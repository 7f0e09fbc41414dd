# SPDX-License-Identifier: GPL-2.0-or-later
"""An order applied: what can be relinked, what is measured, and what is left behind."""

import asyncio
from pathlib import Path

import pytest

from kdelta.counts.model import RunCounts
from kdelta.counts.simulated import SimulatedMisses, encode_simulated
from kdelta.cpus.catalog import load_cpu
from kdelta.infer.cycles.ensembles import Interval
from kdelta.kernels.model import Kernel
from kdelta.spec.errors import UserError
from kdelta.spec.run import RunStatus
from kdelta.store.model import NewRun
from kdelta.store.store import Store
from kdelta.studies.lab.attachments import misses_name
from kdelta.studies.lab.lab import RunResult
from kdelta.studies.layout.traced_kernel import TracedKernel
from kdelta.studies.place.apply import applied, put_back, require_relinkable
from kdelta.studies.place.model import Applied, PlacedMisses, PlacedRegion
from kdelta.studies.place.request import PlaceRequest
from tests.studies.fake_lab import FakeLab
from tests.synthetic import own, region, run

CPU = load_cpu("generic-x86-64")


@pytest.mark.parametrize(
    ("spec", "words", "hint"),
    [
        ("deb:linux-image-cloud-amd64", "is built already", "+sections"),
        ("image:/boot/vmlinuz", "is built already", "+sections"),
        ("tree:/linux +x.config", "not built with", "append +sections: tree:/linux +x.config +s"),
    ],
)
def test_what_cannot_be_relinked_is_refused_with_a_way_out(
    spec: str, words: str, hint: str
) -> None:
    with pytest.raises(UserError, match=words) as raised:
        require_relinkable(spec)
    assert hint in raised.value.hint


@pytest.mark.parametrize("change", ["+sections", "+shuffle:3", "+align:64", "+order:file"])
def test_what_has_function_sections_can_be_relinked(change: str) -> None:
    require_relinkable(f"deb-src:linux-source-6.12 +x.config {change}")


def _written_and_ended(file: Path, error: type[BaseException]) -> None:
    with put_back(file):
        file.write_text("an order\n")
        raise error


def test_a_file_is_as_it_was_when_the_body_is_ended(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("before\n")
    for file in (new, old):
        for error in (KeyboardInterrupt, asyncio.CancelledError, OSError):
            with pytest.raises(error):
                _written_and_ended(file, error)
    assert not new.exists()
    assert old.read_text() == "before\n"
    for file in (new, old):
        with put_back(file):
            file.write_text("an order\n")
        assert file.read_text() == "an order\n"


def _done(store: Store, counts: RunCounts, missed: dict[str, tuple[int, int, int]]) -> RunResult:
    """A run that is kept with the misses that were counted in it."""
    run_id = store.start_run(
        NewRun(
            key="key",
            kernel_identity="id",
            kernel_spec="spec",
            kernel_release="6.12",
            machine={"name": "tcg"},
            workload="w",
            workload_identity="w",
            perturbation=0,
        )
    )
    found = [SimulatedMisses(name, CPU.l1i, misses, {0: misses}) for name, misses in missed.items()]
    finished = store.finish_run(
        run_id,
        RunStatus.OK,
        detail="",
        counts=counts,
        console="",
        seconds=1,
        attachments={misses_name(CPU.l1i): encode_simulated(found)},
    )
    return RunResult(finished, counts)


def _predicted(name: str) -> PlacedRegion:
    misses = PlacedMisses(30, 2, 40, 20, None, {})
    return PlacedRegion(name, 1, 10, {"l1i": misses}, Interval(1, 2), Interval(1, 2))


def _applied(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: TracedKernel | None,
    workloads: tuple[str, ...] = ("w",),
    predicted: tuple[str, ...] = ("a", "b"),
) -> tuple[Applied, list[str]]:
    asked: list[str] = []
    with Store.open(tmp_path / "store") as store:
        before = run(region("a", {own("f"): 1000}, 10), region("b", {own("f"): 70}, 10))
        there = run(
            region("a", {own("f"): 1010}, 10),
            region("b", {own("f"): 70}, 10),
            warnings=("the guest never became quiet",),
        )
        shipped = [_done(store, before, {"a": (310, 7, 9), "b": (0, 0, 0)}) for _ in workloads]
        done = tuple(_done(store, there, {"a": (20, 100, 100)}) for _ in workloads)
        kernel = Kernel("id", "spec", "/image", "x86_64", "6.12")

        async def traced(spec: str, *_: object, **__: object) -> TracedKernel:
            asked.append(spec)
            return after or TracedKernel(spec, kernel, done)

        monkeypatch.setattr("kdelta.studies.place.apply.traced_kernel", traced)
        request = PlaceRequest(
            kernel="tree:/linux +sections",
            cpu=CPU,
            file=Path("the order.txt"),
            workloads=workloads,
        )
        prefixes = [""] if len(workloads) == 1 else [f"{name}/" for name in workloads]
        names = [prefix + name for prefix in prefixes for name in predicted]
        found = asyncio.run(
            applied(
                request,
                dict.fromkeys(workloads, ()),
                shipped,
                [_predicted(name) for name in names],
                FakeLab(store),
            )
        )
    return found, asked


def test_own_misses_and_the_path_are_those_of_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, asked = _applied(tmp_path, monkeypatch, None)
    assert asked == ["tree:/linux +sections '+order:the order.txt'"]
    one, other = found.regions
    assert (one.name, one.iterations, one.shipped, one.measured) == ("a", 10, 31, 2)
    assert (one.median, one.best, one.predicted) == (40, 20, 2)
    assert (one.path, other.path) == (1, 0)
    assert (other.shipped, other.measured) == (0, 0)  # nothing was kept of it: nothing missed
    assert found.kernel.identity == "id"
    assert found.warnings == ("the guest never became quiet",)


def test_what_was_not_predicted_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = _applied(tmp_path, monkeypatch, None, predicted=("b",))
    assert [one.name for one in found.regions] == ["b"]
    (text,) = [text for text in found.warnings if text.startswith("a: nothing was predicted")]
    assert text.endswith("31.00 as linked, 2.00 in the order")


def test_of_several_workloads_regions_have_both_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = _applied(tmp_path, monkeypatch, None, ("w", "v"))
    assert [one.name for one in found.regions] == ["w/a", "w/b", "v/a", "v/b"]
    assert found.warnings == ("the guest never became quiet",)


def test_a_kernel_that_cannot_be_relinked_is_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = TracedKernel("the spec", None, failure="it does not link")
    found, _ = _applied(tmp_path, monkeypatch, failure)
    assert (found.regions, found.kernel.failure) == ((), "it does not link")
