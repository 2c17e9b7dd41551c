"""``projects``: which projects there are, and how their bundles stand."""

import click

from loaders.catalog import inspect
from loaders.connection import connect, mapped
from worker.screen import console, print_json, table
from worker.settings import Settings
from worker.wiring import services

_PROJECTS = """
select p.id, h.number, p.name, p.state_key, f.generation, f.built_at,
       case when f.parked_at is not null then 'parked' when f.attempts > 0 then 'failing'
            when f.requested > f.finished then 'waiting'
            when exists (select from fw_changes c where c.project_id = p.id) then 'waiting'
            when f.generation > 0 then 'built' else 'never built' end, f.error
from {table} p
left join fw_projects f on f.project_id = p.id
left join fw_handles h on h.project_id = p.id and h.entity_id = p.id
where {live} and (not %(failing)s or f.error is not null or f.parked_at is not null)
order by p.name, p.id
"""

_FIELDS = ("id", "handle", "name", "state", "generation", "built", "bundle", "error")


@click.command(short_help="List projects and how they stand")
@click.option("--failing", is_flag=True, help="Only those whose last build failed.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_obj
def projects(settings: Settings, *, failing: bool, as_json: bool) -> None:
    """List live projects: handle, state, last build, and how the bundle stands: built, waiting for a build,
    failing, or parked after too many failures, with the error.
    """
    with services(settings) as found, connect(found.database_url) as connection:
        catalog = inspect(connection)
        name = catalog.kinds.project.table
        with mapped("listing projects"):
            query = _PROJECTS.format(table=name, live=catalog.live(name, "p"))
            rows = connection.execute(query, {"failing": failing}).fetchall()
    handle = catalog.kinds.project.handle
    listed = [(r[0], f"{handle}{r[1]}" if r[1] else None, *r[2:]) for r in rows]
    if as_json:
        print_json([dict(zip(_FIELDS, row, strict=True)) for row in listed])
        return
    console().print(table(_FIELDS, listed, right=["generation"]))
    if not listed:
        click.echo("none" if failing else "no projects yet; import some with `python -m worker import DIR`")
