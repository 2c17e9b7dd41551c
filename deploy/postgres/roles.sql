-- The roles of Foreword, each with the rights that it needs and no more. An administrator runs this in the
-- application's database, in its schema, before the first `migrate` and after every one; as often as one likes:
--
--   psql --set ON_ERROR_STOP=1 --file deploy/postgres/roles.sql
--
--   foreword_migrate   owns fw_* and puts the triggers on onto_*: the one-shot of a deployment
--   foreword_worker    reads onto_*, writes rows of fw_*: workers, relays, beats, an operator's commands. One role for
--                      all, for a relay ends sessions of builders that hang, which only their own role may
--   foreword_app       stands for the application: writes onto_*, says who gets briefs, sees no other table of ours
--
-- A chat process needs no role: it reads Redis. Nobody has a password here; docs/deploy.md says how each gets in.
-- Who puts a trigger on a table must own it. Where the application owns onto_*: `grant its_owner to foreword_migrate`,
-- or migrate as that owner. Where the application uses row-level security: docs/threats.md, "Tenants".

do $$
declare role text;
begin
  foreach role in array array['foreword_migrate', 'foreword_worker', 'foreword_app'] loop
    if not exists (select from pg_roles where rolname = role) then
      execute format('create role %I login nosuperuser nocreatedb nocreaterole', role);
    end if;
  end loop;
end $$;

do $$
declare
  thing record;
  -- What the loader reads, and no other table whose name begins alike.
  read constant text[] := array[
    'onto_actors', 'onto_decisions', 'onto_documents', 'onto_edges', 'onto_goals', 'onto_insights', 'onto_milestones',
    'onto_outputs', 'onto_plans', 'onto_project_members', 'onto_projects', 'onto_requirements', 'onto_risks',
    'onto_signals', 'onto_tasks'];
begin
  execute format('grant connect on database %I to foreword_migrate, foreword_worker, foreword_app', current_database());
  execute format('grant usage on schema %I to foreword_migrate, foreword_worker, foreword_app', current_schema());
  execute format('grant create on schema %I to foreword_migrate', current_schema());
  for thing in
    select c.oid::regclass as name, c.relname, c.relkind, c.relowner from pg_class c
    where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S')
      and (c.relname like 'fw\_%' or c.relname = any(read))
  loop
    if thing.relname = any(read) then
      execute format('grant select on %s to foreword_worker', thing.name);
      execute format('grant select, insert, update, delete on %s to foreword_app', thing.name);
      if not pg_has_role('foreword_migrate', thing.relowner, 'usage') then
        raise warning '% belongs to %: grant % to foreword_migrate, or run `migrate` as %', thing.name,
          thing.relowner::regrole, thing.relowner::regrole, thing.relowner::regrole;
      end if;
    elsif thing.relkind = 'S' then
      execute format('grant usage, select on sequence %s to foreword_worker', thing.name);
    elsif thing.relname = 'fw_alembic_version' then
      execute format('grant select on %s to foreword_worker', thing.name);
    else
      execute format('grant select, insert, update, delete on %s to foreword_worker', thing.name);
      if thing.relname = 'fw_subscriptions' then
        execute format('grant select, insert, update, delete on %s to foreword_app', thing.name);
      end if;
    end if;
  end loop;
end $$;
