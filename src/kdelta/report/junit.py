# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as JUnit XML, which CI servers show: elements that Jenkins and surefire know."""

import datetime
import re
from xml.etree import ElementTree as ET

from kdelta.report.document import Case, Document, Facts, Outcome, Suite, blocks

# What XML 1.0 has no way to write: production 2 of its specification, Char.
_NO_CHAR = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_of(document: Document) -> str:
    """A suite for each group of regions, and in it a case for each: a failure is what is slower, an
    error what failed, skipped what is not known.
    """
    suites = [one for one in document.suites if one.cases]
    root = ET.Element("testsuites", name=f"kdelta {document.made.kind}")
    root.extend(_suite(number, suite, document) for number, suite in enumerate(suites))
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(one.get(name, "0")) for one in root)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _suite(number: int, suite: Suite, document: Document) -> ET.Element:
    made = document.made
    moment = datetime.datetime.fromtimestamp(made.started, datetime.UTC)
    element = ET.Element(
        "testsuite",
        name=_text(suite.name),
        id=str(number),
        tests=str(len(suite.cases)),
        failures=str(suite.count(Outcome.SLOWER)),
        errors=str(suite.count(Outcome.FAILED)),
        skipped=str(suite.count(Outcome.UNKNOWN)),
        # How long a study takes is nothing to judge it by, but some readers insist.
        time="0",
        timestamp=moment.strftime("%Y-%m-%dT%H:%M:%S"),
    )
    properties = ET.SubElement(element, "properties")
    facts = {"question": made.question, "command": made.command, "kdelta": made.version}
    facts |= {"id": made.id} if made.id else {}
    more = [one.facts for one in blocks(document.environment) if isinstance(one, Facts)]
    for name, value in [*facts.items(), *document.facts, *(fact for one in more for fact in one)]:
        ET.SubElement(properties, "property", name=_text(name), value=_text(value))
    element.extend(_case(case, suite) for case in suite.cases)
    said = "\n".join([*document.sentences, *document.notes, *document.warnings])
    ET.SubElement(element, "system-out").text = _text(said)
    return element


def _case(case: Case, suite: Suite) -> ET.Element:
    # A server makes a tree of the class names, and a dot begins a branch of it.
    place = _text(suite.name).replace(".", "_")
    element = ET.Element("testcase", name=_text(case.name), classname=place, time="0")
    details = _text("\n".join([case.verdict, *case.figures]))
    words = _text(case.verdict)
    if case.outcome is Outcome.UNKNOWN:
        ET.SubElement(element, "skipped", message=words)
    elif case.outcome is not Outcome.OK:
        tag = "failure" if case.outcome is Outcome.SLOWER else "error"
        ET.SubElement(element, tag, message=words, type=str(case.outcome)).text = details
    ET.SubElement(element, "system-out").text = details
    return element


def _text(text: str) -> str:
    """A text without what XML cannot have; the library escapes what it can."""
    return _NO_CHAR.sub(lambda found: ascii(found[0])[1:-1], text)
