# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta: which change to a Linux kernel made it faster or slower, and by exactly how much."""

__version__ = "0.1.0"
