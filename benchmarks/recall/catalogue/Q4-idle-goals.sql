-- Which goals have nothing working towards them?
select null, null, 'count', 'goal', 'idle', count(*)::text from idle
union all select null, null, 'named', id::text, 'idle', null from idle
