# SPDX-License-Identifier: GPL-2.0-or-later
"""Times of programs by a machine's clock: here, over SSH, or from a bundle that was run by hand."""
