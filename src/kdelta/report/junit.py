# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as JUnit XML, which CI servers show: elements that Jenkins and surefire know."""

import datetime
import re
from xml.etree import ElementTree as ET

from kdelta.report.outline import Case, Outcome, Outline, Suite
from kdelta.report.outlines.kinds import outline_of
from kdelta.report.stored import Stored

# What XML 1.0 has no way to write: production 2 of its specification, Char.
_NO_CHAR = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(stored: Stored) -> str:
    """A suite for each group of regions, and in it a case for each: a failure is what is slower, an
    error what failed, skipped what is not known.
    """
    outline = outline_of(stored)
    suites = [one for one in outline.suites if one.cases]
    root = ET.Element("testsuites", name=f"kdelta {stored.kind}")
    for number, suite in enumerate(suites):
        root.append(_suite(number, suite, outline, stored))
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(one.get(name, "0")) for one in root)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, "unicode") + "\n"


def _suite(number: int, suite: Suite, outline: Outline, stored: Stored) -> ET.Element:
    moment = datetime.datetime.fromtimestamp(stored.started, datetime.UTC)
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
    facts = {"question": stored.question, "command": stored.command, "kdelta": stored.version}
    for name, value in [*facts.items(), *outline.facts]:
        ET.SubElement(properties, "property", name=_text(name), value=_text(value))
    for case in suite.cases:
        element.append(_case(case, suite))
    said = "\n".join([*outline.short, *outline.warnings])
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
