# SPDX-License-Identifier: GPL-2.0-or-later
"""Which of the options that differ between two configs account for the difference between them."""
