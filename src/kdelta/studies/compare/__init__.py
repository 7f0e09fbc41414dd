# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta compare`: what other kernels cost more or less than a base."""
