"""The change log, the functions that write it, and what the relay keeps about each project. No trigger yet: those
are a step of their own (0004), because they touch the application's tables.

Functions run as their owner, so that the application needs no right on our tables; therefore every name in them is
qualified, and nobody else may make a trigger of them. They take no lock that another edit waits for, and read nothing but the statement's own rows.

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

DDL = """
CREATE TABLE fw_changes (
    project_id UUID NOT NULL,
    txid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    table_name TEXT NOT NULL,
    op CHAR(1) NOT NULL,
    rows BIGINT NOT NULL,
    row_ids UUID[],
    CONSTRAINT fw_changes_op_known CHECK (op in ('I', 'U', 'D', 'T', 'E'))
);
CREATE INDEX fw_changes_project_id ON fw_changes (project_id, txid);
ALTER TABLE fw_changes REPLICA IDENTITY FULL;
ALTER TABLE fw_changes SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000);
COMMENT ON TABLE fw_changes IS 'What bundles do not hold yet: a row per edited project and statement, written inside the edit.';
ALTER TABLE fw_projects
    ADD COLUMN tenant TEXT,
    ADD COLUMN lane TEXT DEFAULT '' NOT NULL,
    ADD COLUMN sends INTEGER DEFAULT 0 NOT NULL,
    ADD COLUMN attempts INTEGER DEFAULT 0 NOT NULL,
    ADD COLUMN tried TEXT DEFAULT '' NOT NULL,
    ADD COLUMN builder INTEGER,
    ADD COLUMN begun_at TIMESTAMP WITH TIME ZONE,
    ADD COLUMN quiet_until TIMESTAMP WITH TIME ZONE DEFAULT '-infinity' NOT NULL,
    ADD COLUMN pace INTEGER DEFAULT 0 NOT NULL,
    ADD COLUMN parked_at TIMESTAMP WITH TIME ZONE,
    ADD COLUMN valid_until TIMESTAMP WITH TIME ZONE,
    ADD COLUMN refresh_at TIMESTAMP WITH TIME ZONE,
    ADD COLUMN incarnation TEXT DEFAULT '' NOT NULL,
    ADD COLUMN layout INTEGER DEFAULT 0 NOT NULL;
CREATE INDEX fw_projects_busy ON fw_projects (project_id) WHERE requested > finished or sends > 0 or attempts > 0;
CREATE INDEX fw_projects_refresh_at ON fw_projects (refresh_at);
CREATE INDEX fw_projects_incarnation ON fw_projects (incarnation);
CREATE TABLE fw_leader (
    one BOOLEAN DEFAULT true NOT NULL,
    relay TEXT NOT NULL,
    until TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (one),
    CONSTRAINT fw_leader_single CHECK (one)
);
COMMENT ON TABLE fw_leader IS 'The relay that leads, and until when. An economy: two that lead at once do no harm.';
INSERT INTO fw_facts (name, value) VALUES ('paused', 0);
UPDATE fw_projects SET entities = -1 WHERE snapshot = 'gone';
"""

# What the transition tables hold, by the kind of table: (project, id) of each row.
ROWS = {
    "rows": "select project_id, id from {of}",
    "unnamed": "select project_id, null::uuid as id from {of}",
    "project": "select id as project_id, id from {of}",
    # An actor belongs to the projects that it is a member of.
    "actor": "select m.project_id, a.id from {of} a join {schema}.onto_project_members m"
    " on m.actor_id operator(pg_catalog.=) a.id",
}
LOG = """insert into {schema}.fw_changes (project_id, table_name, op, rows, row_ids)
  select e.project_id, tg_table_name, '{letter}', pg_catalog.count(*), pg_catalog.array_agg(e.id)
  from ({rows}) e where e.project_id is not null group by e.project_id;"""

# A row that moves touches the project it leaves as well. Rows are compared by project only, and not one by one: that
# would cost an update of a thousand rows a third.
LEFT = """
  insert into {schema}.fw_changes (project_id, table_name, op, rows)
  select e.project_id, tg_table_name, 'U', 0
  from (select project_id from ({old}) o except select project_id from ({new}) n) e where e.project_id is not null;"""

OPERATIONS = {
    "insert": LOG.format(schema="{schema}", letter="I", rows="{new}"),
    "update": LOG.format(schema="{schema}", letter="U", rows="{new}") + LEFT,
    "delete": LOG.format(schema="{schema}", letter="D", rows="{old}"),
}
FUNCTION = """
CREATE FUNCTION {schema}.fw_log_{operation}_{shape}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
begin
  {guard}{statements}
  return null;
end $$;
REVOKE EXECUTE ON FUNCTION {schema}.fw_log_{operation}_{shape}() FROM PUBLIC;
"""
# The application may drop its table of members; its actors are written to all the same.
GUARD = "if pg_catalog.to_regclass('{schema}.onto_project_members') is null then return null; end if;\n  "

TOKEN = """
CREATE FUNCTION {schema}.fw_token() RETURNS text LANGUAGE sql SECURITY DEFINER AS $$
  select pg_catalog.concat(f.value, ':', pg_catalog.pg_current_xact_id())
  from {schema}.fw_facts f where f.name operator(pg_catalog.=) 'epoch'
$$;
COMMENT ON FUNCTION {schema}.fw_token IS 'Of the current transaction: which bundles contain it is told from it.';
"""

# Triggers of one table; '' or why it cannot have any. Statement triggers, so that an update of ten thousand rows is
# one pass; always enabled, so that a replica role is seen as well. Not seen: what is written to a partition directly,
# what logical replication applies, and a restore with triggers disabled.
WATCH = """
CREATE FUNCTION {schema}.fw_watch(watched regclass) RETURNS text LANGUAGE plpgsql AS $watch$
declare
  name text; found char; shape text;
  operations constant text[] := array['insert', 'update', 'delete', 'truncate'];
  tables constant text[] := array['referencing new table as fw_new', 'referencing old table as fw_old new table as fw_new',
                                  'referencing old table as fw_old', ''];
begin
  select c.relname, c.relkind into name, found from pg_catalog.pg_class c where c.oid = watched;
  if found not in ('r', 'p') then return 'it is no table'; end if;
  select case when name in ('onto_projects', 'onto_actors') and not coalesce(bool_or(a.attname = 'id'), false) then null
              when name = 'onto_projects' then 'project' when name = 'onto_actors' then 'actor'
              when not coalesce(bool_or(a.attname = 'project_id'), false) then null
              when bool_or(a.attname = 'id') then 'rows' else 'unnamed' end
    into shape from pg_catalog.pg_attribute a
    where a.attrelid = watched and a.attnum > 0 and not a.attisdropped and a.atttypid = 'uuid'::regtype;
  if shape is null then return 'it has no column project_id (or id) of type uuid'; end if;
  if shape = 'actor' and (select count(*) from pg_catalog.pg_attribute a
      where a.attrelid = to_regclass('{schema}.onto_project_members') and a.attname in ('project_id', 'actor_id')
        and a.atttypid = 'uuid'::regtype) < 2 then return 'there is no table of members to go by'; end if;
  for i in 1..4 loop
    execute format('create or replace trigger fw_%1$s %2$s %1$s on %3$s %4$s for each statement execute function %5$s',
      operations[i], case when i = 4 then 'before' else 'after' end, watched, tables[i],
      case when i = 4 then '{schema}.fw_log_truncate()' else format('{schema}.fw_log_%s_%s()', operations[i], shape) end);
    execute format('alter table %s enable always trigger fw_%s', watched, operations[i]);
  end loop;
  return '';
end $watch$;
CREATE FUNCTION {schema}.fw_unwatch(watched regclass) RETURNS void LANGUAGE plpgsql AS $unwatch$
declare operation text;
begin
  foreach operation in array array['insert', 'update', 'delete', 'truncate'] loop
    execute format('drop trigger if exists fw_%s on %s', operation, watched);
  end loop;
end $unwatch$;
"""

# Has no transition table, and may take ends of edges from any project: it touches all that were ever built. Those that
# were not are built anyway.
TRUNCATE = """
CREATE FUNCTION {schema}.fw_log_truncate() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
begin
  insert into {schema}.fw_changes (project_id, table_name, op, rows)
  select p.project_id, tg_table_name, 'T', 0 from {schema}.fw_projects p;
  return null;
end $$;
REVOKE EXECUTE ON FUNCTION {schema}.fw_log_truncate() FROM PUBLIC;
"""


def upgrade() -> None:
    schema = op.get_bind().execute(sa.text("select quote_ident(current_schema())")).scalar_one()
    op.execute(DDL)
    for shape, rows in ROWS.items():
        old, new = (rows.format(of=of, schema=schema) for of in ("fw_old", "fw_new"))
        for operation, statements in OPERATIONS.items():
            written = statements.format(schema=schema, old=old, new=new)
            guard = GUARD.format(schema=schema) if shape == "actor" else ""
            made = FUNCTION.format(
                schema=schema, operation=operation, shape=shape, statements=written, guard=guard
            )
            op.execute(sa.text(made.replace(":", r"\:")))
    for made in (TRUNCATE, TOKEN, WATCH):
        op.execute(sa.text(made.format(schema=schema).replace(":", r"\:")))


def downgrade() -> None:
    op.execute("DELETE FROM fw_facts WHERE name = 'paused'")
    op.execute("DROP FUNCTION fw_watch, fw_unwatch, fw_token, fw_log_truncate")
    op.execute(f"DROP FUNCTION {', '.join(f'fw_log_{o}_{s}' for s in ROWS for o in OPERATIONS)}")
    op.execute("DROP TABLE fw_leader, fw_changes")
    op.execute("DROP INDEX fw_projects_busy, fw_projects_refresh_at, fw_projects_incarnation")
    for column in ADDED:
        op.execute(f"ALTER TABLE fw_projects DROP COLUMN {column}")


ADDED = (
    *("tenant", "lane", "sends", "attempts", "tried", "builder", "begun_at", "quiet_until", "pace", "parked_at"),
    *("valid_until", "refresh_at", "incarnation", "layout"),
)
