# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as KTAP, which the kernel's own test tools read: version 1, as its documentation has it
(Documentation/dev-tools/ktap.rst, read at 6.12).
"""

from collections.abc import Iterator

from kdelta.report.document import Case, Document, Outcome, Suite
from kdelta.report.lines import ascii_only

_INDENT = "  "
_BAD = (Outcome.SLOWER, Outcome.FAILED)


def ktap_of(document: Document) -> str:
    """Return a suite for each group of regions, and in it a test for each: not ok is what is
    slower, or what failed; skipped is what is not known.
    """
    suites = [one for one in document.suites if one.cases]
    made = document.made
    lines = ["KTAP version 1", f"1..{len(suites)}"]
    said = (*made.head, made.question, *document.sentences, f"made by kdelta {made.version}")
    lines += [f"# {_line(text)}" for text in said]
    for number, suite in enumerate(suites, start=1):
        lines += [f"{_INDENT}{line}" for line in _suite(suite)]
        word = "not ok" if suite.count(*_BAD) else "ok"
        lines.append(f"{word} {number} {_name(suite.name)}")
    return "\n".join([*lines, _totals(document)]) + "\n"


def _suite(suite: Suite) -> Iterator[str]:
    yield "KTAP version 1"
    yield f"# Subtest: {_name(suite.name)}"
    yield f"1..{len(suite.cases)}"
    for number, case in enumerate(suite.cases, start=1):
        yield from (
            f"# {_name(case.name)}: {_line(text)}" for text in (case.verdict, *case.figures)
        )
        yield _result(number, case)


def _result(number: int, case: Case) -> str:
    word = "not ok" if case.outcome in _BAD else "ok"
    skip = f" # SKIP {_line(case.verdict)}" if case.outcome is Outcome.UNKNOWN else ""
    return f"{word} {number} {_name(case.name)}{skip}"


def _totals(document: Document) -> str:
    """As kselftest sums up."""

    def count(outcome: Outcome) -> int:
        return sum(suite.count(outcome) for suite in document.suites)

    return (
        f"# Totals: pass:{count(Outcome.OK)} fail:{count(Outcome.SLOWER)} xfail:0 xpass:0 "
        f"skip:{count(Outcome.UNKNOWN)} error:{count(Outcome.FAILED)}"
    )


def _line(text: str) -> str:
    """A text in one line of ASCII."""
    return ascii_only(" ".join(text.split()))


def _name(text: str) -> str:
    """A test's name: KTAP has no way to write the sign that begins a directive in one."""
    return _line(text).replace("#", r"\x23")
