"""The triggers that write the change log, on every table that the loader reads. Each table in a transaction of its
own that waits a fraction of a second for its lock, and tries again: nobody queues behind us.

What was built before may lack what was edited meanwhile, so everything is built anew, as a trickle.

Revision ID: 0004
Revises: 0003
"""

from alembic import context, op

from loaders.watch import unwatch, watch

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.get_context().autocommit_block():
        watch(op.get_bind(), _patience())
    op.execute("UPDATE fw_projects SET refresh_at = now() WHERE entities >= 0")


def downgrade() -> None:
    with op.get_context().autocommit_block():
        unwatch(op.get_bind(), _patience())


def _patience() -> float:
    found: float = context.config.attributes.get("patience", 60.0)
    return found
