# SPDX-License-Identifier: GPL-2.0-or-later
"""One module a question; each composes kernels, guests, machines, counts, effects and the store."""
