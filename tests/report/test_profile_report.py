# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles and their differences as text and JSON: what is printed adds up, and fits a mail."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import read_document

from kdelta.counts.model import Cost, merged_regions
from kdelta.infer.profiles.diff import both_ends, diff_lines, figures_of
from kdelta.infer.profiles.profile import (
    Part,
    Selection,
    Sort,
    check_profile,
    ranked,
    region_profile,
    summed,
)
from kdelta.infer.profiles.source import SourceLine, line_changes
from kdelta.report.document import Table, blocks
from kdelta.report.model import ReportedRun
from kdelta.report.text import text_of
from kdelta.spec.errors import LabError
from kdelta.spec.run import RunStatus
from kdelta.studies.diff.document import diff_document
from kdelta.studies.diff.model import DiffReport
from kdelta.studies.documents import document_text
from kdelta.studies.forms import text as printed
from kdelta.studies.profile.document import ON_A_PAGE, FunctionsAsked, profile_document
from kdelta.studies.profile.model import ProfileReport
from kdelta.studies.profile.parts import usual_columns
from kdelta.studies.profile.views_text import changed_lines
from tests.report.example import base_counts, other_counts, stored
from tests.report.shown import shown, unwrapped
from tests.report.shown import stored as kept_as
from tests.report.test_text import against_golden, fits_a_mail

OWN = Selection()


def profile_text(report: ProfileReport, limit: int = 20, by: Sort = Sort.INSNS) -> str:
    asked = FunctionsAsked(limit, by, usual_columns(report, by))
    return text_of(profile_document(kept_as("profile", report), report, asked))


def functions_of(report: ProfileReport, asked: FunctionsAsked = ON_A_PAGE) -> list[dict[str, str]]:
    """The rows of the table of functions by column, the total last."""
    found = profile_document(kept_as("profile", report), report, asked).sections
    (table,) = (t for t in blocks(found) if isinstance(t, Table) and t.id == "functions-table")
    heads = [column.title for column in table.columns]
    rows = (*table.rows, table.total)
    return [dict(zip(heads, [cell.text for cell in row], strict=True)) for row in rows]


ALL = Selection(contexts=("own", "interrupts", "other"))


def profile_report(*names: str, selection: Selection = OWN) -> ProfileReport:
    regions = merged_regions(base_counts(0))
    chosen = names or ("getppid", "open-close")
    return ProfileReport(
        run=ReportedRun(stored(0, RunStatus.OK)),
        regions=tuple(region_profile(regions[name]) for name in chosen),
        selection=selection,
        left_out=tuple(name for name in regions if name not in chosen),
        warnings=("the guest never became quiet",),
    )


def diff_report(
    *names: str, selection: Selection = OWN, by: Sort = Sort.INSNS, each: bool = False
) -> DiffReport:
    a, b = merged_regions(base_counts(0)), merged_regions(other_counts(0))
    sides = [[region_profile(side[name]) for name in names] for side in (a, b)]
    figures = [figures_of(side, selection, by, each=each) for side in sides]
    return DiffReport(
        a=ReportedRun(stored(0, RunStatus.OK)),
        b=ReportedRun(stored(1, RunStatus.OK, side="6.12")),
        a_regions=tuple(sides[0]),
        b_regions=tuple(sides[1]),
        lines=diff_lines(figures[0], figures[1]),
        selection=selection,
        by=by,
        each=each,
    )


def differences(report: DiffReport, functions: int = 0) -> list[list[str]]:
    """The rows of a difference's table, the total last."""
    (table,) = [
        block
        for block in diff_document(kept_as("diff", report), report, functions).sections[0].blocks
        if isinstance(block, Table)
    ]
    return [[cell.text for cell in row] for row in (*table.rows, table.total)]


def test_golden() -> None:
    against_golden("profile.txt", profile_text(profile_report("open-close"), 5))


@pytest.mark.parametrize("limit", [0, 1, 3, 100])
@pytest.mark.parametrize("by", list(Sort))
def test_lines_of_a_profile_add_up(limit: int, by: Sort) -> None:
    report = profile_report("getppid", "open-close", selection=ALL)
    *rows, total = functions_of(report, FunctionsAsked(limit, by))
    assert sum(int(row["insns"]) for row in rows) == int(total["insns"])
    assert int(total["insns"]) == sum(
        row.cost.insns
        for region in merged_regions(base_counts(0)).values()
        if region.name in ("getppid", "open-close")
        for row in region.functions
    )


def test_what_is_not_looked_at_is_reported() -> None:
    text = profile_text(profile_report("getppid"))
    assert re.search(r"\nkernel +23700 +400000 +5000\n", text)
    assert "Left out of the functions: interrupts and other tasks (--context all).\n" in text
    assert "sysvec_apic_timer_interrupt" not in text
    everything = profile_text(profile_report("getppid", selection=ALL))
    assert "Left out" not in everything
    assert "sysvec_apic_timer_interrupt" in everything
    users = Selection(parts=(Part.USER,))
    report = profile_report("getppid", selection=users)
    assert [[*row.values()] for row in functions_of(report)] == [
        ["getppid syscalls", "user code", "10000", "100.0%"],
        ["total", "", "10000", "100.0%"],
    ]
    assert "kernel and modules (--code)" in " ".join(profile_text(report).split())


def test_functions_are_ranked_by_what_is_asked_for() -> None:
    lines = profile_report("open-close").regions[0].lines
    assert ranked(lines)[0].name == "link_path_walk.part.0.constprop.0"
    assert ranked(lines, Sort.LOADS)[0].name == "do_sys_openat2.isra.0"
    assert ranked(lines, Sort.SPECIAL)[1].name == "__fget_light"


def test_functions_of_several_regions_are_summed() -> None:
    regions = [region_profile(base_counts(0).regions[0])] * 2
    (line,) = [
        one for one in summed(line for r in regions for line in r.lines) if one.name == "getppid"
    ]
    assert line.cost == Cost(20_000)


def test_a_profile_that_does_not_add_up_is_an_error() -> None:
    region = base_counts(0).regions[1]
    profile = region_profile(region)
    check_profile(profile, region)
    short = msgspec.structs.replace(profile, lines=profile.lines[1:])
    with pytest.raises(LabError, match="own work adds up to"):
        check_profile(short, region)


def test_a_profile_as_json() -> None:
    report = profile_report(selection=Selection())
    document = read_document(document_text(report, "0.1.0"))
    # Whatever is looked at, all contexts are there.
    for found, region in zip(document.regions, base_counts(0).regions, strict=False):
        assert sum(one.cost.insns for one in found.lines) == region.executed_insns() - sum(
            row.cost.string_iterations for row in region.functions
        )
    assert "interrupts" in {one.context for one in document.regions[0].lines}
    assert "uname" in document.left_out


def test_the_listing() -> None:
    rows = differences(diff_report("open-close"))
    name = "fd_get_a_name_that_no_column_is_wide_enough_for"
    assert rows[0] == [name, "+30025", "0%", "0", "30025", "+300.25"]
    assert rows[1] == ["ovl_open [overlay]", "+2500", "0%", "0", "2500", "+25"]
    assert [rows[2][at] for at in (0, 1, 2, 5)] == ["link_path_walk", "+1000", "+0.77%", "+10"]
    assert rows[-2] == ["__fget_light", "-51200", "-100.0%", "51200", "0", "-512"]
    assert (rows[-1][0], rows[-1][-1]) == ("total", "-178.12")
    assert sum(int(row[1]) for row in rows[:-1]) == int(rows[-1][1]) == -17812


@pytest.mark.parametrize("limit", [0, 1, 2, 7, 100])
@pytest.mark.parametrize("each", [False, True])
def test_lines_of_a_difference_add_up(limit: int, each: bool) -> None:
    for names in (["open-close"], ["getppid", "open-close", "mmap-touch-4m"]):
        rows = differences(diff_report(*names, each=each), limit)
        found = sum(round(float(row[1]) * 100) for row in rows[:-1])
        assert found == round(float(rows[-1][1]) * 100)
        assert len(rows[0]) == (6 if not each and len(names) == 1 else 5)
        if len(rows[0]) == 6:
            last = [round(float(row[-1]) * 100) for row in rows]
            assert sum(last[:-1]) == last[-1] == -17812


def test_the_others_stand_where_they_belong() -> None:
    rows = differences(diff_report("open-close"), 3)
    assert [(row[0], row[-1]) for row in rows] == [
        ("fd_get_a_name_that_no_column_is_wide_enough_for", "+300.25"),
        ("ovl_open [overlay]", "+25"),
        ("other functions, more (1)", "+10"),
        ("other functions, less (15)", "-1.37"),
        ("__fget_light", "-512"),
        ("total", "-178.12"),
    ]
    kept = msgspec.structs.replace(
        kept_as("diff", diff_report("open-close")), shown={"functions": 3}
    )
    assert "other functions, less (15)" in printed(kept)
    every = msgspec.structs.replace(kept, shown={"functions": 0})
    assert "other functions" not in printed(every)


def test_a_difference_of_loads() -> None:
    rows = differences(diff_report("open-close", by=Sort.LOADS))
    assert rows == [["total", "0", "0%", "30000", "30000", "0"]]
    rows = differences(diff_report("open-close", by=Sort.SPECIAL))
    assert rows[0][:2] == ["fd_get_a_name_that_no_column_is_wide_enough_for", "+200"]
    assert rows[-1][1] == "-200"


def test_what_was_not_matched_is_reported() -> None:
    text = unwrapped("diff", diff_report("open-close"))
    assert "1 function did as much in both, 5000 instructions." in text
    assert (
        "1 function only in A with 51200: new or gone, not called, or inlined or renamed in B."
        in text
    )
    assert "2 functions only in B with 32525:" in text
    assert "Left out of the functions: interrupts and other tasks" in text


def test_a_difference_as_json() -> None:
    document = read_document(document_text(diff_report("open-close"), "0.1.0"))
    assert sum(line.b - line.a for line in document.lines) == -17812
    lines = {line.match.name: line for line in document.lines}
    walk = lines["link_path_walk"].match
    assert walk.how == "variant"
    assert [name for _, name in walk.a] == ["link_path_walk.part.0.constprop.0"]
    assert (lines["__fget_light"].match.how, lines["__fget_light"].b) == ("only in A", 0)
    assert (lines["ovl_open"].match.how, lines["ovl_open"].a) == ("only in B", 0)
    assert lines["ovl_open"].match.origin == "[overlay]"


def test_names_of_any_characters() -> None:
    """What a shell or a browser would take for its own is shown as it is, in ASCII."""
    odd = "$(reboot)`&<script>\x1b[31m\u00e9"
    region = msgspec.structs.replace(
        base_counts(0).regions[0],
        functions=tuple(
            msgspec.structs.replace(row, name=odd) for row in base_counts(0).regions[0].functions
        ),
    )
    report = msgspec.structs.replace(profile_report(), regions=(region_profile(region),))
    text = profile_text(report)
    assert "$(reboot)`&<script>\\x1b[31m\\xe9" in text
    assert text.isascii()
    assert "\x1b" not in text
    document = read_document(document_text(report, "0"))
    assert document.regions[0].lines[0].name == odd


def test_both_fit_a_mail() -> None:
    fits_a_mail(profile_text(profile_report()))
    fits_a_mail(profile_text(profile_report("open-close", selection=ALL)))
    fits_a_mail(shown("diff", diff_report("getppid", "uname")))


@given(st.lists(st.integers(-9, 9)), st.integers(0, 12))
def test_which_are_named(figures: list[int], limit: int) -> None:
    added = sorted((one for one in figures if one), reverse=True)
    named = both_ends(added, limit)
    more, less = [i for i in named if added[i] > 0], [i for i in named if added[i] < 0]
    if limit and len(added) > limit + 1:
        assert len(named) == limit
    else:
        assert len(named) == len(added)
    # From the ends inwards, and as many from either as there are.
    assert sorted(more) == list(range(len(more)))
    assert sorted(less) == list(range(len(added) - len(less), len(added)))
    if added and added[0] > 0 and limit:
        assert 0 in named


def test_changed_lines_add_up_and_stand_in_order() -> None:
    a = {SourceLine("kernel", "a.c", n, "f"): 10 * n for n in range(1, 9)} | {_BARE: 5}
    b = {SourceLine("kernel", "a.c", n, "f"): 100 - 10 * n for n in range(1, 9)} | {_BARE: 7}
    shown = changed_lines(line_changes(a, b), 2)
    figures = [(int(line.split()[0]), line.split(None, 1)[1]) for line in shown[3:]]
    assert figures == [
        (80, "a.c:1 f"),
        (120, "other lines, more (3)"),
        (-60, "other lines, less (2)"),
        (2, "of which no line is known"),
        (-60, "a.c:8 f"),
        (82, "total"),
    ]


_BARE = SourceLine("kernel", "", 0, "g")
