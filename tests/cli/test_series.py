# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta series` as a user calls it; the study is replaced."""

from fractions import Fraction

import msgspec
import pytest
from reading import read_document

from kdelta.cli import main as cli
from kdelta.infer.search.search_model import View
from kdelta.lab.lab import Lab
from kdelta.studies.series.model import SeriesReport
from kdelta.studies.series.request import SeriesRequest
from tests.cli.captured import without_head
from tests.report.test_series_report import REPORT

Captured = pytest.CaptureFixture[str]


class Study:
    """Notes what was asked for, and answers with the example, or with ends that failed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[SeriesRequest] = []
        self.failure = ""
        monkeypatch.setattr("kdelta.cli.series.run_series", self.run)

    async def run(self, request: SeriesRequest, _: Lab) -> SeriesReport:
        self.asked.append(request)
        return msgspec.structs.replace(REPORT, failure=self.failure)


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    return Study(monkeypatch)


def test_every_option_reaches_the_study(study: Study, capsys: Captured) -> None:
    words = "series ~/linux +a.config debian/patches LLVM=1 +fix.patch v6.12..v6.12.1 -w aes"
    words += (
        " -w syscalls --views alone,order --within 2.5 --max-builds 7 --write-branch /r:b --drop"
    )
    words += " --search-all --no-recompile --perturb 5 --rerun --json"
    assert cli.ended(words.split()) == 0
    (asked,) = study.asked
    assert asked.tree == "tree:~/linux +LLVM=1 +a.config +fix.patch"
    assert asked.patches == ("debian/patches", "v6.12..v6.12.1")
    assert asked.workloads == ("aes", "syscalls")
    assert asked.views == (View.ORDER, View.ALONE)
    assert asked.within == Fraction(1, 40)
    assert (asked.max_builds, asked.keep, asked.drop) == (7, "/r:b", True)
    assert (asked.rule_out, asked.recompile, asked.minimal) == (False, False, False)
    assert (asked.lab.perturbations, asked.lab.rerun) == (5, True)
    found = read_document(capsys.readouterr().out)
    assert found.schema == "kdelta.series/2"


def test_what_is_asked_by_default(study: Study, capsys: Captured) -> None:
    assert cli.ended(("series", "./linux", "queue")) == 0
    (asked,) = study.asked
    assert asked == SeriesRequest(tree="tree:./linux", patches=("queue",), lab=asked.lab)
    assert without_head(capsys.readouterr().out).startswith("All patches together change the path")


def test_fuzz_is_a_change_of_the_tree(study: Study) -> None:
    assert cli.ended(("series", "./linux", "queue", "--fuzz", "2")) == 0
    (asked,) = study.asked
    assert (asked.tree, asked.patches) == ("tree:./linux +fuzz:2", ("queue",))


def test_ends_that_failed(study: Study) -> None:
    study.failure = "nothing to compare"
    assert cli.ended(("series", "./linux", "queue", "--minimal")) == 1
    assert study.asked[0].minimal


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("./linux", "no patches"),
        ("./linux +a.config", "no patches"),
        ("./linux queue --views sideways", "no such word of --views: sideways"),
        ("./linux queue --minimal --write-branch /r:b", "--minimal and --write-branch at once"),
        ("./linux queue --within -1", "a margin of -1 %"),
        ("./linux + queue", "a lone +"),
    ],
)
def test_slips(study: Study, capsys: Captured, words: str, said: str) -> None:
    assert cli.ended(("series", *words.split())) == 2
    assert said in capsys.readouterr().err
    assert not study.asked
