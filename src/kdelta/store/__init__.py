# SPDX-License-Identifier: GPL-2.0-or-later
"""Every run in SQL, failed ones included, and blobs by their hash."""
