# SPDX-License-Identifier: GPL-2.0-or-later
"""Which changes can reach executed code, without building them."""
