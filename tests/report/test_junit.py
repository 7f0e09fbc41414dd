# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as JUnit XML, read by a reader of it."""

from xml.etree import ElementTree as ET

import junitparser
import msgspec

from kdelta.report.document import Outcome
from kdelta.studies.forms import FORMS
from kdelta.studies.kinds import document_of
from tests.report.example_cycles import with_cycles
from tests.report.example_stored import EVERY, EXAMPLES, NASTY, nasty
from tests.report.shown import stored

junit = FORMS["junit"].render


@EVERY
def test_a_reader_of_junit_reads_it(name: str) -> None:
    document = document_of(EXAMPLES[name])
    suites = junitparser.JUnitXml.fromstring(junit(EXAMPLES[name]).encode())
    assert [suite.name for suite in suites] == [suite.name for suite in document.suites]
    kinds = {
        Outcome.OK: [],
        Outcome.SLOWER: [junitparser.Failure],
        Outcome.FAILED: [junitparser.Error],
        Outcome.UNKNOWN: [junitparser.Skipped],
    }
    for suite, ours in zip(suites, document.suites, strict=True):
        assert suite.tests == len(ours.cases)
        assert suite.failures == ours.count(Outcome.SLOWER)
        assert suite.errors == ours.count(Outcome.FAILED)
        assert suite.skipped == ours.count(Outcome.UNKNOWN)
        assert [(case.name, [type(one) for one in case.result]) for case in suite] == [
            (case.name, kinds[case.outcome]) for case in ours.cases
        ]
        properties = {one.name: one.value for one in suite.properties()}  # type: ignore[no-untyped-call]
        assert properties["command"] == "kdelta compare 'a b' c"


def test_junit_by_the_rules_of_its_schema() -> None:
    """Attributes and the order of children, as the schema that Jenkins' plugins ship has them."""
    root = ET.fromstring(junit(EXAMPLES["compare cycles"]))
    assert (root.tag, root.get("tests")) == ("testsuites", "20")
    assert sum(int(suite.get("tests", "")) for suite in root) == 20
    for suite in root:
        tags = [child.tag for child in suite]
        assert tags[0] == "properties"
        assert tags[-1] == "system-out"
        assert set(tags[1:-1]) == {"testcase"}
        assert suite.get("timestamp") == "2026-01-01T00:00:00"
        for case in suite.iter("testcase"):
            assert set(case.attrib) == {"name", "classname", "time"}
            assert [child.tag for child in case] in (
                ["system-out"],
                ["failure", "system-out"],
                ["error", "system-out"],
                ["skipped", "system-out"],
            )
            assert "." not in case.get("classname", "")


def test_a_dot_begins_no_branch() -> None:
    """Servers make a tree of class names."""
    whole = with_cycles()
    assert whole.cpu is not None
    cpu = msgspec.structs.replace(whole.cpu, name="zen.3")
    text = junit(stored("compare", msgspec.structs.replace(whole, cpu=cpu)))
    suites = list(junitparser.JUnitXml.fromstring(text.encode()))
    assert suites[1].name == "path on zen.3"
    assert {case.classname for case in suites[1]} == {"path on zen_3"}


def test_nasty_names_in_junit() -> None:
    suites = list(junitparser.JUnitXml.fromstring(junit(nasty()).encode()))
    names = [case.name for case in suites[1]]
    # What XML cannot have is written out; a line end in an attribute is kept as it is.
    assert names[0] == f"getppid {NASTY}".replace("\x1b", r"\x1b")
