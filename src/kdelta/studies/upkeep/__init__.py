# SPDX-License-Identifier: GPL-2.0-or-later
"""Looking after cache and store: what is damaged, what can go, and copies of what cannot be made
again.
"""
