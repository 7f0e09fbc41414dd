# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPU file with all tables of the front end."""

from .good_file import GOOD

TABLES = """
[predictor]
base_entries = 4096
entries = 1024
tag_bits = 9
histories = [4, 8, 16, 32]
source = "assumed: as others"

[indirect]
base_entries = 512
entries = 256
tag_bits = 9
histories = [8, 32]
source = "assumed: as others"

[returns]
entries = 16
source = "man section 10"

[btb_second]
entries = 4096
sets = 1024
ways = 4
cycles = 2
source = "man section 11"

[fetch]
miss_cycles = 14
window_bytes = 32
ahead_windows = 12
window_cycles = 1
source = "man section 12"

[op_cache]
sets = 64
ways = 8
window_bytes = 64
source = "man section 13"
"""

PRICES = """
[misses.conditional]
cycles = [12, 20]
calibrated = true
source = "measured: here"

[misses.l1i-exposed]
cycles = [0.5, 1]
calibrated = true
source = "measured: here"
"""

CALIBRATION = """
[calibration]
when = "2026-11-22T04:30:00+00:00"
host = "A core of 3.0 GHz"
programs = 12
relinks = 30
rank_correlation = [0.8, 0.93]
by = "kdelta 0.9"
"""

DECOUPLED = GOOD.replace('"coupled"', '"decoupled"')
WHOLE = DECOUPLED + TABLES + PRICES + CALIBRATION
