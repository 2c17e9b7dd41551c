-- Which documents and outputs are still being made or reviewed?
with states(kind, state, usual) as (
  values ('document', 'draft', true), ('document', 'in_review', true), ('document', 'review', false),
         ('output', 'draft', true), ('output', 'in_progress', true), ('output', 'review', false)
), made as (
  select l.id, l.kind, l.state from live l join states using (kind, state)
)
select null, null, 'count', s.kind, s.state, count(m.id)::text
  from states s left join made m using (kind, state) group by s.kind, s.state, s.usual having s.usual or count(m.id) > 0
union all select null, null, 'state', id::text, null, state from made
