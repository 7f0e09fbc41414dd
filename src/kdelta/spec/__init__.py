# SPDX-License-Identifier: GPL-2.0-or-later
"""What the user asked for: frozen types and their text forms; no I/O."""
