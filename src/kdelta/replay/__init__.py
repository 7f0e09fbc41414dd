# SPDX-License-Identifier: GPL-2.0-or-later
"""Replay: a trace under any layout through caches, and what that costs in misses."""
