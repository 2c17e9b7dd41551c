-- How far are the goals?
with progress as (
  select g.id, count(*) as total, count(*) filter (where t.state in ('done', 'completed')) as done
  from live g join goal_task on goal = g.id join live t on t.id = task
  where g.kind = 'goal' and g.open group by g.id
)
select null, null, 'count', 'goal', 'with tasks', count(*)::text from progress
union all select null, null, 'number', id::text, 'progress', done || '/' || total from progress
