-- Which open plan works towards which open goal?
with serving as (
  select distinct p.id as plan, g.id as goal
  from edge e
  join live p on p.id in (e.a, e.b) and p.kind = 'plan' and p.open
  join live g on g.id in (e.a, e.b) and g.kind = 'goal' and g.open
  where e.rel in ('supports_goal', 'has_plan')
)
select null, null, 'count', 'plan', 'with goals', count(distinct plan)::text from serving
union all select null, null, 'linked', plan::text, goal::text, null from serving
