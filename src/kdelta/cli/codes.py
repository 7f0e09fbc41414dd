# SPDX-License-Identifier: GPL-2.0-or-later
"""Exit codes of commands."""

import signal

RUNS_FAILED = 1
"""No run of some kernel went well: it is reported, and kept, and there is nothing to go by."""

USAGE = 2
LAB = 3
INTERRUPTED = 128 + signal.SIGINT
