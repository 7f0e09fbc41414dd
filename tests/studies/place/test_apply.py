# SPDX-License-Identifier: GPL-2.0-or-later
"""An order applied: what can be relinked, what is measured, and what is left behind."""

import asyncio
from pathlib import Path

import pytest

from kdelta.infer.cycles.ensembles import Interval
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import require_relinkable
from kdelta.store.store import Store
from kdelta.studies.layout.traced_kernel import TracedKernel
from kdelta.studies.place.apply import applied, put_back, relinked_kernel
from kdelta.studies.place.model import Applied, PlacedMisses, PlacedRegion
from kdelta.studies.place.request import PlaceRequest
from kdelta.studies.place.together import placed_together
from tests.lab.fake_lab import FakeLab
from tests.studies.placed import KERNEL, small_cpu, traced_run
from tests.synthetic import own, region, run

MISSES = 2
"""Misses of the two blocks of an iteration that put each other out."""


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
        require_relinkable(spec, "--apply")
    assert hint in raised.value.hint


@pytest.mark.parametrize("change", ["+sections", "+shuffle:3", "+align:64", "+order:file"])
def test_what_has_function_sections_can_be_relinked(change: str) -> None:
    require_relinkable(f"deb-src:linux-source-6.12 +x.config {change}", "--apply")


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


SEQUENCES = {"a": [0, 1] * 10, "b": [2] * 10}


def _predicted(name: str) -> PlacedRegion:
    misses = PlacedMisses(30, 2, 40, 20, None, {})
    return PlacedRegion(name, 1, 10, {"l1i": misses}, Interval(1, 2), Interval(1, 2))


def _applied(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: TracedKernel | None,
    workloads: tuple[str, ...] = ("w",),
    regions: tuple[str, ...] = ("a", "b"),
) -> tuple[Applied, list[str]]:
    asked: list[str] = []
    with Store.open(tmp_path / "store") as store:
        before = run(region("a", {own("f"): 1000}, 10), region("b", {own("f"): 70}, 10))
        there = run(
            region("a", {own("f"): 1010}, 10),
            region("b", {own("f"): 70}, 10),
            warnings=("the guest never became quiet",),
        )
        shipped = placed_together(
            KERNEL, [traced_run(store, before, SEQUENCES) for _ in workloads], workloads, store
        )
        done = tuple(traced_run(store, there, SEQUENCES) for _ in workloads)

        async def traced(spec: str, *_: object, **__: object) -> TracedKernel:
            asked.append(spec)
            return after or TracedKernel(spec, KERNEL, done)

        monkeypatch.setattr("kdelta.studies.place.apply.traced_kernel", traced)
        request = PlaceRequest(
            kernel="tree:/linux +sections",
            cpu=small_cpu(1),
            file=Path("the order.txt"),
            workloads=workloads,
        )
        prefixes = [""] if len(workloads) == 1 else [f"{name}/" for name in workloads]
        names = [prefix + name for prefix in prefixes for name in regions]
        relinked = asyncio.run(
            relinked_kernel(request, dict.fromkeys(workloads, ()), FakeLab(store))
        )
        predicted = [_predicted(name) for name in names]
        found = applied(relinked, workloads, shipped, predicted, cpu=request.cpu, store=store)
    return found, asked


def test_own_misses_and_the_path_are_those_of_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, asked = _applied(tmp_path, monkeypatch, None)
    assert asked == ["tree:/linux +sections '+order:the order.txt'"]
    one, other = found.regions
    assert (one.name, one.iterations, one.as_linked, one.measured) == ("a", 10, 30, MISSES)
    assert (one.median, one.best, one.predicted) == (40, 20, 2)
    assert (one.path, other.path) == (1, 0)
    assert (other.as_linked, other.measured) == (30, 0)  # a block alone stays in the cache
    assert found.kernel.identity == KERNEL.identity
    assert found.warnings == ("the guest never became quiet",)


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
