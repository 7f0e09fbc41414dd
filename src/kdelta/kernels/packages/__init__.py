# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels and sources from packages and files."""
