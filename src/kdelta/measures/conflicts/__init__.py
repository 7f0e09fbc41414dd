# SPDX-License-Identifier: GPL-2.0-or-later
"""What CPUs contend for, as a measure."""
