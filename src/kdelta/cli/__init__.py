# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: arguments -> request -> study -> report -> exit code. Nothing imports it."""
