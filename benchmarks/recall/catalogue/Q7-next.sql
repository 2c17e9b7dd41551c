-- What is next?
with free as (
  select t.id, t.day_due, t.state, rank() over (order by t.day_due) as place from live t
  where t.kind = 'task' and t.open and t.day_due is not null and t.id not in (select id from blocked)
), top as (
  select *, count(*) over (partition by place) as tied from free
), chosen as (
  select *, case when place + tied - 1 > 5 then 6 - place end as slot from top where place <= 5
)
select null, null, 'count', 'task', 'dated', count(*)::text from free
union all select slot, id::text, 'date', id::text, 'due', day_due::text from chosen
union all select slot, id::text, 'state', id::text, null, state from chosen where state <> ''
