# SPDX-License-Identifier: GPL-2.0-or-later
"""A report of counters next to exact counts."""

from kdelta.infer.clock.counters import ExactCount, Retired, check_operation
from kdelta.studies.counters.model import CountersReport
from tests.report.example import MACHINE
from tests.report.example_against import side


def counters_report() -> CountersReport:
    """Return a report with an operation that agrees, one that does not, and one of user alone."""
    rows = {
        "getppid": (Retired(28.4, 310.0, 80.0, 250_000, 100), ExactCount(25.0, 308.0, 0.5)),
        "fork": (
            Retired(610.0, 160_000.0, 5e4, 400, 90, 0.62, shared=True),
            ExactCount(550.0, 230_000.0, 300.0, 4096.0, 18.0),
        ),
        "uname": (Retired(31.2, None, 90.0, 250_000, 100), ExactCount(28.0, 700.0)),
    }
    return CountersReport(
        workload="syscalls",
        kernel=side("counted"),
        emulated=MACHINE,
        machine={"cpu_model": "AMD EPYC", "release": "6.1.0-47-cloud-amd64", "microcode": ""},
        runs=2,
        margin=0.01,
        operations=tuple(
            check_operation(name, *both, 0.01, marks=3.2, interrupts=0.001)
            for name, both in rows.items()
        ),
        marks=3.2,
        interrupts=1000.0,
        more_flags=("fsrm", "pti"),
        fewer_flags=("rdrand",),
        notes=("interrupts are an estimate",),
        warnings=("instructions of the kernel were not counted",),
    )
