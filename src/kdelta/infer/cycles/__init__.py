# SPDX-License-Identifier: GPL-2.0-or-later
"""From events and prices to model cycles, over layouts, and their verdicts."""
