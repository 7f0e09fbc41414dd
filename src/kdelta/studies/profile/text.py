# SPDX-License-Identifier: GPL-2.0-or-later
"""A profile as text: whose work and whose code it was, its functions, or what else is asked for."""

from collections.abc import Sequence

from kdelta.infer.profiles.profile import Sort
from kdelta.report.lines import finished, labelled, warning_lines, wrapped
from kdelta.studies.profile.calls_text import callers_lines, calls_lines
from kdelta.studies.profile.model import ProfileReport
from kdelta.studies.profile.parts import (
    COUNTED,
    function_lines,
    head_lines,
    part_lines,
    region_lines,
)
from kdelta.studies.profile.source_text import annotated_lines, no_lines, source_lines


def profile_text(
    report: ProfileReport,
    functions: int = 20,
    by: Sort = Sort.INSNS,
    columns: Sequence[Sort] = (),
) -> str:
    """The whole report; `functions` is how many are named, or source lines. LabError if it does not
    add up.
    """
    lines = head_lines("profile", report.run)
    lines += region_lines(report.regions, report.left_out)
    lines += labelled("counted", COUNTED)
    lines += ["", *part_lines(report.regions, report.selection)]
    if report.views.any:
        lines += _views(report, functions)
    else:
        lines += ["", *function_lines(report, functions, by, columns)]
    lines += [line for note in report.notes for line in ["", *wrapped(note, "", "")]]
    lines += warning_lines(report.warnings)
    return finished(lines)


def _views(report: ProfileReport, limit: int) -> list[str]:
    views = report.views
    lines = calls_lines(views.tree, views.part) if views.tree else []
    lines += callers_lines(views.callers, views.part)
    if views.lines is not None:
        lines += source_lines(views.lines, limit, views.texts)
        lines += no_lines(views.unlined)
    for function in views.annotated:
        lines += annotated_lines(function, views.places)
    return lines
