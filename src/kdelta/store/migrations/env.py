# SPDX-License-Identifier: GPL-2.0-or-later
"""What alembic executes to migrate: over the connection that the store hands in."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    # SQLite cannot alter most things in place: alembic copies the table then.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
