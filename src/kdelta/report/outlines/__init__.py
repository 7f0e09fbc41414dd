# SPDX-License-Identifier: GPL-2.0-or-later
"""Outlines of reports: a module for kinds that are alike; `kinds` chooses."""
