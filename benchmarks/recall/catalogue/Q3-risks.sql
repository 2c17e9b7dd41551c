-- Which are the top risks?
with risk as (
  select r.id, r.impact, r.probability::text as probability,
         rank() over (order by coalesce(array_position(array['low', 'medium', 'high', 'critical'], r.impact), 0) * coalesce(r.probability, 0.5) desc) as place
  from onto_risks r join live l on l.id = r.id and l.open
), top as (
  select *, count(*) over (partition by place) as tied from risk
), chosen as (
  select *, case when place + tied - 1 > 5 then 6 - place end as slot from top where place <= 5
)
select null, null, 'count', 'risk', 'open', count(*)::text from risk
union all select slot, id::text, 'word', id::text, 'impact', impact from chosen where impact is not null
union all select slot, id::text, 'number', id::text, 'probability', probability from chosen where probability is not null
