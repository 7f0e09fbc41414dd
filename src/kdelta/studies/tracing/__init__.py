# SPDX-License-Identifier: GPL-2.0-or-later
"""Traced runs replayed under layouts, for all studies of model cycles."""
