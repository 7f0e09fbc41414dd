# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta place`: a better order of functions."""
