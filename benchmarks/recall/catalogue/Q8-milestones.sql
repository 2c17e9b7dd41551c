-- Which milestones come up?
with ahead as (
  select id, day_due, rank() over (order by day_due) as place from live
  where kind = 'milestone' and open and day_due >= (select day from asked)
), top as (
  select *, count(*) over (partition by place) as tied from ahead
), chosen as (
  select *, case when place + tied - 1 > 3 then 4 - place end as slot from top where place <= 3
)
select null, null, 'count', 'milestone', 'upcoming', count(*)::text from ahead
union all select slot, id::text, 'date', id::text, 'due', day_due::text from chosen
