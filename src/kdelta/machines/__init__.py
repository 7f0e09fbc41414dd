# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines boot a kernel with a guest image and return what it did; `tcg` is the exact one."""
