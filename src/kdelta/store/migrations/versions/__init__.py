# SPDX-License-Identifier: GPL-2.0-or-later
"""One module a step, in the order of their down_revision."""
