-- What is blocked?
select null, null, 'count', 'task', 'blocked', count(*)::text from blocked
union all select null, null, 'named', id::text, 'blocked', null from blocked
union all select null, null, 'waits', who::text, whom::text, null from waits where who in (select id from blocked)
