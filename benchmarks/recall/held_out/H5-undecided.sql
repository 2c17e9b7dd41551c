-- Which decisions are still to be made, and which were put off?
with undecided as (select id, state from live where kind = 'decision' and state in ('pending', 'deferred'))
select null, null, 'count', 'decision', s.state, count(u.id)::text
  from (values ('pending'), ('deferred')) s(state) left join undecided u using (state) group by s.state
union all select null, null, 'state', id::text, null, state from undecided
