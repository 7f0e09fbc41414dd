# SPDX-License-Identifier: GPL-2.0-or-later
"""Kconfig: configs read, changed and explained."""
