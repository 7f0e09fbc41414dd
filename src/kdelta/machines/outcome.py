# SPDX-License-Identifier: GPL-2.0-or-later
"""What became of a run, and why: read off the console and the agent's own words."""

import re
from pathlib import Path

import msgspec

from kdelta.spec.run import RunStatus
from kdelta.spec.visible import visible_line

HANG = "hang: "
"""How the reason begins of a boot that did not end in time."""
CONSOLE_KEPT_BYTES = 64 << 10
_PANIC = re.compile(r"Kernel panic - not syncing: (.*)")
_NO_INIT = ("Unable to mount root fs", "No working init found", "Cannot open root device")


class GuestOutcome(msgspec.Struct, frozen=True):
    """One run of a guest. `counts` is the plugin's file, `symbols` the guest's /proc/kallsyms."""

    status: RunStatus
    detail: str
    console: str
    seconds: float
    messages: dict[str, bytes]
    counts: Path | None = None
    symbols: Path | None = None


def read_console(folder: Path) -> str:
    """The last 64 KiB of what the guest printed."""
    path = folder / "console"
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - CONSOLE_KEPT_BYTES))
        return file.read().decode("utf-8", "replace").replace("\r\n", "\n")


def boot_failure(ended: str, console: str, exit_code: int | None) -> str:
    """Why a kernel did not reach its agent. `ended` is how the wait for it ended."""
    panic = _PANIC.search(console)
    lines = console.strip().splitlines()
    last = lines[-1].strip() if lines else ""
    if panic and any(words in console for words in _NO_INIT):
        why = f"no init: the kernel did not take the initramfs (panic: {panic[1].strip()})"
    elif panic:
        why = f"panic: {panic[1].strip()}"
    elif ended == "flood":
        why = "the guest printed without end"
    elif ended == "timeout" and not last:
        why = f"{HANG}nothing on the serial console; it does not start, or has no serial console"
    elif ended == "timeout":
        why = f"{HANG}the agent never answered; last line: {last}"
    elif not last:
        why = f"QEMU ended ({exit_code}) before the kernel said anything"
    else:
        why = f"the guest powered off before its agent was ready; last line: {last}"
    return why


def workload_outcome(
    ended: str, console: str, messages: dict[str, bytes], limit_seconds: float
) -> tuple[RunStatus, str]:
    """Return the status and the reason of a workload whose guest booted."""
    result = messages.get("result", b"").decode("utf-8", "replace").strip()
    if ended == "flood":
        return RunStatus.WORKLOAD_FAILED, "the guest printed without end"
    if ended == "timeout":
        return (
            RunStatus.TIMED_OUT,
            f"no end after {limit_seconds:.0f} s; the workload may never leave its region",
        )
    if not result:
        panic = _PANIC.search(console)
        why = f"panic: {panic[1].strip()}" if panic else "the guest ended without a result"
        if "overflow" in messages:  # of which the result was one
            why = "the guest sent messages without end"
        return RunStatus.WORKLOAD_FAILED, why
    many = messages.get("many-regions", b"").decode("utf-8", "replace")
    at_once = messages.get("marks-at-once", b"").decode("utf-8", "replace")
    if result == "exit 0" and not many and not at_once:
        return RunStatus.OK, ""
    if result.startswith("timeout"):
        return RunStatus.TIMED_OUT, "the workload ran longer than its limit in the guest's own time"
    # Its own words, where it has any, say more than its exit status.
    reported = messages.get("failure", b"").decode("utf-8", "replace").strip()
    if many:
        reported = f"it began more than a run can have, {many}: mark iterations by kdelta_iter()"
    if at_once:
        reported = (
            f"two threads sent marks at once, of {visible_line(at_once)}: one region at a time"
        )
    return RunStatus.WORKLOAD_FAILED, f"{reported} ({result})" if reported else result
