# SPDX-License-Identifier: GPL-2.0-or-later
"""Every form of every kind of study, and the documents that they are made from."""

from fractions import Fraction

import msgspec
import pytest

from kdelta.report.document import Case, Document, Outcome, Suite, Table, blocks
from kdelta.report.model import ReportedOption
from kdelta.report.stored import Stored
from kdelta.spec.errors import LabError, UserError
from kdelta.studies.compare.model import CompareReport
from kdelta.studies.forms import FORMS, find_form, form_of_file, mail
from kdelta.studies.kinds import KINDS, STORED, document_of
from tests.report.example import report
from tests.report.example_stored import EVERY, EXAMPLES
from tests.report.shown import stored


def with_failure(name: str) -> Stored:
    one = EXAMPLES[name]
    (only,) = one.reports
    failed = msgspec.structs.replace(only, failure="B: build-failed: no rule\nand more")
    return msgspec.structs.replace(one, reports=(failed,))


TRIPLES = [
    (*ends, "diff")
    for ends in (("base", "other"), ("good", "bad"), ("A", "B"), ("without", "with all"))
]


def tables(document: Document) -> list[Table]:
    return [one for one in blocks(document.body) if isinstance(one, Table)]


def cases(document: Document) -> dict[str, Case]:
    """Return the cases by name, without those by the clock."""
    suites = [one for one in document.suites if not one.name.endswith("times")]
    return {case.name: case for suite in suites for case in suite.cases}


def test_every_kind_has_all_it_needs() -> None:
    """What is stored has a question and a document, and an example here."""
    assert set(STORED) == set(KINDS) - {"processes", "profile"}
    assert set(STORED) == {one.kind for one in EXAMPLES.values()}


@EVERY
@pytest.mark.parametrize("form", [name for name in FORMS if name != "html"])
def test_every_form_of_every_kind(form: str, name: str) -> None:
    text = FORMS[form].render(EXAMPLES[name])
    assert text.endswith("\n")
    assert FORMS[form].render(EXAMPLES[name]) == text


@pytest.mark.parametrize("name", ["ablate", "bisect", "series"])
@pytest.mark.parametrize("form", ["text", "json", "mail", "ktap", "junit", "markdown"])
def test_a_search_that_failed(form: str, name: str) -> None:
    text = FORMS[form].render(with_failure(name))
    assert "build-failed: no rule" in text.replace("\\", "")
    if form == "ktap":
        assert "not ok 1 search" in text


def test_the_nearest_form_and_the_form_of_a_file() -> None:
    assert find_form("ktap") is FORMS["ktap"]
    for wrong, near in (("tap", "ktap"), ("HTML", "html"), ("junits", "junit"), ("md", "mail")):
        with pytest.raises(UserError, match=f"no such format: {wrong}") as caught:
            find_form(wrong)
        assert wrong == "md" or f"did you mean {near}?" in caught.value.hint
        assert ", ".join(FORMS) in caught.value.hint
    names = {
        "a.eml": "mail",
        "a.xml": "junit",
        "a.tap": "ktap",
        "x.md": "markdown",
        "a.htm": "html",
    }
    assert {name: form_of_file(name) for name in names} == names
    assert form_of_file("a") == form_of_file("") == "text"
    with pytest.raises(UserError, match=r"cannot write a\.pdf: no format ends with \.pdf"):
        form_of_file("a.pdf")


def test_a_comparisons_cases() -> None:
    found = document_of(EXAMPLES["compare cycles"])
    assert [suite.name for suite in found.suites] == [
        "kernels",
        "path on zen3",
        "model cycles on zen3",
    ]
    kernels, path, cycles = ({case.name: case for case in one.cases} for one in found.suites)
    assert kernels["kernel base"].outcome is Outcome.OK
    assert kernels["kernel other"].outcome is Outcome.FAILED
    assert path["read-zero-64k"].outcome is Outcome.UNKNOWN
    assert path["read-zero-64k"].verdict == "mixed (+1213%)"
    assert path["read-zero-64k"].figures == (
        "99 -> 1300 instructions an iteration, +1201, exact, n 3",
    )
    assert path["uname"].outcome is path["getppid"].outcome is Outcome.OK
    assert path["futex-wake"].outcome is Outcome.UNKNOWN
    # The same code relinked is never slower.
    assert cycles["uname"].outcome is Outcome.OK
    assert cycles["uname"].verdict.startswith("placement only")
    assert cycles["open-close"].verdict.startswith("faster (-11.0% to -4.73%; ")
    reason = "its trace would need 1.3 GiB: --trace-limit 1.3"
    assert cycles["read-zero-64k"].verdict == f"unresolved: {reason}"
    assert len(found.failures) == 1
    assert "2 slower, 1 faster, 1 mixed, 2 changed by less than 0.5%, 1 same" in found.title


def test_names_of_cases_are_the_same_from_study_to_study() -> None:
    """A CI follows a case by its name: no figure, and no kernel's version, is in it."""
    names = [
        (suite.name, case.name)
        for suite in document_of(EXAMPLES["gate"]).suites
        for case in suite.cases
    ]
    gate = [name for suite, name in names if suite == "gate"]
    assert gate == ["answer", "uname", "uname on zen3", "stat"]
    assert names[:2] == [("kernels", "kernel base"), ("kernels", "kernel other")]
    compared = document_of(EXAMPLES["compare"])
    assert not any("6.1" in f"{suite.name}" for suite in compared.suites)


def test_a_gate_tells_its_answer() -> None:
    found = document_of(EXAMPLES["gate"])
    assert found.title == "syscalls: slower: uname +1% instructions"
    assert found.sentences[:2] == (
        "gate: Yes, it is slower. Exit code 1.",
        "gate: The gate says: slower: uname +1% instructions.",
    )
    assert cases(found)["answer"].outcome is Outcome.SLOWER
    assert cases(found)["uname"].outcome is Outcome.SLOWER
    assert cases(found)["uname on zen3"].outcome is Outcome.UNKNOWN
    assert cases(found)["stat"].outcome is Outcome.OK


def test_the_cases_of_searches() -> None:
    bisected = cases(document_of(EXAMPLES["bisect"]))
    slower = bisected['111111111111 ("fs: open: look at the flags once more")']
    assert slower.outcome is Outcome.SLOWER
    assert slower.figures == ("open-close +30 (exact)",)
    assert bisected['222222222222 ("sys: read the names without a lock")'].outcome is Outcome.OK
    assert bisected["open-close"].outcome is Outcome.SLOWER
    assert bisected["open-close"].figures[0].startswith("1782 -> 1815 instructions an iteration")
    assert bisected["uname"].outcome is Outcome.OK
    patches = document_of(EXAMPLES["series"])
    (suite,) = (one for one in patches.suites if one.name == "patches")
    outcomes = {case.outcome for case in suite.cases}
    assert Outcome.OK in outcomes


def test_the_case_of_a_run_that_failed() -> None:
    (case,) = document_of(EXAMPLES["run failed"]).suites[0].cases
    assert case.outcome is Outcome.FAILED


def test_what_does_not_add_up_is_no_report() -> None:
    whole = report()
    (other,) = whole.others
    first = next(one for one in other.effects.operations if one.name == "read-zero-64k")
    assert first.costs is not None
    lost = msgspec.structs.replace(first, functions=first.functions * 2)
    effects = msgspec.structs.replace(other.effects, operations=(lost,))
    wrong = msgspec.structs.replace(
        whole, others=(msgspec.structs.replace(other, effects=effects),)
    )
    with pytest.raises(LabError, match="read-zero-64k: the rows add up to"):
        document_of(stored("compare", wrong))


@EVERY
def test_tables_add_up(name: str) -> None:
    """Base and difference make the other, and rows with a total make it: in what is printed."""
    checked = 0
    for table in tables(document_of(EXAMPLES[name])):
        heads = [column.title for column in table.columns]
        for row in (*table.rows, *table.last):
            assert len(row) == len(heads), (table.caption, row)
        triple = next((ends for ends in TRIPLES if set(ends) <= set(heads)), ())
        at = [heads.index(head) for head in triple]
        for row in (*table.rows, *table.last) if triple else ():
            base, other, diff = (row[place].text for place in at)
            if base and other and diff:
                assert Fraction(base) + Fraction(diff) == Fraction(other), row
                checked += 1
        if "diff" in heads and table.total:
            at_diff = heads.index("diff")
            rows = [Fraction(row[at_diff].text) for row in table.rows]
            assert sum(rows) == Fraction(table.total[at_diff].text), table.caption
            checked += 1
    if name.startswith(("compare", "ablate", "series", "diff")) and name != "series minimal":
        assert checked


def test_what_a_question_is() -> None:
    asked = {name: one.question for name, one in EXAMPLES.items()}
    assert asked["compare cpus"].endswith("under syscalls on zen3 and zen2?")
    assert asked["gate"].startswith("Is deb:linux-image-6.12.57+deb13-cloud-amd64 slower than deb:")
    assert asked["gate alone"] == "Is the other kernel slower?"
    assert asked["bisect"].startswith("Which commits of v6.12..v6.13 make /src/linux faster")
    assert all(text.endswith("?") for text in asked.values())


def test_a_suite_counts() -> None:
    suite = Suite("s", (Case("a", Outcome.OK, ""), Case("b", Outcome.FAILED, "")))
    assert suite.count(Outcome.OK) == suite.count(Outcome.FAILED) == 1
    assert suite.count(Outcome.OK, Outcome.FAILED) == 2


def test_the_report_of_a_kernel_that_was_not_built() -> None:
    whole = report()
    base = msgspec.structs.replace(whole.base, failure="build-failed: oops\nmore", runs=())
    other = msgspec.structs.replace(
        whole.others[0],
        effects=msgspec.structs.replace(whole.others[0].effects, operations=(), background=()),
    )
    broken: CompareReport = msgspec.structs.replace(whole, base=base, others=(other,))
    one = stored("compare", broken)
    found = document_of(one)
    assert found.failures[0].text == "base: no kernel: build-failed: oops\nmore"
    assert "Nothing can be compared" in found.sentences[0]
    assert "not ok 1 kernel base" in FORMS["ktap"].render(one)
    assert "base: no kernel: build-failed: oops" in mail(one)


@pytest.mark.parametrize("count", [0, 3, 41])
def test_options_that_differ(count: int) -> None:
    whole = report()
    options = tuple(ReportedOption(f"CONFIG_{at}", "n", "y") for at in range(count))
    other = msgspec.structs.replace(whole.others[0], config=options)
    found = document_of(stored("compare", msgspec.structs.replace(whole, others=(other,))))
    (section,) = (one for one in found.sections if one.title == "How the configs differ")
    listed = [len(one.rows) for one in blocks([section]) if isinstance(one, Table)]
    assert listed == ([count] if count else [])
