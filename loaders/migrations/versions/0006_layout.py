"""An index to find bundles of an earlier layout by, each second.

Revision ID: 0006
Revises: 0005
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE INDEX fw_projects_layout ON fw_projects (layout)")


def downgrade() -> None:
    op.execute("DROP INDEX fw_projects_layout")
