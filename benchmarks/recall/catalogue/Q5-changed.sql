-- What changed since yesterday?
select null, null, 'count', null, 'changed', count(*)::text from changed
union all select null, null, 'named', id::text, 'changed', null from changed where coalesce(state, '') = ''
union all select null, null, 'state', id::text, 'changed', state from changed where state <> ''
