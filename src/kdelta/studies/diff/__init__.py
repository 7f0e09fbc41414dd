# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta diff`: what each function gained and lost between two runs."""
