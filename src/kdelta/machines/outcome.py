# SPDX-License-Identifier: GPL-2.0-or-later
"""What became of a run, and why: read off the console and the agent's own words."""

import re
from pathlib import Path

import msgspec

from kdelta.spec.run import RunStatus

CONSOLE_KEPT_BYTES = 64 << 10
_LAST_LINES = 12
_PANIC = re.compile(r"Kernel panic - not syncing: (.*)")
_NO_INIT = ("Unable to mount root fs", "No working init found", "Cannot open root device")


class Outcome(msgspec.Struct, frozen=True):
    """One run of a guest. `counts` and `boot` are files of the plugin: the run's own, and the one with the kernel's symbols."""

    status: RunStatus
    detail: str
    console: str
    seconds: float
    messages: dict[str, bytes]
    counts: Path | None = None
    boot: Path | None = None


def read_console(folder: Path) -> str:
    """The last 64 KiB of what the guest printed."""
    path = folder / "console"
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - CONSOLE_KEPT_BYTES))
        return file.read().decode("utf-8", "replace").replace("\r\n", "\n")


def last_lines(console: str) -> str:
    """The end of the console, as a report shows it."""
    return "\n".join(console.strip().splitlines()[-_LAST_LINES:])


def boot_failure(ended: str, console: str, exit_code: int | None) -> str:
    """Why a kernel did not reach its agent. `ended` is how the wait for it ended."""
    panic = _PANIC.search(console)
    if panic and any(words in console for words in _NO_INIT):
        return f"no init: the kernel did not take the initramfs (panic: {panic[1].strip()})"
    if panic:
        return f"panic: {panic[1].strip()}"
    if ended == "flood":
        return "the guest printed without end"
    if ended == "timeout" and not console.strip():
        return "hang: nothing on the serial console; the kernel does not start, or has no serial console"
    if ended == "timeout":
        return f"hang: the agent never answered; last line: {console.strip().splitlines()[-1].strip()}"
    if not console.strip():
        return f"QEMU ended ({exit_code}) before the kernel said anything"
    return f"the guest powered off before its agent was ready; last line: {console.strip().splitlines()[-1].strip()}"


def workload_outcome(
    ended: str, console: str, messages: dict[str, bytes], limit_seconds: float
) -> tuple[RunStatus, str]:
    """Status and reason of a workload whose guest booted."""
    result = messages.get("result", b"").decode("utf-8", "replace").strip()
    if ended == "flood":
        return RunStatus.WORKLOAD_FAILED, "the guest printed without end"
    if ended == "timeout":
        return RunStatus.TIMED_OUT, f"no end after {limit_seconds:.0f} s; the workload may never leave its region"
    panic = _PANIC.search(console)
    if not result:
        why = f"panic: {panic[1].strip()}" if panic else "the guest ended without a result"
        return RunStatus.WORKLOAD_FAILED, why
    if result == "exit 0":
        return RunStatus.OK, ""
    if result.startswith("timeout"):
        return RunStatus.TIMED_OUT, "the workload ran longer than its limit in the guest's own time"
    return RunStatus.WORKLOAD_FAILED, result
