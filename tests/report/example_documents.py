# SPDX-License-Identifier: GPL-2.0-or-later
"""A JSON document of every kind, with all that such a document may have."""

from fractions import Fraction
from typing import TypeVar

import msgspec

from kdelta.cpus.catalog import load_cpu
from kdelta.infer.profiles.annotate import AnnotatedFunction, Insn, InstructionPair
from kdelta.infer.profiles.calls import CallChange, Calls
from kdelta.infer.profiles.diff import Hint, HintOutcome
from kdelta.infer.profiles.profile import Modelled
from kdelta.infer.profiles.source import LineChange, SourceLine
from kdelta.report.cpus import listed_cpus
from kdelta.report.model import ReportedRun, RunList, StudyList
from kdelta.spec.run import RunStatus
from kdelta.store.model import Study
from kdelta.studies.compare.model import CompareReport, ComparisonReport, MoreRuns
from kdelta.studies.diff.model import DiffReport, DiffViews, SideBySide
from kdelta.studies.documents import document_text
from kdelta.studies.processes.document import ProcessesReport
from kdelta.studies.profile.model import LineCost, ProfileReport, ProfileViews
from kdelta.studies.run.model import RunReport
from tests.infer import made_processes
from tests.report import test_packets_report
from tests.report.example import base_counts, failed_report, run_report
from tests.report.example import stored as stored_run
from tests.report.example_against import against_report
from tests.report.example_clock import clock_report, floor_report
from tests.report.example_counters import counters_report
from tests.report.example_cycles import with_cycles
from tests.report.example_stored import EXAMPLES, GATE
from tests.report.test_profile_report import diff_report, profile_report

VERSION = "0.1"
LINE = SourceLine("vmlinux", "fs/open.c", 12, "do_sys_open")
UNKNOWN = SourceLine("vmlinux", "", 0, "memcpy")
KEY = ("vmlinux", "do_sys_open")
INSN = Insn(0xFFFF1234, 3, 7, "nop", ("fs/open.c", 12))

_Rows = TypeVar("_Rows")


def few(rows: tuple[_Rows, ...], names: str = "getppid open-close futex-wake") -> tuple[_Rows, ...]:
    """Those of a few operations: one of each sort is enough here."""
    return tuple(
        one
        for one in rows
        if (getattr(one, "name", None) or getattr(one, "region", None)) in names.split()
    )


def small(whole: CompareReport) -> CompareReport:
    """A comparison with few operations, and with more runs of one."""
    (other,) = whole.others
    run = ReportedRun(stored_run(1, RunStatus.OK), from_store=True)
    changed = msgspec.structs.replace(
        other,
        effects=msgspec.structs.replace(other.effects, operations=few(other.effects.operations)),
        packets=few(other.packets),
        more=(MoreRuns("getppid", (run,), (run, run)),),
    )
    if other.measured:
        found = [msgspec.structs.replace(one, effects=few(one.effects)) for one in other.measured]
        changed = msgspec.structs.replace(changed, measured=tuple(found))
    base = msgspec.structs.replace(whole.base, controllers=("memory", "pids"))
    return msgspec.structs.replace(whole, base=base, others=(changed,))


def profile() -> ProfileReport:
    """A profile in all its views."""
    plain = profile_report("getppid")
    (region,) = plain.regions
    (first, *others) = region.lines
    first = msgspec.structs.replace(
        first, calls=3, inclusive=40, modelled=Modelled({"l1i": 2.5}, 3.0, 4.5)
    )
    calls = Calls((KEY, ("vmlinux", "memcpy")), (-1, 0), (5, 2), (7, 2), (1, 4))
    views = ProfileViews(
        tree=calls,
        callers=((KEY, calls),),
        lines=(LineCost(LINE, "if (flags)", 70), LineCost(UNKNOWN, "", 3)),
        annotated=(AnnotatedFunction(KEY, (INSN, msgspec.structs.replace(INSN, place=None))),),
    )
    region = msgspec.structs.replace(region, lines=(first, *others))
    return msgspec.structs.replace(plain, regions=(region,), views=views, calls="all")


def difference() -> DiffReport:
    """A difference in all its views."""
    views = DiffViews(
        changes=(CallChange(KEY, -1, 1, 2, 3, 5, 7, 7), CallChange(KEY, 0, 1, 1, 1, 1, 1, 0)),
        lines=(
            LineChange(LINE, msgspec.structs.replace(LINE, line=14), 3, 5, "if (flags)"),
            LineChange(None, LINE, 0, 5),
            LineChange(UNKNOWN, None, 2, 0),
        ),
        annotated=(
            SideBySide(
                "do_sys_open",
                ("a", "b"),
                (InstructionPair(INSN, INSN), InstructionPair(None, INSN)),
            ),
        ),
        hints=(Hint(HintOutcome.INLINED, KEY, Fraction(5, 2), (("vmlinux", "f"),), Fraction(3)),),
    )
    return msgspec.structs.replace(diff_report("getppid", "open-close"), views=views)


def packets_run() -> RunReport:
    """A run with a region about packets, and one without."""
    counts = test_packets_report.with_packets(base_counts(0), "getppid")
    chosen = tuple(one for one in counts.regions if one.name in {"getppid", "open-close"})
    counts = msgspec.structs.replace(counts, regions=chosen)
    return msgspec.structs.replace(run_report(), counts=counts, stdout="1\n")


def compared(one: CompareReport) -> ComparisonReport:
    """A comparison on one machine, with few operations."""
    return ComparisonReport(one.workload, (small(one),))


def reports() -> dict[str, msgspec.Struct]:
    """What each document is made from, by name."""
    kinds = {"ablate": "ablate cycles", "conflicts": "conflicts two", "crossing": "crossing",
             "bisect": "bisect", "log": "history series", "layout": "layout",
             "place": "place applied", "series": "series minimal"}  # fmt: skip
    runs = (stored_run(1, RunStatus.OK), stored_run(2, RunStatus.TIMED_OUT))
    study = Study("compare", "What?", "kdelta compare a b", 1.5, VERSION, "ab12", id="93551f17")
    return {
        **{kind: EXAMPLES[name].reports[0] for kind, name in kinds.items()},
        "compare": compared(with_cycles(data=True)),
        "compare-packets": compared(test_packets_report.report()),
        "cpus": listed_cpus([load_cpu("zen3")], ["host.toml: no such field"]),
        "diff": difference(),
        "against": against_report(),
        "clock": clock_report(),
        "counters": counters_report(),
        "clock-floor": floor_report(),
        "gate": msgspec.structs.replace(GATE, compared=(small(with_cycles()),)),
        "processes": ProcessesReport(run_report().run, (made_processes.found(5),)),
        "profile": profile(),
        "run": packets_run(),
        "run-failed": failed_report(),
        "runs": RunList(tuple(ReportedRun(run, from_store=True) for run in runs)),
        "studies": StudyList((study,)),
    }


def documents() -> dict[str, str]:
    """The documents' texts by name."""
    return {name: document_text(report, VERSION) for name, report in reports().items()}
