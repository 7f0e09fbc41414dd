# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta log`: how figures changed from kernel to kernel in the store."""
