-- What is not connected?
with kinds(kind) as (values ('task'), ('goal'), ('plan'), ('milestone'), ('risk'), ('decision'), ('requirement'), ('document'), ('output'), ('signal'), ('insight')),
coverage as (
  select k.kind, count(l.id) as total, count(u.id) as unlinked
  from kinds k left join live l using (kind) left join unlinked u on u.id = l.id group by k.kind
)
select null, null, 'count', null, 'unlinked', sum(unlinked)::text from coverage
union all select null, null, 'count', kind, 'total', total::text from coverage
union all select null, null, 'count', kind, 'direct', (total - unlinked)::text from coverage
union all select null, null, 'count', kind, 'unlinked', unlinked::text from coverage
