# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta profile`: which functions, calls and lines executed what."""
