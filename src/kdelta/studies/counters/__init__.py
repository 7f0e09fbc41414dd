# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta clock check --counts`: whether a CPU retires what kdelta counts."""
