# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta clock judge`: which of two kernels was slower by the clock of a machine."""
