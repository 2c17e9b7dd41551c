"""A database that went back in time: a backup, a point in time, a replica that lacked commits.

What was published since is of another life. A new epoch says so: builds are believed again though their
generations are lower, and tokens from before are never taken for edits of now. In a new server transaction ids
have begun anew as well: what the log and the record say of ids lies in the future, and would be unseen for ever.
"""

from loaders.connection import Connection, mapped

# Not the next number: a backup may be restored twice, and both lives are others.
_ANEW = """
update fw_facts set value = greatest(value + 1, extract(epoch from now())::bigint) where name = 'epoch'
returning value
"""
_LOGGED = "update fw_changes set txid = pg_current_xact_id()"
_PARKED = """
update fw_projects set parked_at = null, attempts = 0, tried = '', refresh_at = now(), quiet_until = '-infinity'
where parked_at is not null
"""


def begin_anew(connection: Connection) -> int:
    """Begin a new epoch, in one transaction; which it is. Does no harm where nothing was restored: everything is
    built again, and what was parked is tried again.
    """
    with mapped("beginning a new epoch"), connection.transaction():
        ((epoch,),) = connection.execute(_ANEW).fetchall()
        connection.execute(_LOGGED)
        connection.execute(_PARKED)
    return int(epoch)
