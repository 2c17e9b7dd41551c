-- What was finished last?
with finished as (
  select l.id, pg_temp.local_day(c.at) as day, rank() over (order by pg_temp.local_day(c.at) desc) as place
  from live l
  join (
    select id, completed_at as at from onto_tasks
    union all select id, completed_at from onto_goals
    union all select id, completed_at from onto_milestones
  ) c on c.id = l.id
  where not l.open and pg_temp.local_day(c.at) <= (select day from asked)
), top as (
  select *, count(*) over (partition by place) as tied from finished
), chosen as (
  select *, case when place + tied - 1 > 5 then 6 - place end as slot from top where place <= 5
), ends(kind, state) as (values ('task', 'done'), ('goal', 'achieved'), ('milestone', 'completed'))
select null, null, 'count', e.kind, e.state, count(l.id)::text from ends e left join live l using (kind, state) group by e.kind, e.state
union all select slot, id::text, 'date', id::text, 'done', day::text from chosen
