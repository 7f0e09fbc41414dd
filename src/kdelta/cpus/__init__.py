# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs: caches, TLBs, prices, and paths of the kernel; one TOML each, figures with sources."""

from kdelta.cpus.catalog import DEFAULT_CPU, list_cpus, load_cpu
from kdelta.cpus.model import CPU, Cache

__all__ = ["CPU", "DEFAULT_CPU", "Cache", "list_cpus", "load_cpu"]
