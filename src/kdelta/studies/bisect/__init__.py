# SPDX-License-Identifier: GPL-2.0-or-later
"""Which commits between two of a git tree account for the difference between them."""
