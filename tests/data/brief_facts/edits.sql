-- A day's work, and what nobody would call work: times that are none, of every kind. Asked of: asked (now, day, round).
-- Who is edited follows from the id and the round, so that a red run is red again.
create function pg_temp.turn(id uuid, of int, salt text default '') returns int stable language sql as $$
  select (('x' || substr(md5(id::text || round::text || salt), 1, 7))::bit(28)::int) % of from asked
$$;
update onto_tasks set state_key = 'done', updated_at = now,
  completed_at = case pg_temp.turn(id, 6, 'when')
    when 0 then now when 1 then now - interval '5 hours' when 2 then null when 3 then day::timestamp at time zone 'UTC'
    when 4 then now + interval '3 hours' else 'infinity' end
from asked where state_key <> 'done' and pg_temp.turn(id, 6) = 0;
update onto_tasks set state_key = 'in_progress', completed_at = null, updated_at = now - interval '30 minutes'
from asked where state_key = 'done' and pg_temp.turn(id, 9) = 0;
update onto_tasks set due_at = case pg_temp.turn(id, 8, 'when')
    when 0 then due_at + interval '3 days' when 1 then due_at - interval '9 days' when 2 then null
    when 3 then (day - 1)::timestamp at time zone 'UTC' when 4 then (day + 7)::timestamp at time zone 'UTC'
    when 5 then (day + 1)::timestamp at time zone zone - interval '1 minute'
    when 6 then day::timestamp at time zone zone + interval '30 seconds' else now + interval '2 hours' end
from asked where pg_temp.turn(id, 4, 'due') = 0;
update onto_tasks set due_at = '-infinity' where id = (select min(id::text)::uuid from onto_tasks);
update onto_tasks set due_at = '0044-03-15 BC' where id = (select max(id::text)::uuid from onto_tasks);
update onto_tasks set start_at = (day + pg_temp.turn(id, 10, 'when') - 1)::timestamp at time zone 'UTC'
from asked where pg_temp.turn(id, 9, 'start') = 0;
update onto_tasks set state_key = 'blocked', updated_at = now + interval '1 day'
from asked where state_key = 'todo' and pg_temp.turn(id, 11) = 0;
update onto_tasks set state_key = 'cancelled', updated_at = now
from asked where state_key = 'todo' and pg_temp.turn(id, 8, 'cancelled') = 0;
update onto_tasks set deleted_at = now from asked where pg_temp.turn(id, 40, 'gone') = 0;
update onto_goals set target_date = (day + pg_temp.turn(id, 21, 'when') - 6)::timestamp at time zone 'UTC'
from asked where pg_temp.turn(id, 3) = 0;
update onto_goals set state_key = 'achieved', completed_at = now - interval '1 hour', updated_at = now
from asked where pg_temp.turn(id, 9, 'achieved') = 0;
update onto_milestones set due_at = (day + pg_temp.turn(id, 21, 'when') - 6)::timestamp at time zone 'UTC'
from asked where pg_temp.turn(id, 3) = 0;
update onto_milestones set state_key = 'completed', completed_at = day::timestamp at time zone 'UTC'
from asked where pg_temp.turn(id, 9, 'reached') = 0;
update onto_risks set state_key = case when state_key = 'identified' then 'mitigated' else 'identified' end, updated_at = now
from asked where pg_temp.turn(id, 7) = 0;
insert into onto_risks (id, project_id, title, state_key, impact, created_at, updated_at)
select gen_random_uuid(), id, 'A risk that is new', 'identified', 'high', now, now from onto_projects, asked;
update onto_decisions set decision_at = now - interval '2 hours' from asked where pg_temp.turn(id, 9) = 0;
-- Waits of every kind, circles among them.
insert into onto_edges (id, project_id, src_kind, src_id, dst_kind, dst_id, rel)
select gen_random_uuid(), a.project_id, 'task', a.id, 'task', b.id, (array['depends_on', 'blocks', 'requires', 'blocked_by'])[1 + pg_temp.turn(b.id, 4)]
from onto_tasks a, lateral (
  select id from onto_tasks b where b.project_id = a.project_id and b.id <> a.id order by md5(b.id::text || a.id::text) limit 1
) b where pg_temp.turn(a.id, 5, 'waits') = 0
