# SPDX-License-Identifier: GPL-2.0-or-later
"""From pairs of boots timed by a clock to verdicts that hold whenever one looks at them."""
