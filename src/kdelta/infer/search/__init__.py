# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernels to build next, and what their runs show: options, commits, patches."""
