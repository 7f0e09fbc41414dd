# SPDX-License-Identifier: GPL-2.0-or-later
"""Effects and runs as text that fits a mail, and as JSON with a versioned schema."""
