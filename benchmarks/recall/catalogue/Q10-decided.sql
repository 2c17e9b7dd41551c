-- What was decided last?
with decided as (
  select l.id, l.day_due as day, d.outcome, rank() over (order by d.decision_at desc) as place
  from live l join onto_decisions d on d.id = l.id where l.day_due is not null
), top as (
  select *, count(*) over (partition by place) as tied from decided
), chosen as (
  select *, case when place + tied - 1 > 3 then 4 - place end as slot from top where place <= 3
)
select null, null, 'count', 'decision', 'decided', count(*)::text from decided
union all select slot, id::text, 'date', id::text, 'decided', day::text from chosen
union all select slot, id::text, 'beginning', id::text, 'outcome', outcome from chosen
  where btrim(coalesce(outcome, '')) <> ''
