-- Local calendar dates: a time of exactly midnight UTC is a date without a time.
create function pg_temp.local_day(at timestamptz) returns date stable language sql as $$
  select case when at is null or not isfinite(at) then null
              when (at at time zone 'UTC')::time = '00:00' then (at at time zone 'UTC')::date
              else (at at time zone (select zone from asked))::date end
$$;
-- What there is. Open is what is not finished; a state that nobody knows is open.
create temporary table live as
select kind, id, title, state, day_due, touched,
       not coalesce(state in ('done', 'completed', 'achieved', 'abandoned', 'cancelled', 'closed', 'mitigated', 'archived')
                    or (kind = 'output' and state = 'published'), false) as open
from (
  select 'task' as kind, id, title, state_key as state, pg_temp.local_day(due_at) as day_due, pg_temp.local_day(updated_at) as touched
    from onto_tasks where project_id = (select project from asked) and deleted_at is null
  union all select 'goal', id, name, state_key, pg_temp.local_day(target_date), pg_temp.local_day(updated_at)
    from onto_goals where project_id = (select project from asked) and deleted_at is null
  union all select 'plan', id, name, state_key, null, pg_temp.local_day(updated_at)
    from onto_plans where project_id = (select project from asked) and deleted_at is null
  union all select 'milestone', id, title, state_key, pg_temp.local_day(due_at), pg_temp.local_day(updated_at)
    from onto_milestones where project_id = (select project from asked) and deleted_at is null
  union all select 'risk', id, title, state_key, null, pg_temp.local_day(updated_at)
    from onto_risks where project_id = (select project from asked) and deleted_at is null
  union all select 'decision', id, title, state_key, pg_temp.local_day(decision_at), pg_temp.local_day(updated_at)
    from onto_decisions where project_id = (select project from asked) and deleted_at is null
  union all select 'requirement', id, text, null, null, pg_temp.local_day(updated_at)
    from onto_requirements where project_id = (select project from asked) and deleted_at is null
  union all select 'document', id, title, state_key, null, pg_temp.local_day(updated_at)
    from onto_documents where project_id = (select project from asked) and deleted_at is null
  union all select 'output', id, name, state_key, null, pg_temp.local_day(updated_at)
    from onto_outputs where project_id = (select project from asked) and deleted_at is null
  union all select 'signal', id, coalesce(payload->>'summary', payload::text), null, null, pg_temp.local_day(ts)
    from onto_signals where project_id = (select project from asked)
  union all select 'insight', id, title, null, null, pg_temp.local_day(created_at)
    from onto_insights where project_id = (select project from asked)
) rows;
create index on live (id);
analyze live;
-- Relations as one reads them: (a, rel, b), each once, between live entities of the project and the project itself.
create temporary table edge as
select distinct case when turned then dst_id else src_id end as a, rel,
       case when turned then src_id else dst_id end as b
from (
  select e.src_id, e.dst_id,
         case rel when 'belongs_to_plan' then 'has_task' when 'blocked_by' then 'blocks' when 'depends_on' then 'blocks'
                  when 'supports' then 'supports_goal' when 'achieved_by' then 'supports_goal' else rel end as rel,
         rel in ('belongs_to_plan', 'blocked_by', 'depends_on', 'achieved_by') as turned
  from onto_edges e
  where e.project_id = (select project from asked) and e.src_id <> e.dst_id
    and (e.src_id in (select id from live) or e.src_id = (select project from asked))
    and (e.dst_id in (select id from live) or e.dst_id = (select project from asked))
) told;
analyze edge;
-- The same from both ends.
create temporary table tie as select a as one, rel, b as other from edge union select b, rel, a from edge;
create index on tie (one);
analyze tie;
-- Who waits for whom, both of them open.
create temporary table waits as
select distinct who, whom from (
  select b as who, a as whom from edge where rel = 'blocks'
  union all select a, b from edge where rel = 'requires'
) w
where who in (select id from live where open) and whom in (select id from live where open);
create index on waits (who);
analyze waits;
-- Open tasks that say so themselves, or wait for an open task.
create temporary table blocked as
select t.id from live t
where t.kind = 'task' and t.open
  and (t.state = 'blocked' or exists (select from waits w join live x on x.id = w.whom and x.kind = 'task' where w.who = t.id));
-- Open goals that no task and no plan is linked to.
create temporary table idle as
select g.id from live g
where g.kind = 'goal' and g.open
  and not exists (select from tie join live o on o.id = tie.other and o.kind in ('task', 'plan') where tie.one = g.id);
-- Touched on the day or the day before.
create temporary table changed as
select id, state from live where touched between (select day from asked) - 1 and (select day from asked);
-- No edge to the project's row.
create temporary table unlinked as
select id from live where not exists (select from tie where tie.one = live.id and tie.other = (select project from asked));
-- The tasks that count towards a goal or a plan: a plan's own; a goal's own, and those of its plans.
create temporary table work_task as
with plan_task as (
  select p.id as plan, tie.other as task from live p join tie on tie.one = p.id and tie.rel = 'has_task' where p.kind = 'plan'
), near as (
  select g.id as goal, tie.other, tie.rel from live g join tie on tie.one = g.id where g.kind = 'goal'
)
select distinct whose, task from (
  select plan as whose, task from plan_task
  union all select goal, other from near where rel in ('supports_goal', 'has_task')
  union all select goal, task from near join plan_task on plan = other where rel in ('supports_goal', 'has_plan')
) told
where task in (select id from live where kind = 'task');
create temporary view goal_task as
select whose as goal, task from work_task where whose in (select id from live where kind = 'goal')
