# SPDX-License-Identifier: GPL-2.0-or-later
"""From a kernel spec to a kernel that can boot."""
