# SPDX-License-Identifier: GPL-2.0-or-later
"""Stored runs with all that was recorded of them."""
