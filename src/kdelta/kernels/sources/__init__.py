# SPDX-License-Identifier: GPL-2.0-or-later
"""Source trees at one state: archives, repositories, patches."""
