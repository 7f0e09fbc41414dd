# SPDX-License-Identifier: GPL-2.0-or-later
"""Workloads: one folder each, and the catalogue that loads them."""
