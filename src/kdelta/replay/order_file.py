# SPDX-License-Identifier: GPL-2.0-or-later
"""Symbol ordering files, which relinked kernels are made of: see kernels/build/order_file.py."""

from kdelta.kernels.build.order_file import Order, read_order, write_order

__all__ = ["Order", "read_order", "write_order"]
