# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPU that --cpu names; of `host` without a calibration, which file was taken, on stderr."""

from kdelta.cli.output import log
from kdelta.cpus.catalog import HOST, load_cpu, uncalibrated_host, user_path
from kdelta.cpus.cores import HostCPU
from kdelta.cpus.model import CPU


def named_cpu(name: str) -> CPU:
    """Return the CPU of that name, as `load_cpu` does. Says so where it is the file of a core of
    this machine that was not calibrated.
    """
    cpu = load_cpu(name)
    if name.partition(",")[0] == HOST and not user_path(HOST).is_file():
        log(f"--cpu {HOST}: {host_text(uncalibrated_host())}")
    return cpu


def host_text(found: HostCPU) -> str:
    """Return which file of kdelta's is taken for this machine, and what would measure it."""
    others = f"; it has cores of {', '.join(found.others)}, too" if found.others else ""
    return (
        f"this machine's core is that of {found.cpu.name}, whose prices are not measured: "
        f"kdelta calibrate measures them here{others}"
    )
