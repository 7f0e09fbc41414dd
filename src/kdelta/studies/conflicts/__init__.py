# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta conflicts`: lines of memory that CPUs contend for."""
