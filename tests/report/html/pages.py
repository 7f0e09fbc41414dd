# SPDX-License-Identifier: GPL-2.0-or-later
"""Stored studies of every kind for the tests of pages, and what there is to be said against."""

import functools
from collections.abc import Callable, Mapping, Sequence

import msgspec

from kdelta.counts.profile import Profile
from kdelta.infer.effects.effects import Word
from kdelta.infer.effects.gate import Decision, Exit, Judged
from kdelta.report.flame import Flame, flames
from kdelta.report.model import ReportedOption
from kdelta.report.stored import Stored
from kdelta.studies.compare.model import CompareReport
from kdelta.studies.gate.document import GateReport
from kdelta.studies.kinds import question_of
from kdelta.studies.processes.document import ProcessesReport
from tests.infer.made_processes import found
from tests.profiles import Stack, profile_of
from tests.report import (
    example_history,
    test_ablation,
    test_bisect_report,
    test_packets_report,
    test_place_report,
    test_profile_report,
    test_series_report,
)
from tests.report.example import failed_report, report, run_report
from tests.report.example_against import against_report, failed_against
from tests.report.example_clock import clock_report, floor_report
from tests.report.example_conflicts import compared_conflicts
from tests.report.example_counters import counters_report
from tests.report.example_crossing import crossing_report, without_kernel_mode
from tests.report.example_cycles import with_cycles
from tests.report.example_layout import layout_report

STARTED = 1_767_225_600.0


def stored(kind: str, *reports: msgspec.Struct, command: str = "") -> Stored:
    """A study as the store has it."""
    return Stored(
        kind=kind,
        question=question_of(kind, reports),
        command=command or f"kdelta {kind} one other",
        started=STARTED,
        version="0.1.0",
        reports=reports,
    )


def comparison() -> Stored:
    """With all verdicts on the path, and on model cycles."""
    plain = with_cycles("zen3", data=True)
    changes = (ReportedOption("CONFIG_HZ", "250", "1000"), ReportedOption("CONFIG_RUST", "n", "y"))
    other = msgspec.structs.replace(plain.others[0], config=changes)
    return stored("compare", msgspec.structs.replace(plain, others=(other,)))


def gate_report() -> GateReport:
    """One that is slower."""
    return GateReport(
        Decision(Exit.SLOWER, ("read-zero-64k +1213% instructions",)),
        (
            Judged("read-zero-64k +1213% instructions", Word.SLOWER),
            Judged("uname", Word.SAME),
            Judged("page-fault", Word.UNRESOLVED, "the path's spread reaches over the margin"),
        ),
        ("page-fault: its trace was cut off",),
        (report(),),
    )


_EVERY: Mapping[str, Callable[[], Stored]] = {
    "against": lambda: stored("against", against_report()),
    "against-failed": lambda: stored("against", failed_against()),
    "ablate": lambda: stored("ablate", test_ablation.REPORT),
    "conflicts": lambda: stored("conflicts", compared_conflicts()),
    "crossing": lambda: stored("crossing", crossing_report()),
    "crossing failed": lambda: stored("crossing", without_kernel_mode()),
    "diff": lambda: stored("diff", test_profile_report.diff_report("getppid", "open-close")),
    "history": lambda: stored("log", example_history.summary()),
    "history-operations": lambda: stored("log", example_history.tracked()),
    "ablate-cycles": lambda: stored("ablate", test_ablation.with_cycles()),
    "bisect": lambda: stored("bisect", test_bisect_report.REPORT),
    "compare": comparison,
    "compare-packets": lambda: stored("compare", test_packets_report.report()),
    "compare-path": lambda: stored("compare", report()),
    "compare-cpus": lambda: stored("compare", with_cycles("zen3"), with_cycles("zen4")),
    "gate": lambda: stored("gate", gate_report()),
    "layout": lambda: stored("layout", layout_report()),
    "place": lambda: stored("place", test_place_report.REPORT),
    "profile": lambda: msgspec.structs.replace(
        stored("run", run_report(), command="kdelta profile one other"),
        kind="profile",
        reports=(test_profile_report.profile_report("getppid", "open-close"),),
    ),
    "processes": lambda: msgspec.structs.replace(
        stored("run", run_report(), command="kdelta profile one other --processes"),
        kind="processes",
        reports=(ProcessesReport(run_report().run, (found(),)),),
    ),
    "clock": lambda: stored("clock", clock_report()),
    "clock floor": lambda: stored("clock", floor_report()),
    "counters": lambda: stored("counters", counters_report()),
    "run": lambda: stored("run", run_report()),
    "run-failed": lambda: stored("run", failed_report()),
    "series": lambda: stored("series", test_series_report.REPORT),
    "series-minimal": lambda: stored("series", test_series_report.minimal()),
}
EVERY = tuple(_EVERY)
"""The names of a study of each kind, and of some whose runs failed."""


@functools.cache
def example(name: str) -> Stored:
    """The study of that name."""
    return _EVERY[name]()


def two_profiles() -> tuple[Profile, Profile]:
    """Of one region in two kernels: a function more, one fewer, one that costs more itself."""
    opens: Stack = ("work:main", "do_syscall_64", "do_sys_openat2")
    both: dict[Stack, int] = {
        ("work:main",): 100,
        ("work:main", "do_syscall_64"): 300,
        ("work:main", "do_syscall_64", "[ext4]:ext4_file_open"): 500,
        ("work:main", "[vdso]:__vdso_time"): 50,
        ("timer",): 150,
    }
    base = {opens: 2_000, (*opens, "alloc_fd.isra.0"): 400, (*opens, "gone"): 250}
    other = {opens: 2_600, (*opens, "alloc_fd"): 300, (*opens, "added"): 700}
    a, b = (
        profile_of({**both, **own}, region="open-close", iterations=10, contexts={("timer",): 1})
        for own in (base, other)
    )
    return a, b


def two_flames() -> tuple[Flame, ...]:
    """Of two regions, compared."""
    base, other = two_profiles()
    more = profile_of({("work:main",): 10, ("work:main", "do_syscall_64"): 30}, region="getppid")
    return flames([base, more], [other, more])


HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"><svg onload='alert(3)'>",
    "<!--<script>",
    "a\u2028b\u2029c",
    "$(touch /tmp/x); `id` && rm -rf '~' | tee & \\",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(4)",
    "&lt;b&gt;&amp;",
)
"""Names that would do something if anything took them for what they look like."""


def hostile_comparison(names: Sequence[str] = HOSTILE) -> Stored:
    """The example with such names for kernels, operations, functions and notes."""
    plain = with_cycles("zen3", data=True)
    other = plain.others[0]
    renamed = {
        one.name: f"{one.name}{name}"
        for one, name in zip(other.effects.operations, [*names, *names], strict=False)
    }
    operations = tuple(
        msgspec.structs.replace(
            one,
            name=renamed[one.name],
            notes=(names[0],),
            functions=tuple(
                msgspec.structs.replace(
                    function, name=f"{function.name}{names[at % len(names)]}", origin=names[1]
                )
                for at, function in enumerate(one.functions)
            ),
        )
        for one in other.effects.operations
    )
    cycles = msgspec.structs.replace(
        other.measured[0],
        effects=tuple(one.renamed(renamed[one.region]) for one in other.measured[0].effects),
        notes=names if isinstance(names, tuple) else tuple(names),
    )
    side = msgspec.structs.replace(other.side, spec=names[0], release=names[5])
    changed: CompareReport = msgspec.structs.replace(
        plain,
        workload=names[2],
        base=msgspec.structs.replace(plain.base, spec=names[1], release=names[3]),
        others=(
            msgspec.structs.replace(
                other,
                side=side,
                effects=msgspec.structs.replace(other.effects, operations=operations),
                measured=(cycles,),
            ),
        ),
        warnings=tuple(names),
    )
    return stored("compare", changed, command=f"kdelta compare '{names[5]}' {names[0]}")


def hostile_flames(names: Sequence[str] = HOSTILE) -> tuple[Flame, ...]:
    """Functions, programs and regions with such names, which contain no colon here."""
    plain = [name.replace(":", "") for name in names]
    stacks: dict[Stack, int] = {("work:main", name): 100 + at for at, name in enumerate(plain)}
    profile = profile_of(stacks, region=names[0], program=names[1])
    return flames([profile], [profile])
