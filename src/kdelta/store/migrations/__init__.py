# SPDX-License-Identifier: GPL-2.0-or-later
"""The steps from one shape of the database to the next; alembic takes them."""
