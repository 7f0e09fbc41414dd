# SPDX-License-Identifier: GPL-2.0-or-later
"""The replay of a CPU's front end: experimental, and off unless `--front-end` asks for it."""
