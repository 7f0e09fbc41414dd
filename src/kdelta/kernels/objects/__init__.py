# SPDX-License-Identifier: GPL-2.0-or-later
"""Object files and builds by content: which code depends on what."""
