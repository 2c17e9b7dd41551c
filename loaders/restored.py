"""A database that went back in time: a backup, a point in time, a replica that lacked commits.

What was published since is of another life. A new epoch says so: builds are believed again though their
generations are lower, and tokens from before are never taken for edits of now. In a new server transaction ids
have begun anew as well: what the log and the record say of ids lies in the future, and would be unseen for ever.
"""

from loaders.connection import Connection, mapped

_ANEW = "update fw_facts set value = value + 1 where name = 'epoch' returning value"
_LOGGED = "update fw_changes set txid = pg_current_xact_id()"
_TRIED = "update fw_projects set tried = pg_current_snapshot()::text where tried <> ''"


def begin_anew(connection: Connection) -> int:
    """Begin a new epoch, in one transaction; which it is. Does no harm where nothing was restored: everything is
    built again.
    """
    with mapped("beginning a new epoch"), connection.transaction():
        ((epoch,),) = connection.execute(_ANEW).fetchall()
        connection.execute(_LOGGED)
        connection.execute(_TRIED)
    return int(epoch)
