-- The facts of a brief, from the full rows, by the rules of the specification of the brief, "What counts as what".
-- Asked of: mine (project), asked (day, zone, now, previous, then_day), then_mine and then_live (what they
-- were when the previous brief was made; empty where there was none).
-- Local calendar dates: a time of exactly midnight UTC is a date without a time; beyond the calendar there is none.
create function pg_temp.local_day(at timestamptz) returns date stable language sql as $$
  select case when at is null or not isfinite(at) or at < '0001-01-02 00:00Z' or at >= '9999-12-31 00:00Z' then null
              when (at at time zone 'UTC')::time = '00:00' then (at at time zone 'UTC')::date
              else (at at time zone (select zone from asked))::date end
$$;
-- Since an instant, and not later than now; a date without a time: since the instant's day.
create function pg_temp.recent(at timestamptz, since timestamptz) returns boolean stable language sql as $$
  select coalesce(case when (at at time zone 'UTC')::time = '00:00' then
         (at at time zone 'UTC')::date between (since at time zone zone)::date and (now at time zone zone)::date
         else at between since and now end, false)
  from asked
$$;
-- Touched since the previous brief, if that is not further back than seven days, else in the last 24 hours.
create temporary table since as
select case when previous is null or day - then_day > 7 then now - interval '24 hours' else previous end as changed,
       coalesce(previous, now - interval '24 hours') as done
from asked;
create temporary table live as
select project, kind, id, title, state, priority, impact, probability, due_at, start_at, happened_at, touched_at,
       pg_temp.local_day(due_at) as due, pg_temp.local_day(start_at) as start, pg_temp.local_day(happened_at) as happened,
       pg_temp.local_day(touched_at) as touched,
       not coalesce(state in ('done', 'completed', 'achieved', 'abandoned', 'cancelled', 'closed', 'mitigated', 'archived')
                    or (kind = 'output' and state = 'published'), false) as open
from (
  select project_id as project, 'task' as kind, id, title, state_key as state, priority, null as impact,
         null::numeric as probability, due_at, start_at, completed_at as happened_at, updated_at as touched_at
    from onto_tasks where deleted_at is null
  union all select project_id, 'goal', id, name, state_key, null, null, null, target_date, null, completed_at, updated_at
    from onto_goals where deleted_at is null
  union all select project_id, 'plan', id, name, state_key, null, null, null, null, null, null, updated_at
    from onto_plans where deleted_at is null
  union all select project_id, 'milestone', id, title, state_key, null, null, null, due_at, null, completed_at, updated_at
    from onto_milestones where deleted_at is null
  union all select project_id, 'risk', id, title, state_key, null, impact, probability, null, null, null, updated_at
    from onto_risks where deleted_at is null
  union all select project_id, 'decision', id, title, state_key, null, null, null, null, null, decision_at, updated_at
    from onto_decisions where deleted_at is null
  union all select project_id, 'requirement', id, text, null, priority, null, null, null, null, null, updated_at
    from onto_requirements where deleted_at is null
  union all select project_id, 'document', id, title, state_key, null, null, null, null, null, null, updated_at
    from onto_documents where deleted_at is null
  union all select project_id, 'output', id, name, state_key, null, null, null, null, null, null, updated_at
    from onto_outputs where deleted_at is null
  union all select project_id, 'signal', id, payload::text, null, null, null, null, null, null, null, ts
    from onto_signals
  union all select project_id, 'insight', id, title, null, null, null, null, null, null, null, created_at
    from onto_insights
) rows where project in (select project from mine);
create index on live (id);
analyze live;
-- Relations: (a, rel, b), each once, between live entities of one project and the project itself.
create temporary table edge as
select distinct project, case when turned then dst_id else src_id end as a, rel,
       case when turned then src_id else dst_id end as b
from (
  select e.project_id as project, e.src_id, e.dst_id,
         case rel when 'belongs_to_plan' then 'has_task' when 'blocked_by' then 'blocks' when 'depends_on' then 'blocks'
                  when 'supports' then 'supports_goal' when 'achieved_by' then 'supports_goal' else rel end as rel,
         rel in ('belongs_to_plan', 'blocked_by', 'depends_on', 'achieved_by') as turned
  from onto_edges e
  where e.project_id in (select project from mine) and e.src_id <> e.dst_id
    and (e.src_id = e.project_id or exists (select from live l where l.id = e.src_id and l.project = e.project_id))
    and (e.dst_id = e.project_id or exists (select from live l where l.id = e.dst_id and l.project = e.project_id))
) told;
create temporary table tie as select a as one, rel, b as other from edge union select b, rel, a from edge;
create index on tie (one);
analyze tie;
-- Who waits for whom, both of them open; and both of them tasks.
create temporary table waits as
select distinct who, whom from (
  select b as who, a as whom from edge where rel = 'blocks'
  union select a, b from edge where rel = 'requires'
) w join live a on a.id = who and a.open join live b on b.id = whom and b.open;
create temporary table task_waits as
select who, whom from waits join live a on a.id = who and a.kind = 'task' join live b on b.id = whom and b.kind = 'task';
create index on task_waits (who);
analyze task_waits;
create temporary table cycles as
with recursive behind (who, whom) as (
  select who, whom from task_waits union select b.who, w.whom from behind b join task_waits w on w.who = b.whom
)
select who as id from behind where who = whom;
create temporary table frees as
select whom as id, count(*) as n from task_waits w
where (select count(*) from task_waits o where o.who = w.who) = 1 and whom not in (select id from cycles)
group by whom;
-- The tasks that count towards a goal: those that support it or that it has, and its plans' own.
create temporary table goal_task as
with plan_task as (
  select p.id as plan, tie.other as task from live p join tie on tie.one = p.id and tie.rel = 'has_task' where p.kind = 'plan'
), near as (
  select g.id as goal, tie.other, tie.rel from live g join tie on tie.one = g.id where g.kind = 'goal'
)
select distinct goal, t.id as task, t.state in ('done', 'completed') is true as done from (
  select goal, other as task from near where rel in ('supports_goal', 'has_task')
  union all select goal, task from near join plan_task on plan = other where rel in ('supports_goal', 'has_plan')
) told join live t on t.id = told.task and t.kind = 'task';
-- How goals and milestones stand.
create temporary table status as
select id, project, kind,
       case when kind = 'goal' and state = 'draft' then 'draft'
            when due < day then case kind when 'goal' then 'behind' else 'missed' end
            when due <= day + 7 then 'at_risk'
            else case kind when 'goal' then 'on_track' else 'ahead' end end as status
from live, asked where open and kind in ('goal', 'milestone');
-- Every list: the rules, one by one.
create temporary table listed as
select 'overdue' as name, project, id from live, asked where kind = 'task' and open and due < day
union all
select 'today', project, id from live, asked
  where kind = 'task' and open and (due = day or start = day) and not coalesce(due < day, false)
union all
select 'upcoming', project, id from live, asked
  where kind = 'task' and open and (due between day + 1 and day + 7 or start between day + 1 and day + 7)
union all
select 'blocked', project, id from live
  where kind = 'task' and open and (state = 'blocked' or exists (select from task_waits where who = live.id))
union all
select 'unblocking', project, id from live join frees using (id)
union all
select 'in_progress', project, id from live where kind = 'task' and state = 'in_progress'
union all
select 'stale', project, id from live, asked where kind = 'task' and state = 'in_progress' and touched <= day - 7
union all
select 'changed', project, id from live, since where pg_temp.recent(touched_at, changed)
union all
select 'done', project, id from live, since
  where kind = 'task' and state in ('done', 'completed')
    and (pg_temp.recent(happened_at, done)
         or exists (select from then_live t where t.id = live.id and t.kind = 'task' and t.open))
union all
select 'wins', project, id from live, since
  where kind in ('goal', 'milestone') and state in ('done', 'completed', 'achieved') and pg_temp.recent(happened_at, done)
union all
select 'decisions', project, id from live, since where kind = 'decision' and pg_temp.recent(happened_at, done)
union all
select 'goals', project, id from status where kind = 'goal'
union all
select 'milestones', project, id from status join live using (id, project) where status.kind = 'milestone' and due is not null
union all
select 'at_risk', project, id from status where status in ('behind', 'missed', 'at_risk')
union all
select 'risks', project, id from live where kind = 'risk' and open
union all
select 'cycles', project, id from cycles join live using (id)
union all
-- Since the previous brief: of projects that it was about.
select 'newly_overdue', n.project, n.id from live n, asked
  where n.kind = 'task' and n.open and n.due < day and n.project in (select project from then_mine)
    and not exists (select from then_live t where t.id = n.id and t.kind = 'task' and t.open and t.due < then_day)
union all
select 'slipped', n.project, n.id from live n join then_live t using (id, project)
  where n.kind = 'task' and n.open and t.kind = 'task' and t.open and n.due > t.due
union all
select 'new_risks', n.project, n.id from live n
  where n.kind = 'risk' and n.open and n.project in (select project from then_mine)
    and not exists (select from then_live t where t.id = n.id and t.kind = 'risk' and t.open);
insert into listed select 'wins', project, id from listed where name = 'done';
insert into listed select 'newly_done', project, id from listed where name = 'done' and project in (select project from then_mine);
-- What can be done something about today.
insert into listed
select distinct 'candidates', l.project, l.id from listed l
where l.name in ('overdue', 'today', 'upcoming', 'unblocking')
  and not exists (select from listed b where b.name = 'blocked' and b.id = l.id)
union
select 'candidates', project, id from status where kind = 'milestone' and status in ('missed', 'at_risk');
-- What is linked to nothing at all, and goals that no task and no plan is linked to.
insert into listed
select 'loose', project, id from live where not exists (select from tie where one = live.id)
union all
select 'loose_tasks', project, id from live where kind = 'task' and not exists (select from tie where one = live.id)
union all
select 'goals_idle', g.project, g.id from live g
where g.kind = 'goal' and g.open
  and not exists (select from tie join live o on o.id = tie.other and o.kind in ('task', 'plan') where tie.one = g.id);
create index on listed (name, id);
analyze listed;
-- What is said of an entity wherever it stands.
create temporary table said as
select l.id::text as id, l.kind, l.project::text as project_id, l.state, l.priority, l.impact, l.probability::float as probability,
       l.due::text as due, l.happened::text as done_on, case when l.start >= day then l.start::text end as start,
       case when l.open and l.due < day and l.kind in ('task', 'goal', 'milestone') and not (l.kind = 'goal' and l.state = 'draft')
            then day - l.due end as days_late,
       case when exists (select from listed b where b.name = 'blocked' and b.id = l.id) then true end as blocked,
       (select n from frees where frees.id = l.id) as frees,
       nullif((select count(*) from waits where who = l.id), 0) as waits,
       (select status from status where status.id = l.id) as status,
       nullif((select count(*) from goal_task where goal = l.id), 0) as tasks,
       (select count(*) filter (where done) from goal_task where goal = l.id having count(*) > 0) as done,
       case when exists (select from listed s where s.name = 'slipped' and s.id = l.id)
            then (select t.due::text from then_live t where t.id = l.id) end as was
from live l, asked
where l.id in (select id from listed)
