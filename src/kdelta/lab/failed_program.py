# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program of the host lacked in a guest, as far as what it printed says."""

import re
import shlex

from kdelta.kernels.model import Kernel
from kdelta.lab.plan import COMMAND_REGION, RunPlan
from kdelta.machines.outcome import GuestOutcome
from kdelta.spec.run import RunStatus

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
            r"could not resolve|name or service not known|temporary failure (?:in name )?resol|"
            r"network is unreachable|no route to host|unknown ?host|unable to resolve|EAI_AGAIN|"
            r"cannot assign requested address|connection refused|(?:failed to|could not) connect",
            re.IGNORECASE,
        ),
        "a guest has no network but lo, and no services but those that the command starts",
    ),
)
"""What programs print (most by perror or gai_strerror) that lack something which no guest has."""
WAITING = "what waits for the network or a key never ends: a guest has lo alone, and no terminal"
_NO_SPACE = "No space left on device"
_FULL = "more output than a guest has room for"
"""In the agent's words (native/agent/run.c)."""
_NO_MODE = "mode "
"""How the reason begins of a kernel that cannot be asked for that: a shell shows no more."""
_OUT_OF_MEMORY = re.compile(r"Out of memory: Killed process")


def about_program(outcome: GuestOutcome, kernel: Kernel, work: RunPlan) -> str:
    """Return what follows the reason of a run whose program failed: what that printed, what it
    lacked, and the command that shows more; empty for workloads and for runs that went well.
    """
    is_late = outcome.status is RunStatus.TIMED_OUT
    failed = outcome.status is RunStatus.WORKLOAD_FAILED
    if not (failed or is_late) or work.job.region != COMMAND_REGION:
        return ""
    printed = outcome.messages.get("stderr", b"").decode("utf-8", "replace")
    clauses = [f"it printed: {_ends(printed)}"] if printed.strip() else []
    clauses += [cause for pattern, cause in _CAUSES if pattern.search(printed)]
    command = shlex.join(work.job.argv)
    if is_full := _FULL in outcome.detail:
        clauses.append(f"without its output: -- {_by_shell(f'exec {command} >/dev/null')}")
    elif not clauses and failed and outcome.detail.startswith("exit "):
        clauses.append(
            "it printed no error; it has no terminal, and its standard input is empty; if it is to "
            f"end so: -- {_by_shell(f'{command} || true')}"
        )
    if is_late:
        clauses.append(f"--seconds allows it more than {work.job.seconds} s of the guest's time")
        clauses.append(WAITING)
    is_short = _NO_SPACE in f"{outcome.detail}{printed}" and not is_full
    if is_short or _OUT_OF_MEMORY.search(outcome.console):
        clauses.append("the guest has too little memory: --memory MIB gives it more")
    if not outcome.detail.startswith(_NO_MODE):
        clauses.append(f"see: kdelta shell {shlex.quote(kernel.spec)} -- {command}")
    return "".join(f"; {clause}" for clause in clauses)


def lacked(stderr: str) -> tuple[str, ...]:
    """Return a warning for each thing that no guest has and that a program wrote that it lacks,
    though it went well: what it did is not what it does on the host.
    """
    lines = [line.strip() for line in stderr.splitlines()]
    found = [
        (next((one for one in lines if pattern.search(one)), ""), cause)
        for pattern, cause in _CAUSES
    ]
    return tuple(
        f'the program printed "{line[:_LINE_CHARACTERS]}": {cause}' for line, cause in found if line
    )


def _ends(printed: str) -> str:
    """The first line, and the last: the reason is in one of them."""
    lines = [line.strip()[:_LINE_CHARACTERS] for line in printed.splitlines() if line.strip()]
    if len(lines) > 2:
        lines[1:-1] = ["..."]
    return " / ".join(lines)


def _by_shell(text: str) -> str:
    return shlex.join(("sh", "-c", text))
