# SPDX-License-Identifier: GPL-2.0-or-later
"""A profile as a kind of study: its report, question, JSON and text."""

from kdelta.report.kind import Kind
from kdelta.studies.profile import shapes as profile_shapes
from kdelta.studies.profile.document import document
from kdelta.studies.profile.model import ProfileReport

KIND = Kind(
    report=ProfileReport,
    json="kdelta.profile/1",
    document=lambda s: document(s, s.one(ProfileReport)),
    shapes=profile_shapes.SHAPES,
)
