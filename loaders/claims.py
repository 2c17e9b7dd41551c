"""What a relay does in the database: find the projects that are due, and claim them for a builder.

Every statement stands for itself: a relay that dies, or is paused, between two of them has done no harm, and two
that lead at once claim different projects. Times are compared by the database's clock only, and one that lies
further ahead than anything ever set is taken for past: the clock was put back.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from psycopg import errors

from foreword.stamp import SCHEMA
from loaders.catalog import Catalog
from loaders.connection import Connection, by_index, mapped
from loaders.ledger import LOCK_CLASS, MOST_ATTEMPTS

FIRST = "00000000-0000-0000-0000-000000000000"
"""No project's id is less; it may be the id of one."""

EDITS, SWEEP = "edits", "sweep"
"""Lanes: somebody edited, or waits; what is to be built again though nobody does."""

THE_SWEEP, EVERYTHING = 1, 2
"""What the switch pauses."""

LEASE_SECONDS = 1
"""For a message to reach a builder, doubled with every attempt: a build that died is not tried again at once."""

BUILD_SECONDS = 20
"""For a build, doubled with every attempt; beyond it the session that holds the project's lock is ended."""

LONGEST_SECONDS = 600
"""Longer than anything below waits: what lies further ahead than this was set by a clock that went wrong."""

PACE_MILLISECONDS, SLOWEST_MILLISECONDS = 100, 1500
"""After a build, the pause before the next of the same project: so many edits make few builds. Doubled as long as
edits come within it; one that comes after it is built at once."""

LEADER_SECONDS = 3

PAGE = 2000
"""Dirty projects looked at in one round. Where there are more, the next round goes on from the last."""

# One page of dirty projects, each with its oldest edit: a jump over the index for each, so that neither many
# edits of one project nor very many projects make it slow. The next page begins with the last project of this
# one.
_DIRTY = """
with recursive dirty as (
  (select project_id, at from fw_changes where project_id >= %(start)s::uuid order by project_id, txid limit 1)
  union all
  select next.project_id, next.at from dirty, lateral (
    select c.project_id, c.at from fw_changes c where c.project_id > dirty.project_id
    order by c.project_id, c.txid limit 1) next)
select project_id, at from dirty limit %(page)s
"""

# Due for an edit or a request. A request is as old as the newest edit.
_EDITED = """
  select project_id, min(since) as since from (
    select project_id, since from dirty
    union all (select project_id, now() from fw_projects where requested > finished order by project_id limit
    {page})) either
  group by project_id"""

# Due by the calendar, by age, or because Redis or the layout is another.
_REFRESHED = """
  select project_id, refresh_at as since from fw_projects
  where refresh_at <= now() and parked_at is null
    and not (quiet_until > now() and quiet_until < now() + interval '{longest} s')
  order by refresh_at limit 200"""

# A project that is seen for the first time gets its row, and is claimed in the next round. Of those due the ones
# of the tenant with the fewest messages under way come first, so that nobody's bulk delays another's edit, and
# among those what was sent and not begun. Under way are those whose lease goes on. A parked project comes back
# for an edit that its last attempt could not see: none is older than the oldest that was open then, so that the
# rest, which stays in the log, is not gone through. Each project is looked up by its id, in forms that leave plans
# no choice: one that was made while there were few projects would read all of them, once for each that is dirty.
_CLAIM = """
with dirty as materialized (
  select project_id, since from unnest(%(dirty)s::uuid[], %(since)s::timestamptz[]) as given(project_id, since)),
adopted as (
  insert into fw_projects (project_id, tenant)
  select project_id, {tenant} from dirty d
  where (select p.project_id from fw_projects p where p.project_id = d.project_id) is null
  on conflict do nothing),
held as materialized ({held}),
due as (
  select p.project_id, p.tenant, p.sends, p.begun_at, d.since
  from ({due}) d, lateral (
    select p.project_id, p.tenant, p.sends, p.begun_at from fw_projects p
    where p.project_id = d.project_id
      and not (p.quiet_until > now() and p.quiet_until < now() + interval '{longest} s')
      and (p.parked_at is null or exists (
        select from fw_changes c where c.project_id = p.project_id
          and c.txid >= pg_snapshot_xmin(nullif(p.tried, '')::pg_snapshot)
          and not pg_visible_in_snapshot(c.txid, nullif(p.tried, '')::pg_snapshot)))
      and (p.builder is null or not exists (select from held h where {is_builder}))
    limit 1) p),
sent as (
  select tenant, count(*) as messages from fw_projects
  where sends > 0 and lane = %(lane)s and quiet_until > now() and quiet_until < now() + interval '{longest} s'
  group by tenant),
placed as (
  select project_id, since, begun_at, row_number() over (order by turn, sends > 0 desc, since) as place
  from (select due.*, coalesce(sent.messages, 0)
               + row_number() over (partition by due.tenant order by since) as turn
        from due left join sent on sent.tenant is not distinct from due.tenant) turns),
first as materialized (
  select * from placed where place <= %(window)s - (select coalesce(sum(messages), 0) from sent)),
chosen as (
  select p.project_id, first.since, first.begun_at from first join fw_projects p using (project_id)
  where p.project_id = any(array(select project_id from first))
  order by p.project_id for update of p skip locked)
update fw_projects p set lane = %(lane)s, sends = sends + 1,
  quiet_until = now() + least(power(2, attempts) * interval '{lease} s', interval '1 min'),
  pace = case when sends > 0 then pace
    when chosen.since < p.quiet_until then least(greatest(pace * 2, {pace}), {slowest}) else {pace} end,
  attempts = case when parked_at is null then attempts else {most} - 1 end, parked_at = null
from chosen
where p.project_id = chosen.project_id and p.project_id = any(array(select project_id from chosen))
  and p.begun_at is not distinct from chosen.begun_at
  and not (p.quiet_until > now() and p.quiet_until < now() + interval '{longest} s')
returning p.project_id, p.sends, p.attempts
"""

_HELD = "select pid, objid from pg_locks where locktype = 'advisory' and classid = %(class)s and granted"
_IS_BUILDER = "h.pid = p.builder and h.objid::bigint = (hashtext(p.project_id::text)::bigint & 4294967295)"

# Who leads, and what it has to know: the epoch, the switch, and when PostgreSQL started.
_LEAD = f"""
insert into fw_leader as l (relay, until) values (%(relay)s, now() + interval '{LEADER_SECONDS} s')
on conflict (one) do update set relay = excluded.relay, until = excluded.until
where l.relay = excluded.relay or l.until < now() or l.until > now() + interval '1 min'
returning (select value from fw_facts where name = 'epoch'), (select value from fw_facts where name = 'paused'),
  extract(epoch from pg_postmaster_start_time())::bigint
"""  # noqa: S608

_RESIGN = "update fw_leader set until = now() where relay = %(relay)s"

# Builds that ended without a word as often as may be.
_PARK = f"""
with held as materialized ({_HELD})
update fw_projects p set parked_at = now(), builder = null,
  error = 'the build ended {MOST_ATTEMPTS} times without a word: killed, out of memory, or out of time'
where attempts >= {MOST_ATTEMPTS} and parked_at is null
  and not exists (select from held h where {_IS_BUILDER})
returning project_id
"""  # noqa: S608

# Sessions that hold a project for longer than their lease: a process that is stopped, a host that is gone.
_OVERDUE = f"""
with held as materialized ({_HELD})
select p.project_id, p.builder
from fw_projects p join held h on {_IS_BUILDER}
where attempts > 0 and (begun_at > now() + interval '{LONGEST_SECONDS} s' or now() > begun_at
  + least(power(2, attempts - 1) * interval '{BUILD_SECONDS} s', interval '{LONGEST_SECONDS} s'))
"""  # noqa: S608

# Projects that no edit ever named: those that were there before the triggers.
_NEVER_BUILT = """
insert into fw_projects (project_id, tenant, refresh_at)
select p.id, {tenant}, now() from {table} p
where {live} and not exists (select from fw_projects f where f.project_id = p.id) limit 1000
on conflict do nothing returning project_id
"""

# Projects whose last build lies in the future: the clock was put back, and they would be due as much too late.
_AHEAD = f"""
update fw_projects set refresh_at = now() where project_id in (
  select project_id from fw_projects
  where built_at > now() + interval '{LONGEST_SECONDS} s' and parked_at is null
    and entities >= 0 and (refresh_at is null or refresh_at > now()) limit 1000)
"""  # noqa: S608

# Bundles of an earlier layout, also those that a builder of an earlier version has built over a later one; and
# projects whose first build failed.
_EARLIER = f"""
update fw_projects set refresh_at = now() where project_id in (
  select project_id from fw_projects
  where layout < {SCHEMA} and parked_at is null
    and entities >= 0 and (refresh_at is null or refresh_at > now()) limit 1000)
"""  # noqa: S608

# Whose they are, of projects that were there before anybody asked.
_TENANTS = """
update fw_projects f set tenant = p.created_by::text from {table} p
where f.project_id = p.id and f.tenant is null and p.created_by is not null
"""

# What was published to another Redis, or before a crash: (project, generation on record). Two ranges of the index.
_UNVERIFIED = """
(select project_id, generation from fw_projects where incarnation < %(marker)s and generation > 0 limit 500)
union all
(select project_id, generation from fw_projects where incarnation > %(marker)s and generation > 0 limit 500)
"""

# The outcome of comparing them with what stands in Redis. Nothing where a build has ended meanwhile.
_VERIFIED = """
update fw_projects p set incarnation = %(marker)s,
  refresh_at = case when v.there then p.refresh_at else now() end
from unnest(%(ids)s::uuid[], %(generations)s::bigint[], %(there)s::bool[]) as v(id, generation, there)
where p.project_id = v.id and p.generation = v.generation
"""

_DUE_AGAIN = "select from fw_projects where refresh_at <= now() and parked_at is null limit 1"

# What readers missed, if there is such a project and nobody asked for it yet; or what they found stale, if its day
# is over.
_PUBLISHED = "select project_id, generation from fw_projects where project_id = any(%s::uuid[])"

_WISH = """
insert into fw_projects as p (project_id, requested)
select o.id, nextval('fw_request') from {table} o left join fw_projects f on f.project_id = o.id
where o.id = any(%(ids)s::uuid[]) and coalesce(f.requested <= f.finished, true) and f.parked_at is null
  and (coalesce(f.generation, 0) = 0 or f.generation = any(%(lacking)s::bigint[]) or f.valid_until <= now())
on conflict (project_id) do update set requested = excluded.requested
where p.requested <= p.finished
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """A project to be built. ``sends`` counts the messages since the last begin, ``attempts`` the begins since the
    last good build.
    """

    project_id: str
    sends: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Term:
    """What a leader has to know.

    Attributes:
        epoch: of publications.
        paused: 0; 1 where the sweep is paused, 2 where everything is.
        started: seconds since 1970 when PostgreSQL started.
    """

    epoch: int
    paused: int
    started: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """The relay's SQL for one database."""

    edited: str
    refreshed: str
    never_built: str
    tenants: str
    wish: str


def compile_claims(catalog: Catalog) -> Statements:
    """The statements for the tables that a database has. The tenant of a project is who created it."""
    table = catalog.kinds.project.table
    created = "created_by" in catalog.columns[table]
    of_project = f"(select o.created_by::text from {table} o where o.id = d.project_id)"  # noqa: S608
    tenant = of_project if created else "null"
    numbers = {
        "longest": LONGEST_SECONDS,
        "lease": LEASE_SECONDS,
        "pace": PACE_MILLISECONDS,
        "slowest": SLOWEST_MILLISECONDS,
        "most": MOST_ATTEMPTS,
        "held": _HELD,
        "is_builder": _IS_BUILDER,
    }
    return Statements(
        edited=_CLAIM.format(due=_EDITED.format(page=PAGE), tenant=tenant, **numbers),
        refreshed=_CLAIM.format(due=_REFRESHED.format(longest=LONGEST_SECONDS), tenant=tenant, **numbers),
        never_built=_NEVER_BUILT.format(
            table=table, live=catalog.live(table, "p"), tenant="p.created_by::text" if created else "null"
        ),
        tenants=_TENANTS.format(table=table) if created else "",
        wish=_WISH.format(table=table),
    )


def lead(connection: Connection, relay: str) -> Term | None:
    """Become the leading relay, or stay it; None where another leads. To be said again within LEADER_SECONDS."""
    with mapped("looking who leads the relays"):
        row = connection.execute(_LEAD, {"relay": relay}, prepare=True).fetchone()
    return Term(row[0] or 0, row[1] or 0, row[2]) if row is not None else None


def resign(connection: Connection, relay: str) -> None:
    """Let another lead at once."""
    with mapped("ceasing to lead the relays"):
        connection.execute(_RESIGN, {"relay": relay})


Dirty = list[tuple[str, str]]
"""(project, time of its oldest edit) of projects with something in the log."""


def dirty(connection: Connection, start: str = FIRST) -> Dirty:
    """A page of dirty projects, from a given one on."""
    with mapped("looking at the change log"):
        with by_index(connection):
            found = connection.execute(_DIRTY, {"start": start, "page": PAGE}, prepare=True)
        return found.fetchall()


def claim(connection: Connection, statements: Statements, lane: str, window: int, found: Dirty) -> list[Claim]:
    """Claim what is due in a lane, of what was ``found`` dirty or asked for, or has to be built again by now; so
    that at most ``window`` messages of the lane are under way.
    """
    asked = {"lane": lane, "window": window, "class": LOCK_CLASS}
    asked |= {"dirty": _array(project for project, _ in found), "since": _array(since for _, since in found)}
    statement = statements.edited if lane == EDITS else statements.refreshed
    with mapped("claiming projects"):
        with by_index(connection):
            claimed = connection.execute(statement, asked, prepare=True)
        return [Claim(*row) for row in claimed.fetchall()]


def _array(values: Iterable[str]) -> str:
    """Ids or times, as PostgreSQL has printed them, as it reads an array: psycopg takes ten times as long to make
    one of a list, which was half of what a claim among two thousand cost.
    """
    return f"{{{','.join(values)}}}"


def park(connection: Connection) -> list[str]:
    """Park projects whose builds keep ending without a word."""
    return _column(connection, "parking projects", _PARK, {"class": LOCK_CLASS})


def take_over(connection: Connection) -> list[str]:
    """End the sessions that hold a project for longer than their lease; the projects. A session of another role
    may be beyond our rights.
    """
    taken = []
    with mapped("taking over from builders that hang"):
        for project, session in connection.execute(_OVERDUE, {"class": LOCK_CLASS}, prepare=True).fetchall():
            with suppress(errors.InsufficientPrivilege):
                connection.execute("select pg_terminate_backend(%s)", [session])
                taken.append(project)
    return taken


def find_unbuilt(connection: Connection, statements: Statements) -> int:
    """Have projects built that were there before the triggers, or never were; how many, at most a thousand of
    each.
    """
    found = _column(connection, "looking for projects never built", statements.never_built, {})
    with mapped("looking for projects to be built again"):
        if statements.tenants:
            connection.execute(statements.tenants)
        return len(found) + connection.execute(_AHEAD).rowcount


def find_earlier(connection: Connection) -> int:
    """Have projects built whose bundle is of an earlier layout; how many, at most a thousand. To be looked for
    each second: while old and new builders run side by side, an edit may be in a bundle of the earlier one only.
    """
    with mapped("looking for bundles of an earlier layout"):
        return connection.execute(_EARLIER, prepare=True).rowcount


def unverified(connection: Connection, marker: str) -> list[tuple[str, int]]:
    """Up to 500 projects (id, generation on record) that were not compared with the Redis of ``marker``."""
    with mapped("looking for bundles to be verified"):
        return connection.execute(_UNVERIFIED, {"marker": marker}).fetchall()


def verified(connection: Connection, marker: str, found: Sequence[tuple[str, int, bool]]) -> None:
    """Record of each (project, generation) whether it was there; what was not is due again."""
    ids, generations, there = (list(column) for column in zip(*found, strict=True))
    asked = {"marker": marker, "ids": ids, "generations": generations, "there": there}
    with mapped("recording what was verified"):
        connection.execute(_VERIFIED, asked)


def due_again(connection: Connection) -> bool:
    """Whether a project has to be built again by now, though nobody edits it."""
    with mapped("looking for what is due"):
        return connection.execute(_DUE_AGAIN, prepare=True).fetchone() is not None


def wish(
    connection: Connection,
    statements: Statements,
    projects: Sequence[str],
    stored: Callable[[Sequence[str]], Sequence[int]],
) -> int:
    """Ask for what readers missed or found stale; how many were asked for. ``stored`` tells which generations of
    projects stand in Redis, 0 for none.

    Anything may be wished for by anybody, so this looks for itself: at what was published last, then at what there
    is of it, and then whether it is still the last; a build that ended meanwhile is all that was wished for.
    """
    with mapped("asking for what readers missed"):
        published: dict[str, int] = dict(connection.execute(_PUBLISHED, [list(projects)], prepare=True).fetchall())
        there = zip(projects, stored(projects), strict=True)
        lacking = [published[project] for project, found in there if found < published.get(project, 0)]
        return connection.execute(statements.wish, {"ids": list(projects), "lacking": lacking}).rowcount


def _column(connection: Connection, what: str, statement: str, asked: dict[str, Any]) -> list[str]:
    with mapped(what):
        return [row[0] for row in connection.execute(statement, asked, prepare=True).fetchall()]
