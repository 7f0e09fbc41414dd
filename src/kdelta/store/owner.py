# SPDX-License-Identifier: GPL-2.0-or-later
"""The process that makes a run, by a name that no other process ever has."""

from pathlib import Path


def is_alive(owner: str) -> bool:
    """Whether the process of that name is still there."""
    pid = owner.partition(" ")[2].partition(" ")[0]
    return pid.isdigit() and process_name(int(pid)) == owner


def process_name(pid: int) -> str:
    """What names a process among all that ever run on this host."""
    return f"{_boot()} {pid} {_start_ticks(pid)}"


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return "-"


def _start_ticks(pid: int) -> str:
    """When a process started, in ticks since boot: field 22 of proc(5)'s stat."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return "-"
    # The second field is the program's name in parentheses, which may hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else "-"
