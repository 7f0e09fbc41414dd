# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta log` has the figures and verdicts of `kdelta compare`."""

import asyncio
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from kdelta.infer.effects.effects import Word
from kdelta.kernels.model import Kernel
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.progress import Silent
from kdelta.lab.request import USUAL_LAB
from kdelta.measures.path.judges import CountedKernel, Judge, JudgedEffects, OperationRuns
from kdelta.store.store import Store
from tests.studies.log.histories import (
    DEBIAN,
    MACHINE,
    doubtful_if_few,
    log,
    only,
    ran,
    three,
    words,
    work_identity,
)


@pytest.fixture
def store(own_data: Path, own_cache: Path) -> Iterator[Store]:
    assert own_cache.is_dir()
    with Store.open(own_data) as opened:
        yield opened


def of_compare(store: Store, specs: tuple[str, str], names: tuple[str, ...]) -> JudgedEffects:
    """What `kdelta compare` makes of the stored runs, and of runs alone where it asks for them."""

    def runs_of(spec: str, form: str, indexes: range) -> tuple[RunResult, ...]:
        identity = work_identity(form)
        found = {
            one.perturbation: one
            for one in store.runs()
            if one.kernel_spec == spec and one.workload_identity == identity
        }
        return tuple(RunResult(found[at], store.counts(found[at]), stored=True) for at in indexes)

    class Alone(Judge):
        async def _more(
            self, names: Sequence[str], base: CountedKernel, other: CountedKernel, look: int
        ) -> dict[str, OperationRuns]:
            few = range(USUAL_LAB.perturbations, look)
            ours, theirs = (runs_of(one.kernel.spec, "e", few) for one in (base, other))
            return {name: OperationRuns(name, ours, theirs) for name in names}

    known = names.__contains__
    judge = Alone(Lab(store, Silent(), USUAL_LAB), known, lambda *_: pytest.fail("runs something"))
    base, other = (
        CountedKernel(
            Kernel(spec.encode().hex(), spec, "/vmlinuz", "x86_64", "6.12.0"),
            tuple(
                one.counts
                for one in runs_of(spec, "b", range(USUAL_LAB.perturbations))
                if one.counts
            ),
        )
        for spec in specs
    )
    return asyncio.run(judge.judge(base, other))


def test_log_and_compare_give_one_figure_for_a_pair(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another pair asked for more runs, and where further runs decide."""
    specs = "image:a", "image:b"
    monkeypatch.setattr("kdelta.infer.effects.chance.by_chance", doubtful_if_few)
    for spec, stat, uname in zip(specs, (200, 260), (100, 150), strict=True):
        for at in range(8):
            further = at >= USUAL_LAB.perturbations
            if not (further and spec == specs[1]):
                ran(store, spec, {"stat": stat + at, "uname": uname + at}, runs=1, first=at)
            if further:
                ran(store, spec, {"stat": stat + at}, runs=1, first=at, form="e")
    judged = of_compare(store, specs, ("stat",))
    assert [one.operation for one in judged.more] == ["stat"]
    series = only(log(store))
    assert [track.operation for track in series.tracks] == ["stat", "uname"]
    for track, effect in zip(series.tracks, judged.effects.operations, strict=True):
        step = track.points[1].step
        assert effect.costs is not None
        assert step is not None
        insns = effect.costs.insns
        assert [point.figure for point in track.points] == [insns.base, insns.other]
        assert (step.word, step.effect, step.percent) == (
            effect.verdict.word, insns.effect, insns.percent,
        )  # fmt: skip
    values = [
        100 * track.points[1].figure.value for track in series.tracks if track.points[1].figure
    ]
    assert values == [Fraction(527, 2), Fraction(303, 2)]


def test_a_step_that_depends_on_a_state_is_one_in_log_too(store: Store) -> None:
    three(store)
    loaded = {**MACHINE, "loaded": 1}
    for spec, cost in (
        (DEBIAN.format("6.1.0-56", "6.1.192-2"), 300), (DEBIAN.format("6.12.9", "6.12.9-1"), 200)
    ):  # fmt: skip
        ran(store, spec, {"stat": cost}, form="e", machine=loaded, runs=1)
    # Runs from another state are of another machine, and so a series themselves.
    series, _ = log(store).series
    assert words(series, "stat") == ["", "same", Word.DEPENDS_ON_STATE]
    assert words(series, "uname") == ["", "faster", "same"]
