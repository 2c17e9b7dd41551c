-- Which requirements matter most?
with demanded as (
  select l.id, r.priority, rank() over (order by r.priority) as place
  from live l join onto_requirements r on r.id = l.id where r.priority is not null
), top as (
  select *, count(*) over (partition by place) as tied from demanded
), chosen as (
  select *, case when place + tied - 1 > 5 then 6 - place end as slot from top where place <= 5
)
select null, null, 'count', 'requirement', 'total', count(*)::text from live where kind = 'requirement'
union all select slot, id::text, 'number', id::text, 'priority', priority::text from chosen
