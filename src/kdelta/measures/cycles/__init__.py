# SPDX-License-Identifier: GPL-2.0-or-later
"""Model cycles: traced runs replayed under layouts, judged, and shown."""
