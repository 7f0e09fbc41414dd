# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs by which a clock says what a miss costs: generated, and linked many times."""
