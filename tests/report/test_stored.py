# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept of a study is read as it was, or it is reported why not."""

import math
from fractions import Fraction

import msgspec
import pytest

from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.gate import Decision, Exit, Judged
from kdelta.report import stored as module
from kdelta.report.stored import Stored, encode
from kdelta.spec.errors import LabError
from kdelta.studies.compare.model import CompareReport
from kdelta.studies.gate.document import GateReport
from kdelta.studies.kinds import STORED, stored_of, summary_of
from tests.report.example import report, run_report
from tests.report.example_cycles import cycles_of, with_cycles, with_effects
from tests.report.example_history import tracked
from tests.report.example_layout import layout_report
from tests.report.example_stored import EXAMPLES
from tests.report.test_profile_report import diff_report

GATE = GateReport(
    Decision(Exit.CANNOT_TELL, ("getppid: unresolved",)),
    (Judged("getppid", Word.UNRESOLVED, "one run on a side has no spread: --perturb makes more"),),
    ("on zen3, a trace was cut off",),
    (report(),),
)

REPORTS: list[tuple[str, msgspec.Struct]] = [
    ("compare", report()),
    ("compare", with_cycles()),
    ("compare", with_cycles(data=True)),
    ("diff", diff_report("getppid", "open-close")),
    ("gate", GATE),
    ("log", tracked()),
    ("layout", layout_report()),
    ("run", run_report()),
]


def stored(kind: str = "compare", *reports: msgspec.Struct) -> Stored:
    return Stored(
        kind,
        "What costs which?",
        "kdelta compare 'a b' c",
        1_767_225_600.25,
        "0.1",
        reports or (report(),),
        {"explain": 5},
    )


@pytest.mark.parametrize(("kind", "one"), REPORTS)
def test_a_report_is_read_as_it_was(kind: str, one: msgspec.Struct) -> None:
    kept = stored(kind, one, one)
    assert stored_of(encode(kept)) == kept


def test_all_kinds_can_be_read_and_tell_whose_report_it_is() -> None:
    """A type that msgspec cannot read would be found only when a study of that kind is shown."""
    for kind in STORED:
        with pytest.raises(LabError, match="has no report"):
            stored_of(encode(msgspec.structs.replace(stored(), kind=kind, reports=())))


def test_what_json_has_no_word_for_is_kept() -> None:
    """A third is no float, and an interval may have no upper end."""
    whole = with_cycles()
    effect = next(iter(cycles_of(whole).placements.values()))
    endless = msgspec.structs.replace(effect, relative=Interval(0.5, math.inf))
    changed = with_effects(whole, (endless,))
    (read,) = stored_of(encode(stored("compare", changed))).reports
    assert isinstance(read, CompareReport)
    assert read.others == changed.others
    (first, *_) = read.others[0].effects.operations
    assert first.base is not None
    assert isinstance(first.base.value, Fraction)


def test_when_it_started() -> None:
    assert stored().started_text == "2026-01-01 00:00:00"


def test_a_newer_schema_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCHEMA", 7)
    content = encode(msgspec.structs.replace(stored(), version="9.9"))
    monkeypatch.undo()
    with pytest.raises(LabError, match=r"by kdelta 9\.9 \(its schema is 7") as caught:
        stored_of(content)
    assert "newer" in caught.value.hint


def test_what_is_damaged_is_reported() -> None:
    content = encode(stored())
    half = msgspec.msgpack.decode(content)
    broken = [
        b"",
        b"{}",
        content[: len(content) // 2],
        msgspec.msgpack.encode({**half, "kind": "layout"}),
        msgspec.msgpack.encode({**half, "kind": "no-such"}),
        msgspec.msgpack.encode({**half, "started": "today"}),
        content.replace(b"\xa3337", b"\xa31/0"),
        content.replace(b"\xa3337", b"\xa3abc"),
    ]
    for one in broken:
        assert one != content
        with pytest.raises(LabError, match="cannot be read"):
            stored_of(one)


def test_operations_of_a_gate_are_those_that_it_judged() -> None:
    stored = EXAMPLES["gate alone"]
    assert len(stored.of(GateReport)[0].judged) == 3
    assert summary_of(stored)[0] == "3 operations"
