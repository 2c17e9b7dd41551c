-- Where does the project stand?
with p as (select * from onto_projects where id = (select project from asked))
select null, null, 'state', id::text, null, state_key from p where state_key <> ''
union all select null, null, 'word', id::text, 'stage', facet_stage from p where facet_stage <> ''
union all select null, null, 'text', id::text, 'next step', btrim(regexp_replace(next_step_short, '\s+', ' ', 'g')) from p where btrim(coalesce(next_step_short, '')) <> ''
union all select null, null, 'date', id::text, 'start', pg_temp.local_day(start_at)::text from p where start_at is not null
union all select null, null, 'date', id::text, 'end', pg_temp.local_day(end_at)::text from p where end_at is not null
