# SPDX-License-Identifier: GPL-2.0-or-later
"""The path: instructions that kernels execute, judged by as many runs as a verdict takes."""
