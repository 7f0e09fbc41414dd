# SPDX-License-Identifier: GPL-2.0-or-later
"""Prices of misses from timed and replayed links of programs."""
