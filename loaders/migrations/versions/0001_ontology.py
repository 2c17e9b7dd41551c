"""The application's tables, for databases that do not have them.

A database that already has onto_projects belongs to an application: it is adopted as it is, nothing is created
or altered, and kinds without a table are reported as absent.

Revision ID: 0001
Revises:
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

DDL = """
CREATE TABLE onto_actors (
    id UUID NOT NULL,
    kind TEXT NOT NULL,
    user_id UUID,
    name TEXT,
    email TEXT,
    PRIMARY KEY (id),
    CONSTRAINT onto_actors_kind_known CHECK (kind in ('human', 'agent'))
);
CREATE TABLE onto_decisions (
    id UUID NOT NULL,
    project_id UUID NOT NULL,
    type_key TEXT,
    props JSONB DEFAULT '{}'::jsonb,
    created_by UUID,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    title TEXT NOT NULL,
    description TEXT,
    rationale TEXT,
    outcome TEXT,
    decision_at TIMESTAMP WITH TIME ZONE,
    state_key TEXT,
    PRIMARY KEY (id)
);
CREATE INDEX onto_decisions_live ON onto_decisions (project_id) WHERE deleted_at is null;
CREATE TABLE onto_documents (
    id UUID NOT NULL,
    project_id UUID NOT NULL,
    type_key TEXT,
    props JSONB DEFAULT '{}'::jsonb,
    created_by UUID,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    title TEXT NOT NULL,
    description TEXT,
    content TEXT,
    state_key TEXT,
    PRIMARY KEY (id)
);
CREATE INDEX onto_documents_live ON onto_documents (project_id) WHERE deleted_at is null;
CREATE TABLE onto_edges (
    id UUID NOT NULL,
    project_id UUID NOT NULL,
    src_kind TEXT NOT NULL,
    src_id UUID NOT NULL,
    dst_kind TEXT NOT NULL,
    dst_id UUID NOT NULL,
    rel TEXT NOT NULL,
    props JSONB DEFAULT '{}'::jsonb,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX onto_edges_dst_id ON onto_edges (dst_id);
CREATE INDEX onto_edges_project_id ON onto_edges (project_id);
CREATE INDEX onto_edges_src_id ON onto_edges (src_id);
CREATE TABLE onto_goals (
    id UUID NOT NULL,
    project_id UUID NOT NULL,
    type_key TEXT,
    props JSONB DEFAULT '{}'::jsonb,
    created_by UUID,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    name TEXT NOT NULL,
    goal TEXT,
    description TEXT,
    state_key TEXT,
    target_date TIMESTAMP WITH TIME ZONE,
    completed_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id)
);
CREATE INDEX onto_goals_live ON onto_goals (project_id) WHERE deleted_at is null;
CREATE TABLE onto_insights (
    id UUID NOT NULL,
    project_id UUID NOT NULL,
    type_key TEXT,
    props JSONB DEFAULT '{}'::jsonb,
    created_by UUID,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    title TEXT NOT NULL,
    derived_from_signal_id UUID,
    PRIMARY KEY (id)
);
CREATE INDEX onto_insights_live ON onto_insights (project_id);
CREATE TABLE onto_milestones (
    id UUID NOT NULL,
    project_id UUID NOT NULL,
    type_key TEXT,
    props JSONB DEFAULT '{}'::jsonb,
    created_by UUID,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    title TEXT NOT NULL,
    milestone TEXT,
    description TEXT,
    state_key TEXT,
    due_at TIMESTAMP WITH TIME ZONE,
    completed_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id)
);
CREATE INDEX onto_milestones_live ON onto_milestones (project_id) WHERE deleted_at is null;
CREATE TABLE onto_outputs (
    id UUID NOT NULL,
    project_id UUID NOT NULL,
    type_key TEXT,
    props JSONB DEFAULT '{}'::jsonb,
    created_by UUID,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    name TEXT NOT NULL,
    description TEXT,
    state_key TEXT,
    PRIMARY KEY (id)
);
CREATE INDEX onto_outputs_live ON onto_outputs (project_id) WHERE deleted_at is null;
CREATE TABLE onto_plans (
    id UUID NOT NULL,
    project_id UUID NOT NULL,
    type_key TEXT,
    props JSONB DEFAULT '{}'::jsonb,
    created_by UUID,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    name TEXT NOT NULL,
    plan TEXT,
    description TEXT,
    state_key TEXT,
    PRIMARY KEY (id)
);
CREATE INDEX onto_plans_live ON onto_plans (project_id) WHERE deleted_at is null;
CREATE TABLE onto_project_members (
    id UUID NOT NULL,
    project_id UUID NOT NULL,
    actor_id UUID NOT NULL,
    role_key TEXT NOT NULL,
    removed_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id),
    CONSTRAINT onto_project_members_role_key_known CHECK (role_key in ('owner', 'editor', 'viewer'))
);
CREATE INDEX onto_project_members_actor_id ON onto_project_members (actor_id);
CREATE INDEX onto_project_members_project_id ON onto_project_members (project_id);
CREATE TABLE onto_projects (
    id UUID NOT NULL,
    type_key TEXT,
    props JSONB DEFAULT '{}'::jsonb,
    created_by UUID,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    name TEXT NOT NULL,
    description TEXT,
    state_key TEXT,
    facet_context TEXT,
    facet_scale TEXT,
    facet_stage TEXT,
    start_at TIMESTAMP WITH TIME ZONE,
    end_at TIMESTAMP WITH TIME ZONE,
    next_step_short TEXT,
    next_step_long TEXT,
    PRIMARY KEY (id)
);
CREATE TABLE onto_requirements (
    id UUID NOT NULL,
    project_id UUID NOT NULL,
    type_key TEXT,
    props JSONB DEFAULT '{}'::jsonb,
    created_by UUID,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    text TEXT NOT NULL,
    priority INTEGER,
    PRIMARY KEY (id),
    CONSTRAINT onto_requirements_priority_range CHECK (priority between 1 and 5)
);
CREATE INDEX onto_requirements_live ON onto_requirements (project_id) WHERE deleted_at is null;
CREATE TABLE onto_risks (
    id UUID NOT NULL,
    project_id UUID NOT NULL,
    type_key TEXT,
    props JSONB DEFAULT '{}'::jsonb,
    created_by UUID,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    title TEXT NOT NULL,
    content TEXT,
    state_key TEXT,
    impact TEXT,
    probability NUMERIC,
    mitigated_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id),
    CONSTRAINT onto_risks_impact_known CHECK (impact in ('low', 'medium', 'high', 'critical')),
    CONSTRAINT onto_risks_probability_range CHECK (probability between 0 and 1)
);
CREATE INDEX onto_risks_live ON onto_risks (project_id) WHERE deleted_at is null;
CREATE TABLE onto_signals (
    id UUID NOT NULL,
    project_id UUID NOT NULL,
    type_key TEXT,
    props JSONB DEFAULT '{}'::jsonb,
    created_by UUID,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    channel TEXT,
    ts TIMESTAMP WITH TIME ZONE NOT NULL,
    payload JSONB,
    PRIMARY KEY (id)
);
CREATE INDEX onto_signals_live ON onto_signals (project_id);
CREATE TABLE onto_tasks (
    id UUID NOT NULL,
    project_id UUID NOT NULL,
    type_key TEXT,
    props JSONB DEFAULT '{}'::jsonb,
    created_by UUID,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    deleted_at TIMESTAMP WITH TIME ZONE,
    title TEXT NOT NULL,
    description TEXT,
    state_key TEXT,
    priority INTEGER,
    start_at TIMESTAMP WITH TIME ZONE,
    due_at TIMESTAMP WITH TIME ZONE,
    completed_at TIMESTAMP WITH TIME ZONE,
    facet_scale TEXT,
    PRIMARY KEY (id),
    CONSTRAINT onto_tasks_priority_range CHECK (priority between 1 and 5)
);
CREATE INDEX onto_tasks_live ON onto_tasks (project_id) WHERE deleted_at is null;
"""


def upgrade() -> None:
    adopted = op.get_bind().execute(sa.text("select to_regclass('onto_projects') is not null")).scalar()
    if not adopted:
        op.execute(DDL)


def downgrade() -> None:
    """The application's tables are never dropped."""
