# SPDX-License-Identifier: GPL-2.0-or-later
"""A profile as a kind of study: its report, its JSON, and what that shares with others."""

from kdelta.report.kind import Kind
from kdelta.studies.profile.document import profile_document
from kdelta.studies.profile.model import ProfileReport

KIND = Kind(
    report=ProfileReport,
    json="kdelta.profile/2",
    document=lambda s: profile_document(s, s.one(ProfileReport)),
)
