# SPDX-License-Identifier: GPL-2.0-or-later
"""What each patch of a series does, which of them it takes, and a branch of those that are kept."""
