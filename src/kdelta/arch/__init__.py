# SPDX-License-Identifier: GPL-2.0-or-later
"""The architectures of guests: one data file each."""
