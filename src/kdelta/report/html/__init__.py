# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports as one HTML file that opens offline (docs/html.md)."""
