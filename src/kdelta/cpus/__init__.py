# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs: caches, TLBs and latencies, one data file each, every figure with its source."""
