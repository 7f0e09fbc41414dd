# SPDX-License-Identifier: GPL-2.0-or-later
"""The host that kdelta runs on: folders, locks, files, programs, native parts."""
