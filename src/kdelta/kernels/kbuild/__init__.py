# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels built from source, and the cache of them."""
