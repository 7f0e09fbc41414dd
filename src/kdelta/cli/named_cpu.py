# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPU that --cpu names; of `host`, which file was taken, on stderr."""

from kdelta.cpus.catalog import HOST, host_cpu, load_cpu, user_path
from kdelta.cpus.cores import HostCPU
from kdelta.cpus.model import CPU
from kdelta.host.command import log_to_stderr


def named_cpu(name: str) -> CPU:
    """Return the CPU of that name, as `load_cpu` does; log which one `host` is."""
    cpu = load_cpu(name)
    if name.partition(",")[0] == HOST:
        log_to_stderr(f"--cpu {HOST}: {host_text(host_cpu())}")
    return cpu


def host_text(found: HostCPU) -> str:
    """Return which file of kdelta's is taken for this machine, and which of the user's is not."""
    others = f"; it has cores of {', '.join(found.others)}, too" if found.others else ""
    path = user_path(HOST)
    own = f"; {path} is not used: give it another name" if path.is_file() else ""
    return f"this machine's core is that of {found.cpu.name}{others}{own}"
