# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta run --against`: two programs under one kernel."""
