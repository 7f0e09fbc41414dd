# SPDX-License-Identifier: GPL-2.0-or-later
"""The clock: what operations take on a machine, timed by programs that time themselves."""
