"""How the whole stands, for operators: what waits and for how long, who leads, how PostgreSQL fares.

One round trip, one pass over the change log and one over the projects: 100,000 projects take a twentieth of a
second, and 0.4 s where each of them has three edits in the log (two cores).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from json import loads

from loaders.connection import Connection, mapped, pipeline
from loaders.ledger import LOCK_CLASS
from loaders.parked import DROPPED

# Edits of parked projects wait for somebody to mend something, and say nothing of how fresh the others are.
_LOG = """
select count(*) filter (where p.parked_at is null), coalesce(sum(l.rows), 0)::bigint,
  coalesce(extract(epoch from now() - min(l.since) filter (where p.parked_at is null)), 0)::float8
from (select project_id, count(*) as rows, min(at) as since from fw_changes group by project_id) l
  left join fw_projects p using (project_id)
"""

_PROJECTS = f"""
select count(*) filter (where generation > 0 and entities >= 0),
  count(*) filter (where parked_at <> '{DROPPED}'), count(*) filter (where parked_at = '{DROPPED}'),
  count(*) filter (where error is not null and parked_at is null),
  count(*) filter (where requested > finished and parked_at is null),
  count(*) filter (where sends > 0 and quiet_until > now()),
  (select count(*) from pg_locks where locktype = 'advisory' and classid = {LOCK_CLASS} and granted
     and database = (select oid from pg_database where datname = current_database())),
  count(*) filter (where refresh_at <= now() and parked_at is null),
  extract(epoch from now() - max(built_at))::float8
from fw_projects
"""  # noqa: S608

_FACTS = """
select (select relay from fw_leader where until > now()),
  (select extract(epoch from until - now())::float8 from fw_leader),
  coalesce((select json_object_agg(name, value) from fw_facts)::text, '{}'),
  extract(epoch from clock_timestamp())::float8
"""

# Of other roles' sessions some systems tell nothing: what is not told is not counted.
_SERVER = """
select current_setting('server_version'), current_setting('max_connections')::int,
  count(*) filter (where backend_type = 'client backend'),
  coalesce(extract(epoch from now() - min(xact_start) filter (where pid <> pg_backend_pid())), 0)::float8
from pg_stat_activity
"""

_SIZES = r"""
select c.relname, pg_total_relation_size(c.oid) from pg_class c
where c.relname like 'fw\_%' and c.relkind = 'r' and c.relnamespace = current_schema::regnamespace order by 2 desc
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Attributes:
    lag: seconds since the oldest edit that no bundle has; 0 where all are in bundles. Parked projects apart.
    dirty: projects with such an edit; ``log_rows`` counts all rows of the log.
    built: live projects with a bundle.
    parked, dropped: given up; and those of them that nobody wants to hear of.
    failing: whose last build failed, and which is tried again.
    asked: with an unanswered request.
    sent, building: messages under way and not begun; builds.
    sweep: to be built again though nobody edits them.
    last_built: seconds since a build ended well, None where none ever did.
    leader, led_for: the relay that leads, and for how many seconds more unless it says so again; None.
    paused: 0; 1 where the sweep is paused, 2 where everything is.
    ticked: seconds since somebody looked which briefs are due, None where nobody ever did.
    audited, mismatches: bundles compared with fresh builds, and how many of them were different.
    version, connections, most_connections, oldest_transaction: of PostgreSQL; the last in seconds.
    sizes: bytes of our tables, with their indexes.
    """

    lag: float
    dirty: int
    log_rows: int
    built: int
    parked: int
    dropped: int
    failing: int
    asked: int
    sent: int
    building: int
    sweep: int
    last_built: float | None
    leader: str | None
    led_for: float | None
    paused: int
    ticked: float | None
    audited: int
    mismatches: int
    version: str
    connections: int
    most_connections: int
    oldest_transaction: float
    sizes: Mapping[str, int]


def condition(connection: Connection) -> Condition:
    """How the whole stands, by the database's clock.

    Raises:
        SchemaError, Unavailable: the database is not migrated, or does not answer.
    """
    with mapped("looking how the whole stands"), pipeline(connection):
        cursors = [connection.execute(each) for each in (_LOG, _PROJECTS, _FACTS, _SERVER, _SIZES)]
    (log,), (projects,), (facts,), (server,), sizes = [cursor.fetchall() for cursor in cursors]
    leader, until, known, now = facts
    numbers: dict[str, int] = loads(known)
    ticked = numbers.get("ticked")
    return Condition(
        dirty=log[0],
        log_rows=log[1],
        lag=log[2],
        built=projects[0],
        parked=projects[1],
        dropped=projects[2],
        failing=projects[3],
        asked=projects[4],
        sent=projects[5],
        building=projects[6],
        sweep=projects[7],
        last_built=projects[8],
        leader=leader,
        led_for=until if leader is not None else None,
        paused=numbers.get("paused", 0),
        ticked=now - ticked if ticked is not None else None,
        audited=numbers.get("audited", 0),
        mismatches=numbers.get("audit_mismatches", 0),
        version=server[0],
        most_connections=server[1],
        connections=server[2],
        oldest_transaction=server[3],
        sizes=dict(sizes),
    )


def clock(connection: Connection) -> float:
    """The database's clock, seconds since 1970, asked alone: how long the question took bounds how old it is.

    Raises:
        Unavailable: the database does not answer.
    """
    with mapped("asking for the time"):
        found = connection.execute("select extract(epoch from clock_timestamp())::float8").fetchone()
    assert found is not None  # noqa: S101 - a clock is always told
    return float(found[0])
