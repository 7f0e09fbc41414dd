# SPDX-License-Identifier: GPL-2.0-or-later
"""Why a program of the host failed in a guest, as far as what it printed says."""

import re
import shlex

from kdelta.kernels.model import Kernel
from kdelta.lab.plan import COMMAND_REGION, RunPlan
from kdelta.machines.outcome import GuestOutcome
from kdelta.spec.run import RunStatus

_LINES = 2
_LINE_CHARACTERS = 160
_CAUSES = (
    (
        re.compile(
            r"not (?:a|to a|from a) (?:tty|terminal|typewriter)|failed tty get|"
            r"TERM environment variable|opening terminal|Inappropriate ioctl|/dev/tty\b",
            re.IGNORECASE,
        ),
        "a run has no terminal, and kdelta shell has one",
    ),
    (
        re.compile(
            r"could not resolve|name or service not known|temporary failure in name resolution|"
            r"network is unreachable|no route to host|unknown host|cannot assign requested address",
            re.IGNORECASE,
        ),
        "a guest has no network but lo",
    ),
)
"""What programs print (most by perror or gai_strerror) that lack something which no guest has."""
_NO_SPACE = "No space left on device"
_NO_MODE = "mode "
"""How the reason begins of a kernel that cannot be asked for that: a shell shows no more."""
_OUT_OF_MEMORY = re.compile(r"Out of memory: Killed process")


def about_program(outcome: GuestOutcome, kernel: Kernel, work: RunPlan) -> str:
    """What follows the reason of a run whose program failed: what that printed, what it lacked, and
    the command that shows more; empty for workloads and for runs that went well.
    """
    failed = outcome.status in {RunStatus.WORKLOAD_FAILED, RunStatus.TIMED_OUT}
    if not failed or work.job.region != COMMAND_REGION:
        return ""
    printed = outcome.messages.get("stderr", b"").decode("utf-8", "replace")
    lines = [line.strip()[:_LINE_CHARACTERS] for line in printed.splitlines() if line.strip()]
    clauses = [f"it printed: {' / '.join(lines[:_LINES])}"] if lines else []
    clauses += [cause for pattern, cause in _CAUSES if pattern.search(printed)]
    if outcome.status is RunStatus.TIMED_OUT:
        clauses.append(f"--seconds allows it more than {work.job.seconds} s of the guest's time")
    if _OUT_OF_MEMORY.search(outcome.console) or _NO_SPACE in f"{outcome.detail}{printed}":
        clauses.append("the guest has too little memory: --memory MIB gives it more")
    if not outcome.detail.startswith(_NO_MODE):
        command = shlex.join(work.job.argv)
        clauses.append(f"see: kdelta shell {shlex.quote(kernel.spec)} -- {command}")
    return "".join(f"; {clause}" for clause in clauses)
