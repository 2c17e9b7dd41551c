"""Runs migrations on the connection it is given. Ours have their own version table: the application may use
Alembic too, and its history is not ours.
"""

from alembic import context

from loaders.tables import OWN

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=OWN,
    version_table="fw_alembic_version",
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
