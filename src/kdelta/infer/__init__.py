# SPDX-License-Identifier: GPL-2.0-or-later
"""Pure functions from what runs counted to effects and verdicts; no I/O."""
