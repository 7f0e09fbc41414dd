# SPDX-License-Identifier: GPL-2.0-or-later
"""`--measure`, of which `--cycles` and `--clock` are short forms."""

import pytest

from kdelta.lab.request import LabRequest
from kdelta.measures.registry import MEASURES, measures_of
from kdelta.spec.run import MachineOptions
from kdelta.studies.compare.request import CompareRequest
from kdelta.studies.series.request import SeriesRequest
from tests.cli.studies import Captured, Studies, kdelta


@pytest.mark.parametrize(
    ("options", "measures", "cpus", "clock"),
    [
        ("", (), [], None),
        ("--measure path", ("path",), [], None),
        ("--measure cycles", ("path", "cycles"), ["zen4"], None),
        ("--measure cycles:zen3,cycles:zen5", ("path", "cycles"), ["zen3", "zen5"], None),
        ("--measure cycles --cpu zen3", ("path", "cycles"), ["zen3"], None),
        ("--measure clock:emulated", ("path", "clock"), [], "emulated"),
        ("--measure clock,path", ("path", "clock"), [], "kvm"),
        ("--measure path --cycles=zen3", ("path", "cycles"), ["zen3"], None),
        ("--measure path --clock kvm", ("path", "clock"), [], "kvm"),
        ("--measure conflicts --smp 2", ("path", "conflicts"), [], None),
    ],
)
def test_measure_asks_for_what_short_forms_ask_for(
    studies: Studies, options: str, measures: tuple[str, ...], cpus: list[str], clock: str | None
) -> None:
    assert kdelta("compare", "image:a", "image:b", *options.split()) == 0
    (request,) = studies.asked
    assert isinstance(request, CompareRequest)
    assert request.measures == measures
    assert [cpu.name for cpu in request.cpus] == cpus
    assert request.timed.clock == clock


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--measure cyles", "use path, cycles, conflicts, clock"),
        ("--measure conflicts", "guests have one CPU"),
        ("--measure cycles:zen9", "no CPU is called 'zen9'"),
        ("--measure clock:tsc", "use kvm, emulated"),
        ("--measure path:1", "path is alone"),
        ("--measure ,", "--measure names nothing"),
        ("--measure cycles:zen3 --cpu zen4", "--cpu zen4 and --cycles zen3 at once"),
    ],
)
def test_measure_slips(studies: Studies, capsys: Captured, options: str, words: str) -> None:
    assert kdelta("compare", "image:a", "image:b", *options.split()) == 2
    assert studies.asked == []
    assert words in capsys.readouterr().err


def test_measure_of_model_cycles_in_a_series_is_refused(capsys: Captured) -> None:
    assert kdelta("series", "tree:.", "a.patch", "--measure", "cycles") == 2
    assert "this command judges no model cycles" in capsys.readouterr().err


def test_measure_knows_all_of_the_registry(
    studies: Studies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MEASURES, "toys", lambda _: None)
    assert kdelta("compare", "image:a", "image:b", "--measure", "toys") == 0
    (request,) = studies.asked
    assert isinstance(request, CompareRequest)
    assert request.measures == ("path", "toys")


def test_measures_that_are_named_are_the_only_ones() -> None:
    two = LabRequest(machine=MachineOptions(cpus=2))
    for names, found in (
        ((), ["conflicts"]),
        (("path",), []),
        (("path", "conflicts"), ["conflicts"]),
    ):
        request = SeriesRequest(tree="linux", patches=(), measures=names, lab=two)
        assert [one.name for one in measures_of(request)] == found
