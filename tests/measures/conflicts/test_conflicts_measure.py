# SPDX-License-Identifier: GPL-2.0-or-later
"""What CPUs contend for, as a measure: of runs that recorded it, and what a gate makes of it."""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from kdelta.counts.conflicts import (
    Conflicts,
    ContendedLine,
    ContestedField,
    CpuAccesses,
    FieldUse,
    encode_conflicts,
)
from kdelta.counts.model import RunCounts
from kdelta.infer.effects.effects import Effects, Word
from kdelta.infer.effects.estimate import estimate
from kdelta.lab.attachments import CONFLICTS
from kdelta.lab.lab import Lab, RunResult
from kdelta.lab.request import LabRequest
from kdelta.measures.conflicts.measure import CpuConflicts, of_request
from kdelta.measures.model import MeasureRequest, RunPair, RunSide
from kdelta.measures.registry import measures_of
from kdelta.report.measured import Effect, judge_effect
from kdelta.spec.run import MachineOptions
from kdelta.studies.series.request import SeriesRequest
from tests.synthetic import region

REGION = "stat"
LOCK, COUNT = "dentry.d_lockref.lock", "file.f_count"


def conflicts(*fields: str) -> Conflicts:
    """Return ten iterations, in each of which both CPUs write these fields once."""
    lines = tuple(
        ContendedLine(
            "object",
            (ContestedField(name, True, "f", 20, 20),),
            True,
            True,
            1,
            (FieldUse(name, "f", (CpuAccesses(0, 10), CpuAccesses(0, 10))),),
        )
        for name in fields
    )
    return Conflicts(REGION, 10, 2, False, lines)


class Blobs:
    """Stands for a store: what was kept, by its name."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def get(self, blob: str) -> bytes:
        return self.kept[blob]


@pytest.fixture
def blobs() -> Blobs:
    return Blobs()


@pytest.fixture
def lab(blobs: Blobs) -> Lab:
    return cast("Lab", SimpleNamespace(store=blobs))


def side(blobs: Blobs, *runs: Conflicts | None) -> RunSide:
    """Return a kernel's runs; None is one that did not record it."""
    done = []
    for one in runs:
        attachments = {}
        if one:
            blob = f"blob-{len(blobs.kept)}"
            whole = msgspec.structs.replace(one, region="command")  # which counts do not have
            blobs.kept[blob] = encode_conflicts((whole, one))
            attachments[CONFLICTS] = blob
        run = cast(
            "Any",
            SimpleNamespace(id="r", workload="pairs", perturbation=0, attachments=attachments),
        )
        counts = RunCounts((region(REGION, {}, 10),), ())
        done.append(RunResult(run, counts, stored=True))
    return RunSide("kernel", None, tuple(done))


def effect(lab: Lab, base: RunSide, other: RunSide) -> Effect:
    judged = CpuConflicts().judge(lab, RunPair(base, other, Effects((), ())))
    assert judged
    (found,) = judged.found.effects
    return found


def test_it_is_asked_where_guests_have_several_cpus() -> None:
    assert of_request(MeasureRequest()) is None
    two = LabRequest(machine=MachineOptions(cpus=2))
    (measure,) = measures_of(SeriesRequest(tree="linux", patches=(), lab=two))
    assert measure.recording(LabRequest()).conflicts
    assert not measure.weighs


@pytest.mark.parametrize(
    ("base", "other", "verdict"),
    [
        ((LOCK,), (LOCK, COUNT), (Word.SLOWER, f"+{COUNT}")),
        ((LOCK, COUNT), (LOCK,), (Word.FASTER, f"-{COUNT}")),
        ((LOCK,), (COUNT,), (Word.MIXED, f"+{COUNT} and -{LOCK}")),
        ((LOCK,), (LOCK,), (Word.SAME, "")),
        ((), (), (Word.SAME, "")),
    ],
)
def test_verdicts_name_the_fields(
    blobs: Blobs, lab: Lab, base: tuple[str, ...], other: tuple[str, ...], verdict: tuple[Word, str]
) -> None:
    sides = (side(blobs, *[conflicts(*fields)] * 2) for fields in (base, other))
    found = effect(lab, *sides)
    assert (found.word, found.reason) == verdict
    assert (found.base and found.base.low, found.other and found.other.high) == (
        2 * len(base),
        2 * len(other),
    )


def test_a_reader_that_came_is_slower_by_its_accesses(blobs: Blobs, lab: Lab) -> None:
    (line,) = (alone := conflicts(COUNT)).lines
    state = ContestedField("file.f_mode", True, "vfs_read", 20, 0, is_neighbor=True)
    read = msgspec.structs.replace(line, fields=(*line.fields, state))
    found = effect(lab, side(blobs, alone), side(blobs, Conflicts(REGION, 10, 2, False, (read,))))
    judged = judge_effect(found, CpuConflicts().found([found]))
    assert judged.word is Word.SLOWER
    assert judged.region == (
        "stat (conflicts) 2 to 4 contended accesses "
        f"(+file.f_mode (read 2 times by vfs_read, next to {COUNT}))"
    )


def test_runs_that_do_not_agree_are_unresolved(blobs: Blobs, lab: Lab) -> None:
    found = effect(lab, side(blobs, conflicts()), side(blobs, conflicts(), conflicts(LOCK)))
    assert found.word is Word.UNRESOLVED
    assert found.reason == f"not in all of a kernel's runs, or without a name: {LOCK}"


def test_runs_that_did_not_record_it_say_nothing(blobs: Blobs, lab: Lab) -> None:
    nothing, something = side(blobs, None), side(blobs, None, conflicts(LOCK))
    measure = CpuConflicts()
    assert measure.lacks(lab, nothing)
    assert not measure.lacks(lab, something)
    assert measure.judge(lab, RunPair(nothing, something, Effects((), ()))) is None
    assert measure.figures(lab, nothing) == {}
    assert measure.figures(lab, something) == {REGION: estimate([Fraction(2)])}


def test_a_gate_has_both_figures_of_what_came(blobs: Blobs, lab: Lab) -> None:
    found = effect(lab, side(blobs, conflicts()), side(blobs, conflicts(LOCK)))
    judged = judge_effect(found, CpuConflicts().found([found]))
    assert judged.word is Word.SLOWER
    assert judged.region == f"stat (conflicts) 0 to 2 contended accesses (+{LOCK})"
    assert judged.id == "stat (conflicts)"
