# SPDX-License-Identifier: GPL-2.0-or-later
"""Means in reports of searches: with intervals, without regions that vary, in every form."""

import re
from fractions import Fraction

import msgspec

from kdelta.infer.effects.estimate import Estimate
from kdelta.report.stored import Stored
from kdelta.studies.ablate.model import AblationReport
from kdelta.studies.forms import FORMS
from kdelta.studies.search.model import AblatedRegion
from tests.report.example_stored import EXAMPLES
from tests.report.shown import shown
from tests.report.test_ablation import REPORT, figure, unit


def unsteady() -> AblationReport:
    """The same with a region whose runs vary, and a unit that only seems to do something there."""
    spread = Estimate(Fraction(74000), Fraction(70900), Fraction(79279), 3)
    whole = figure(2800, 8400)
    region = AblatedRegion(
        workload="syscalls",
        name="vfork-exec",
        before=figure(71000),
        after=spread,
        whole=whole,
        explained=figure(-7000, 8400),
        remainder=figure(9800, 11900),
        lookups=figure(0),
    )
    buckets = msgspec.structs.replace(
        unit("SLAB_BUCKETS"),
        effects={
            "open": figure(0, 12),
            "stat": figure(2),
            "empty": figure(0),
            "vfork-exec": figure(-7000, 8400),
        },
    )
    stat = msgspec.structs.replace(
        REPORT.regions[1], explained=figure(-16), remainder=figure(-4, 5)
    )
    return msgspec.structs.replace(
        REPORT,
        regions=(REPORT.regions[0], stat, REPORT.regions[2], region),
        option_groups=(*REPORT.option_groups, buckets),
    )


def test_a_region_that_varies_is_apart_from_the_mean_and_named() -> None:
    text = " ".join(shown("ablate", unsteady()).split())
    assert "Of the change of -11.3% +-0.20 in the mean over 3 regions" in text
    assert "In no mean: runs of one kernel vary by more than 1 %" in text
    assert "vfork-exec: 70900 to 79279 instructions in 3 runs" in text
    assert "from end to end +3.94% +-11.9" in text


def test_a_unit_whose_mean_may_be_zero_is_not_ranked() -> None:
    text = shown("ablate", unsteady())
    flat = " ".join(text.split())
    table = flat[flat.index("option group % mean") : flat.index("Mean over")]
    assert "SLAB_BUCKETS" not in table
    for form in ("text", "mail", "markdown"):
        found = " ".join(FORMS[form].render(stored(unsteady())).split())
        row = r"SLAB_BUCKETS\W+0\.54 %\W+stat \+0\.40% exact\W+vfork-exec 21\.70 %"
        assert re.search(row, found), form
        assert "vfork-exec: 70900 to 79279 instructions in 3 runs" in found, form
    page = " ".join(FORMS["html"].render(stored(unsteady())).split())
    assert "No effect seen" in page
    assert "Regions that are in no mean" in page


def stored(report: AblationReport) -> Stored:
    return msgspec.structs.replace(EXAMPLES["ablate"], reports=(report,))
