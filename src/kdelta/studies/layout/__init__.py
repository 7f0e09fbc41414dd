# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta layout`: how much depends on where the linker put the code."""
