# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta bisect` as a kind of study: its report, question and JSON."""

from kdelta.report import words
from kdelta.report.kind import Kind
from kdelta.report.mail import mbox_of, message
from kdelta.report.shortened import explained
from kdelta.report.stored import Stored
from kdelta.studies.bisect.document import bisect_document
from kdelta.studies.bisect.mail import regressions
from kdelta.studies.bisect.model import BisectReport


def _question(one: BisectReport) -> str:
    good, bad = one.names
    return (
        f"Which commits of {good}..{bad} make {one.repository} faster or slower under "
        f"{words.listed(one.workloads)}?"
    )


def _mails(stored: Stored) -> str:
    """One for each commit that was found to make the kernel slower."""
    report = stored.one(BisectReport)
    found = () if report.failure else regressions(report)
    mails = [message(one.headers, one.body, stored.started) for one in found]
    return mbox_of(mails, stored.started) if mails else ""


KIND = Kind(
    report=BisectReport,
    json="kdelta.bisect/2",
    document=bisect_document,
    printed=explained(bisect_document, "commits", "rows", 8),
    mails=_mails,
    question=_question,
)
