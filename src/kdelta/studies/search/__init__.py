# SPDX-License-Identifier: GPL-2.0-or-later
"""What ablate, bisect and series share: measured kernels, ruling out, means."""
