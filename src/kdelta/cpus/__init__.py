# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs: caches, TLBs, prices and the kernel's paths, one TOML each, every figure with its source."""

from kdelta.cpus.catalog import DEFAULT_CPU, list_cpus, load_cpu
from kdelta.cpus.model import CPU, Cache

__all__ = ["CPU", "DEFAULT_CPU", "Cache", "list_cpus", "load_cpu"]
