"""Who may read what: the projects that a person's brief is about."""

from foreword.errors import BadInput
from loaders.catalog import Catalog
from loaders.connection import Connection, mapped
from loaders.tables import ACTORS, MEMBERS

IN_HAND = ("planning", "active")
"""States of the projects that a brief is about. Source: specification of the brief, "What counts as what"."""


def projects_in_hand(connection: Connection, catalog: Catalog, user: str) -> list[tuple[str, str]]:
    """(id, name) of the live projects in hand that a user may read, in the order of their ids. Where the database
    keeps no members, of those that the user created.
    """
    table = catalog.kinds.project.table
    mine = "p.created_by::text = %(user)s" if "created_by" in catalog.columns[table] else "false"
    if catalog.has_members:
        mine = (
            f"exists (select from {MEMBERS} m where m.project_id = p.id and m.actor_id = %(user)s::uuid"
            " and m.removed_at is null)"
        )
    statement = (
        f"select p.id, p.name from {table} p where {catalog.live(table, 'p')} and {mine}"  # noqa: S608
        " and p.state_key::text = any(%(states)s::text[]) order by p.id"
    )
    with mapped(f"listing the projects of user {user}"):
        return connection.execute(statement, {"user": user, "states": list(IN_HAND)}, prepare=True).fetchall()


def name_of(connection: Connection, catalog: Catalog, user: str) -> str | None:
    """What a live actor is called, if anything.

    Raises:
        BadInput: there is no such actor, or none any more.
    """
    if not catalog.has(ACTORS):
        return None
    name = "name" if "name" in catalog.columns[ACTORS] else "null"
    statement = f"select {name} from {ACTORS} where id::text = %s and {catalog.live(ACTORS)}"  # noqa: S608
    with mapped(f"looking up user {user}"):
        row = connection.execute(statement, [user], prepare=True).fetchone()
    if row is None:
        raise BadInput(f"there is no live user {user} any more")
    return row[0] or None
