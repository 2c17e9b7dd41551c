-- What waits for what?
with dependents as (
  select whom, count(*) as n, rank() over (order by count(*) desc) as place from waits group by whom
), top as (
  select *, count(*) over (partition by place) as tied from dependents
), chosen as (
  select *, case when place + tied - 1 > 5 then 6 - place end as slot from top where place <= 5
)
select null, null, 'count', null, 'waited for', count(*)::text from dependents
union all select slot, whom::text, 'number', whom::text, 'needed by', n::text from chosen
union all select c.slot, c.whom::text, 'waits', w.who::text, w.whom::text, null from chosen c join waits w using (whom)
