# SPDX-License-Identifier: GPL-2.0-or-later
"""A small comparison with something of everything a report can say."""

import functools

from kdelta.counts.model import Cost, RunCounts
from kdelta.infer.effects.effects import compare_runs
from kdelta.report.model import KernelRuns, ReportedRun
from kdelta.spec.run import RunStatus
from kdelta.store.model import Run
from kdelta.studies.compare.model import Compared, CompareReport
from kdelta.studies.run.model import RunReport
from tests.synthetic import Function, interrupts, other, own, region, run, user

TICKS = 400_000_000
MACHINE: dict[str, str | int | float] = {
    "name": "tcg",
    "memory_mib": 1024,
    "qemu": "7.2.22 (Debian 1:7.2+dfsg-7)",
    "cpu": "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+lahf-lm,-rdrand,-rdseed",
    "cpu_model": "QEMU Virtual CPU version 2.5+",
}


def zeros(string_bytes: int, insns: int = 9_900) -> dict[Function, Cost]:
    return {own("read_iter_zero"): Cost(insns, string_bytes=100 * string_bytes)}


def base_counts(shake: int) -> RunCounts:
    tick: dict[Function, int | Cost] = {
        interrupts("sysvec_apic_timer_interrupt"): 400_000 + shake,
        other("kswapd"): 5_000,
    }
    return run(
        region("getppid", {own("__x64_sys_getppid"): 23_700, user("getppid"): 10_000, **tick}, 100),
        region(
            "open-close",
            {
                own("do_sys_openat2.isra.0"): Cost(
                    120_032, 900, 30_000, 20_000, 7_200, {"lock": 1_200}
                ),
                own("__fget_light"): Cost(51_200, specials={"lock": 100, "wrmsr": 100}),
                own("link_path_walk.part.0.constprop.0"): 130_044,
                **{own(f"small_{index}"): 1_001 + 7 * index for index in range(14)},
                user("open_close"): 5_000,
            },
            100,
            TICKS,
        ),
        region("clock_gettime-vdso", {user("__vdso_clock_gettime", "[vdso]"): 4_100}, 100, TICKS),
        region("mmap-touch-4m", {own("clear_page_erms"): 91_245_678 + shake}, 10, TICKS),
        region("page-fault", {own("asm_exc_page_fault"): 100_000 + 100 * shake}, 100, TICKS),
        region("read-zero-64k", zeros(65_536), 100, TICKS),
        region("uname", {own("__x64_sys_newuname"): 54_000}, 100, TICKS),
        region("a-name-that-is-longer-than-its-column", {own("f"): 100}, 100, TICKS),
        region("remap-file-pages", {own("remap"): 12_345}, 100, TICKS),
    )


def other_counts(shake: int) -> RunCounts:
    tick: dict[Function, int | Cost] = {
        interrupts("sysvec_apic_timer_interrupt"): 390_000 + shake,
        interrupts("update_process_times"): 20_000,
        other("kswapd"): 5_000,
    }
    return run(
        region("getppid", {own("__x64_sys_getppid"): 23_600, user("getppid"): 10_000, **tick}, 100),
        region(
            "open-close",
            {
                own("do_sys_openat2"): Cost(120_000, 800, 30_000, 20_000, 6_400, {"lock": 1_000}),
                own("fd_get_a_name_that_no_column_is_wide_enough_for"): Cost(
                    30_025, specials={"lock": 100, "wrmsr": 100}
                ),
                own("link_path_walk"): 131_044,
                own("ovl_open", "[overlay]"): 2_500,
                **{own(f"small_{index}"): 1_000 + 6 * index for index in range(14)},
                user("open_close"): 5_000,
            },
            100,
            TICKS,
        ),
        region("clock_gettime-vdso", {user("__vdso_clock_gettime", "[vdso]"): 4_400}, 100, TICKS),
        region("mmap-touch-4m", {own("clear_page_erms"): 91_245_690 + shake}, 10, TICKS),
        region("page-fault", {own("asm_exc_page_fault"): 100_500 + 100 * shake}, 100, TICKS),
        region("read-zero-64k", zeros(4_096, 130_000), 100, TICKS),
        region("uname", {own("__x64_sys_newuname"): 54_000}, 100, TICKS),
        region("a-name-that-is-longer-than-its-column", {own("g"): 300}, 100, TICKS),
        region("futex-wake", {own("futex_wake"): 70_000}, 100, TICKS),
        warnings=("the guest never became quiet",),
    )


def stored(index: int, status: RunStatus, detail: str = "", *, side: str = "6.1") -> Run:
    return Run(
        id=f"{index:02}c0ffee{len(side):02}{index:02}",
        key="k",
        status=status,
        alive=False,
        detail=detail,
        kernel_identity="3f9a0c12be77" + "0" * 52,
        kernel_spec="deb:linux-image-6.1.0-47-cloud-amd64",
        kernel_release="6.1.0-47-cloud-amd64",
        machine=MACHINE,
        workload="syscalls",
        workload_identity="b" * 64,
        perturbation=index,
        started=1_767_225_600.0,
        seconds=4.25,
    )


@functools.cache
def report() -> CompareReport:
    good = tuple(ReportedRun(stored(index, RunStatus.OK), from_store=True) for index in range(3))
    bad = ReportedRun(
        stored(3, RunStatus.WORKLOAD_FAILED, "signal 11 SIGSEGV"),
        console_tail=(
            "[    2.100000] syscalls[77]: segfault at 0 ip 401234 sp 7ffe12345678 error 4 in init",
            "[    2.110000] reboot: Power down",
        ),
    )
    return CompareReport(
        workload="syscalls",
        machine=MACHINE,
        base=KernelRuns(
            "deb:linux-image-6.1.0-47-cloud-amd64",
            "3f9a0c12be77" + "0" * 52,
            "6.1.0-47-cloud-amd64",
            good,
        ),
        others=(
            Compared(
                KernelRuns(
                    "deb:linux-image-6.12.57+deb13-cloud-amd64",
                    "c0de5ca1ab1e" + "0" * 52,
                    "6.12.57+deb13-cloud-amd64",
                    (*good, bad),
                ),
                compare_runs(
                    [base_counts(shake) for shake in (0, 3, 5)],
                    [other_counts(shake) for shake in (0, 6, 5)],
                ),
            ),
        ),
        warnings=("QEMU 9.1 is newer than what kdelta was tested with",),
    )


def run_report() -> RunReport:
    return RunReport(ReportedRun(stored(1, RunStatus.OK)), base_counts(0))


def failed_report() -> RunReport:
    tail = ("[    0.900000] Kernel panic - not syncing: VFS: Unable to mount root fs",)
    return RunReport(
        ReportedRun(
            stored(1, RunStatus.BOOT_FAILED, "no init: the kernel did not take it"), False, tail
        ),
        None,
    )
