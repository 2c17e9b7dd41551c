-- What are the latest signals, and where did they come from?
with heard as (
  select l.id, l.touched as day, s.channel, rank() over (order by s.ts desc) as place
  from live l join onto_signals s on s.id = l.id where l.touched is not null
), top as (
  select *, count(*) over (partition by place) as tied from heard
), chosen as (
  select *, case when place + tied - 1 > 5 then 6 - place end as slot from top where place <= 5
)
select null, null, 'count', 'signal', 'total', count(*)::text from live where kind = 'signal'
union all select slot, id::text, 'date', id::text, 'touched', day::text from chosen
union all select slot, id::text, 'word', id::text, 'channel', channel from chosen where btrim(coalesce(channel, '')) <> ''
