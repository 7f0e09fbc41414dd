# SPDX-License-Identifier: GPL-2.0-or-later
"""A stored study of every kind, and one with names that every form must escape."""

import msgspec
import pytest

from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.gate import Decision, Exit, Judged
from kdelta.report.stored import Stored
from kdelta.studies.gate.document import GateReport
from tests.report import (
    example_history,
    test_ablation,
    test_bisect_report,
    test_place_report,
    test_profile_report,
    test_series_report,
)
from tests.report.example import failed_report, report, run_report
from tests.report.example_against import against_report, failed_against, timed_report
from tests.report.example_clock import clock_report, floor_report
from tests.report.example_conflicts import (
    compared_conflicts,
    conflicts_report,
    failed_conflicts,
)
from tests.report.example_counters import counters_report
from tests.report.example_crossing import crossing_report, without_kernel_mode
from tests.report.example_cycles import with_cycles
from tests.report.example_layout import layout_report
from tests.report.shown import stored

GATE = GateReport(
    Decision(Exit.SLOWER, ("uname +1% instructions",)),
    (
        Judged("uname +1% instructions", Word.SLOWER, name="uname"),
        Judged("uname on zen3", Word.UNRESOLVED, "it depends on the price of l1i"),
        Judged("stat", Word.PLACEMENT_ONLY),
    ),
    compared=(with_cycles(),),
)


EXAMPLES = {
    "against": stored("against", against_report()),
    "against failed": stored("against", failed_against()),
    "against timed": stored("against", timed_report()),
    "ablate": stored("ablate", test_ablation.REPORT),
    "ablate cycles": stored("ablate", test_ablation.with_cycles()),
    "bisect": stored("bisect", test_bisect_report.REPORT),
    "clock": stored("clock", clock_report()),
    "clock floor": stored("clock", floor_report()),
    "compare": stored("compare", report()),
    "compare cycles": stored("compare", with_cycles()),
    "compare cpus": stored("compare", with_cycles(), with_cycles("zen2")),
    "conflicts": stored("conflicts", conflicts_report()),
    "conflicts two": stored("conflicts", compared_conflicts()),
    "conflicts failed": stored("conflicts", failed_conflicts()),
    "counters": stored("counters", counters_report()),
    "crossing": stored("crossing", crossing_report()),
    "crossing failed": stored("crossing", without_kernel_mode()),
    "diff": stored("diff", test_profile_report.diff_report("getppid", "open-close")),
    "diff each": stored("diff", test_profile_report.diff_report("open-close", each=True)),
    "gate": stored("gate", GATE),
    "gate alone": stored("gate", msgspec.structs.replace(GATE, compared=())),
    "history": stored("log", example_history.summary()),
    "history operations": stored("log", example_history.tracked()),
    "history series": stored("log", example_history.several()),
    "layout": stored("layout", layout_report()),
    "place": stored("place", test_place_report.REPORT),
    "place applied": stored(
        "place",
        msgspec.structs.replace(test_place_report.REPORT, applied=test_place_report.APPLIED),
    ),
    "run": stored("run", run_report()),
    "run failed": stored("run", failed_report()),
    "series": stored("series", test_series_report.REPORT),
    "series minimal": stored("series", test_series_report.minimal()),
}
EVERY = pytest.mark.parametrize("name", list(EXAMPLES))


NASTY = (
    "a # SKIP |b| `c` <script>alert(1)</script> \u00e9 \x1b[31m\nnot ok 7 x & *d* _e_ @me #12 ]]>"
)


def nasty() -> Stored:
    """A comparison with such names wherever there can be one."""
    whole = report()
    (other,) = whole.others
    operations = tuple(
        msgspec.structs.replace(
            one,
            name=f"{one.name} {NASTY}",
            functions=tuple(
                msgspec.structs.replace(function, name=f"{function.name}{NASTY}")
                for function in one.functions
            ),
        )
        for one in other.effects.operations
    )
    effects = msgspec.structs.replace(other.effects, operations=operations, warnings=(NASTY,))
    side = msgspec.structs.replace(other.side, spec=NASTY)
    changed = msgspec.structs.replace(other, effects=effects, side=side)
    return msgspec.structs.replace(
        stored("compare", msgspec.structs.replace(whole, others=(changed,))), command=NASTY
    )
