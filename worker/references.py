"""Projects as people name them on the command line: a UUID, or a handle such as PRJ3."""

from collections.abc import Iterable

from foreword.errors import BadInput, UnknownProject
from foreword.handles import parse_handle, uuid_of
from foreword.kinds import PROJECT
from loaders import ledger
from loaders.catalog import Catalog
from loaders.connection import Connection, mapped
from loaders.handles import project_of


def live_projects(connection: Connection, catalog: Catalog) -> list[str]:
    """The ids of all live projects."""
    table = catalog.kinds.project.table
    with mapped("listing projects"):
        rows = connection.execute(
            f"select id from {table} where {catalog.live(table)} order by id"  # noqa: S608
        ).fetchall()
    return [row[0] for row in rows]


def buildable_projects(connection: Connection, catalog: Catalog) -> list[str]:
    """The ids of all live projects, and of those that were built once and are gone: their bundles must go too."""
    return sorted({*live_projects(connection, catalog), *ledger.unburied(connection)})


def project_ids(connection: Connection, references: Iterable[str], catalog: Catalog) -> list[str]:
    """The ids that references stand for, in their order; also of projects that are gone and have a bundle yet.

    Raises:
        BadInput: one is neither a UUID nor a project's handle.
        UnknownProject: one stands for no live project; nothing was asked for.
    """
    known = set(buildable_projects(connection, catalog))
    found = []
    for reference in references:
        parsed = parse_handle(reference, catalog.kinds)
        if parsed is not None and parsed[0] == PROJECT:
            project = project_of(connection, parsed[1])
        else:
            project = _id_of(reference)
        if project is None or project not in known:
            raise UnknownProject(
                f"there is no live project {reference}; `python -m worker projects` lists those there are"
            )
        found.append(project)
    return list(dict.fromkeys(found))


def _id_of(reference: str) -> str:
    try:
        return uuid_of(reference, "project")
    except BadInput:
        raise BadInput(
            f"{reference!r} is neither a project's id nor a handle such as PRJ1; `python -m worker projects` lists"
            " what there is"
        ) from None
