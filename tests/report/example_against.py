# SPDX-License-Identifier: GPL-2.0-or-later
"""Two programs under one kernel, with something of everything that the report can say."""

from fractions import Fraction

import msgspec

from kdelta.counts.model import RunCounts
from kdelta.infer.cycles.ensembles import Interval
from kdelta.infer.effects.effects import Word, compare_runs
from kdelta.infer.effects.gate import decide_gate, judge_path
from kdelta.infer.profiles.system_calls import KernelCost, PartKind, part_changes
from kdelta.report.measured import Effect, MeasuredEffects, judge_effect
from kdelta.report.model import KernelRuns, ReportedRun
from kdelta.spec.run import RunStatus
from kdelta.studies.against.model import AgainstRegion, AgainstReport, OutputChange, ProgramSide
from tests.report.example import MACHINE, stored
from tests.synthetic import interrupts, own, region, run, user

SPEC = "deb:linux-image-6.1.0-47-cloud-amd64"


def counts(writes: int, shake: int = 0) -> RunCounts:
    return run(
        region(
            "command",
            {
                own("vfs_write"): 300 * writes,
                own("entry_SYSCALL_64"): 40 * writes,
                user("main", "ls"): 10_000 + 12 * writes,
                interrupts("sysvec_apic_timer_interrupt"): 400 + shake,
            },
            1,
        )
    )


def parts(writes: int) -> tuple[KernelCost, ...]:
    return (
        KernelCost(PartKind.SYSTEM_CALL, "write", writes, 300 * writes),
        KernelCost(PartKind.SYSTEM_CALL, "statx" if writes > 100 else "stat", 7, 0),
        KernelCost(PartKind.ENTRY, "entry and exit", None, 40 * writes),
        KernelCost(PartKind.INTERRUPT, "interrupts", 1, 400),
    )


def side(name: str, *, failed: bool = False) -> KernelRuns:
    status = RunStatus.WORKLOAD_FAILED if failed else RunStatus.OK
    detail = f"{name}: exit 2" if failed else ""
    runs = tuple(ReportedRun(stored(index, status, detail)) for index in range(3))
    return KernelRuns(SPEC, "3f9a0c12be77" + "0" * 52, "6.1.0-47-cloud-amd64", runs)


def against_report(
    writes: int = 200, margin: Fraction = Fraction(1, 100), *, output: bool = True
) -> AgainstReport:
    """The new program with so many writes, where the old one has 100."""
    shakes = (0, 3, 5)
    effects = compare_runs(
        [counts(100, shake) for shake in shakes], [counts(writes, shake) for shake in shakes]
    )
    judged = tuple(judge_path(one, margin) for one in effects.operations)
    changes = part_changes(parts(100), parts(writes))
    return AgainstReport(
        machine=MACHINE,
        old=ProgramSide(("/opt/old/ls", "-l"), side("old"), 2048),
        new=ProgramSide(("./ls", "-l"), side("new"), 2304),
        margin=margin,
        decision=decide_gate(judged),
        judged=judged,
        regions=tuple(AgainstRegion(one, changes) for one in effects.operations),
        output=(OutputChange("standard output", 3, "-rw-r--r-- a", ""),) if output else (),
        warnings=effects.warnings,
    )


def failed_against() -> AgainstReport:
    """The old program failed."""
    decision = decide_gate((), ("old: workload-failed: old: exit 2",))
    old = ProgramSide(("./old",), side("old", failed=True))
    new = ProgramSide(("./new",), side("new"))
    return AgainstReport(MACHINE, old, new, Fraction(0), decision, (), ())


def timed_report() -> AgainstReport:
    """The same programs, which were timed as well."""
    plain = against_report(output=False)
    change = Interval(0.11, 0.19)
    ends = Interval(1_204_000.0, 1_204_000.0), Interval(1_384_500.0, 1_384_500.0)
    effect = Effect("command", Word.SLOWER, *ends, change, "explained by the path")
    notes = ("timed on this host, AMD EPYC, under 6.12.0, which runs here; 7 pairs of runs",)
    times = MeasuredEffects("times", "nanoseconds", (effect,), " by the clock", notes)
    judged = (*plain.judged, judge_effect(effect, times))
    return msgspec.structs.replace(plain, times=times, judged=judged, decision=decide_gate(judged))
