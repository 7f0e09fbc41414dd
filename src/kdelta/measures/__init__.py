# SPDX-License-Identifier: GPL-2.0-or-later
"""What a change of a kernel can cost: a folder for each measure."""
