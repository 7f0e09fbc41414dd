# SPDX-License-Identifier: GPL-2.0-or-later
"""What things cost on a machine, by a clock: kdelta calibrate."""
