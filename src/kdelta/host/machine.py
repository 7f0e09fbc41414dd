# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine that all runs on."""

import os


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))
