# SPDX-License-Identifier: GPL-2.0-or-later
"""Which functions, calls and source lines account for counts and differences."""
