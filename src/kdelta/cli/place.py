# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta place`: its arguments."""

from functools import partial
from typing import Annotated

from kdelta.cli.codes import RUNS_FAILED
from kdelta.cli.named_cpu import named_cpu
from kdelta.cli.options import one_kernel
from kdelta.cli.plain_options import PrintOptions
from kdelta.cli.publish import run_study
from kdelta.cpus.catalog import DEFAULT_CPU
from kdelta.spec.option import Argument
from kdelta.studies.place.request import PlaceRequest
from kdelta.studies.place.study import run_place


def place(
    words: Annotated[
        list[str],
        Argument(metavar="KERNEL [+CHANGE...]", help="Kernel spec, perhaps changed.", kernels=True),
    ],
    *,
    asked: partial[PlaceRequest],
    printed: PrintOptions,
) -> int:
    """Find a better order for a kernel's functions, and write it for the linker.

    Runs the workloads once, recorded, and looks for an order of the executed functions under which
    the recording misses least. FILE is a symbol ordering file: TREE +order:FILE links a kernel so,
    and --apply does that at once and measures it.
    """
    request = asked(
        kernel=one_kernel(words, "an order is for one kernel"),
        cpu=asked.keywords.get("cpu") or named_cpu(DEFAULT_CPU),
    )
    report = run_study("place", run_place, request, printed)
    failed = not report.regions or (report.applied is not None and not report.applied.regions)
    return RUNS_FAILED if failed else 0
