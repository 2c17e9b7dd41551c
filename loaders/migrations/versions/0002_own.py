"""Foreword's own tables: handles, the state of each project, single facts.

Revision ID: 0002
Revises: 0001
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

DDL = """
CREATE SEQUENCE fw_generation;
CREATE SEQUENCE fw_request;
CREATE SEQUENCE fw_project_number;
CREATE TABLE fw_facts (
    name TEXT NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (name)
);
COMMENT ON TABLE fw_facts IS 'Single numbers: epoch rises when the database was restored to an earlier time.';
CREATE TABLE fw_handles (
    project_id UUID NOT NULL,
    entity_id UUID NOT NULL,
    kind TEXT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (project_id, entity_id),
    UNIQUE (project_id, kind, number)
);
COMMENT ON TABLE fw_handles IS 'Short names of entities. Rows are never deleted: a number is never used again.';
CREATE TABLE fw_projects (
    project_id UUID NOT NULL,
    requested BIGINT DEFAULT 0 NOT NULL,
    finished BIGINT DEFAULT 0 NOT NULL,
    generation BIGINT DEFAULT 0 NOT NULL,
    snapshot TEXT DEFAULT '' NOT NULL,
    entities INTEGER DEFAULT 0 NOT NULL,
    built_at TIMESTAMP WITH TIME ZONE,
    error TEXT,
    PRIMARY KEY (project_id)
);
COMMENT ON TABLE fw_projects IS 'One row per project: the last request, the last request answered, the last build, its error.';
INSERT INTO fw_facts (name, value) VALUES ('epoch', 1);
"""


def upgrade() -> None:
    op.execute(DDL)


def downgrade() -> None:
    op.execute(
        "DROP TABLE fw_projects, fw_handles, fw_facts;"
        "DROP SEQUENCE fw_project_number, fw_request, fw_generation;"
    )
