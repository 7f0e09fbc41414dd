# SPDX-License-Identifier: GPL-2.0-or-later
"""A crossing with something of everything its report can say."""

import msgspec

from kdelta.counts.model import Cost, RunCounts
from kdelta.cpus.catalog import load_cpu
from kdelta.infer.cycles.crossing import VariantName, crossing_of
from kdelta.report.model import KernelRuns, Mismatch, ReportedCPU, ReportedRun
from kdelta.spec.run import RunStatus
from kdelta.studies.crossing.model import CrossingReport, CrossingVariant
from tests.report.example import MACHINE, stored
from tests.synthetic import interrupts, other, own, region, run, user

SPEC = "deb-src:linux-source-6.12"
WAY: dict[VariantName, dict[str, int]] = {
    "stock": {"syscall": 1, "sysret": 1, "swapgs": 2, "lfence": 2, "stac-clac": 2},
    "mitigations-off": {"syscall": 1, "sysret": 1, "swapgs": 2, "stac-clac": 2},
    "kernel": {"syscall": 1, "iret": 1, "swapgs": 2},
    "kernel-direct": {"iret": 1, "swapgs": 2, "cli-sti": 1},
    "kernel-skip": {"swapgs": 2, "cli-sti": 2},
}
KERNEL: dict[VariantName, int] = {
    "stock": 260,
    "mitigations-off": 200,
    "kernel": 210,
    "kernel-direct": 205,
    "kernel-skip": 60,
}


def counts(arm: VariantName, shake: int = 0) -> RunCounts:
    calls = 100
    way = {kind: calls * count for kind, count in WAY[arm].items()}
    stub = 300 if arm in ("kernel-direct", "kernel-skip") else 0
    return run(
        region(
            "getppid",
            {
                own("entry_SYSCALL_64"): Cost(KERNEL[arm] * calls, specials=way),
                user("getppid"): 1_000 + stub,
                interrupts("sysvec_apic_timer_interrupt"): 400 + shake,
                other("kswapd"): 50,
            },
            calls,
        ),
        region("mmap-touch-4m", {own("clear_page"): 9_000_000 + 100 * shake}, 10),
        region("only-stock", {own("f"): 10}, 10) if arm == "stock" else region("rest", {}, 1),
        warnings=("the guest never became quiet",) if arm == "kernel" else (),
    )


def side(arm: VariantName, failure: str = "") -> KernelRuns:
    spec = f"{SPEC} +kernel-mode" if arm.startswith("kernel") else SPEC
    runs = tuple(ReportedRun(stored(index, RunStatus.OK), from_store=True) for index in range(2))
    if failure:
        return KernelRuns(spec, "", "", (), failure)
    return KernelRuns(spec, ("c" if arm.startswith("kernel") else "a") * 64, "6.12.90", runs)


def crossing_report(cpu: str = "zen2") -> CrossingReport:
    """With a price list, and all arms."""
    arms = {arm: (counts(arm), counts(arm, 4)) for arm in WAY}
    chose = {"meltdown": "Not affected", "spectre_v2": "Mitigation: Retpolines; STIBP: disabled"}
    off = {"meltdown": "Not affected", "spectre_v2": "Vulnerable; STIBP: disabled"}
    return CrossingReport(
        workload="syscalls",
        machine=MACHINE,
        variants=tuple(
            CrossingVariant(arm, side(arm), chose if arm == "stock" else off) for arm in WAY
        ),
        found=crossing_of(arms, load_cpu(cpu) if cpu else None),
        cpu=ReportedCPU(cpu, "AMD Zen 2", ("l1i",), ("l1i",)) if cpu else None,
        mismatches=(Mismatch("x", "no IBPB: none is written (no ibpb)", ("stock",), ("getppid",)),),
        notes=("what lies between the two kernels is reported here",),
        warnings=("kernel mode: the guest never became quiet",),
    )


def without_kernel_mode() -> CrossingReport:
    """No kernel with kernel mode, one failed run, and no CPU."""
    whole = crossing_report("")
    why = "build-failed: +kernel-mode: 0001.patch does not apply: Kconfig, hunk 1"
    bad = ReportedRun(
        stored(3, RunStatus.WORKLOAD_FAILED, "signal 11 SIGSEGV"), console_tail=("[ 2.1] oops",)
    )
    stock = msgspec.structs.replace(side("stock"), runs=(*side("stock").runs, bad))
    arms = (
        CrossingVariant("stock", stock),
        CrossingVariant("mitigations-off", side("mitigations-off")),
        *(CrossingVariant(arm, side(arm, why)) for arm in WAY if arm.startswith("kernel")),
    )
    found = crossing_of({arm: (counts(arm),) for arm in ("stock", "mitigations-off")})
    return msgspec.structs.replace(whole, variants=arms, found=found, mismatches=())
