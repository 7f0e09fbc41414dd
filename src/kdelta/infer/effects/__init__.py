# SPDX-License-Identifier: GPL-2.0-or-later
"""From counts of perturbed runs to effects on the path, their intervals and verdicts."""
