-- What is overdue?
with overdue as (select id, day_due from live where kind = 'task' and open and day_due < (select day from asked))
select null, null, 'count', 'task', 'overdue', count(*)::text from overdue
union all select null, null, 'date', id::text, 'due', day_due::text from overdue
