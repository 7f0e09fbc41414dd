# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta gate`: yes or no, for CI and `git bisect run`."""
