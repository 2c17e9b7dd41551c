"""Import of a directory of ``<table>.jsonl`` files, one JSON object a line, as one transaction.

Rows stream through COPY into temporary tables and are compared and merged there by set, so memory does not grow
with the files. What can be said of a row alone is ``loaders.records``'; what of rows together is here. An edge to
nowhere is no error: such edges exist, and builds count them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

import psycopg
from psycopg import errors, sql
from psycopg.errors import Diagnostic

from foreword.errors import BadInput, BadRows
from foreword.kinds import Column, Registry
from loaders.catalog import Catalog
from loaders.connection import Connection, mapped
from loaders.records import Reader, did_you_mean, read_lines, read_rows
from loaders.tables import ACTORS, EDGES, LINKING

MOST_BAD_ROWS = 50
"""Bad rows after which an import gives up: by then the files are wrong, not rows of them."""

PLACES_SHOWN = 5
"""Bad rows in an error's message. All are in its ``places``."""

_COPY_LINE = re.compile(r"COPY \S+, line (\d+)")

Place = tuple[str, int, str]
Progress = Callable[[str, int], None]

# Where rows wait: the target's columns with the target's types, and none of its constraints.
_STAGE = (
    "create temporary table {stage} on commit drop as select 0 as fw_line, {columns} from {target} with no data"
)

# As text: binary is no faster (0.9 s each for 30,000 rows, most of it parsing) and knows fewer types.
_COPY = "copy {stage} (fw_line, {columns}) from stdin"

# Checks take bad rows out and return them; where bad rows are not to be skipped, all is rolled back anyway.
_TAKEN_OUT = "with bad as ({delete}) select line, reason from bad order by line limit {limit}"

# An id twice in one file: the first line counts.
_TWICE = """
delete from {stage} s using (select id, min(fw_line) as first from {stage} group by id having count(*) > 1) d
where s.id = d.id and s.fw_line > d.first
returning s.fw_line as line, format('id %s is also that of line %s', s.id, d.first) as reason
"""

# A row whose owner (project or actor) is neither in the import nor in the database.
_ORPHANS = """
delete from {stage} s
where not exists (select from {owners_stage} o where o.id = s.{owner})
  and not exists (select from {owners} o where o.id = s.{owner})
returning s.fw_line as line, format('%s %s is neither imported nor in the database', {name}, s.{owner}) as reason
"""

# Only rows that differ are written, so that importing again changes nothing and wakes nobody.
_MERGE = """
insert into {target} as t ({columns}) select {columns} from {stage}
on conflict (id) do update set {assignments} where ({old}) is distinct from ({new})
"""

# Projects that rows belong to, and those that they are moved from.
_OWNED = """
select {owner} from {stage} union select t.{owner} from {target} t join {stage} s on s.id = t.id
"""

# Of these, those that exist: an edge may name any project.
_TOUCHED = """
select id::text from ({owned}) as owned(id)
where exists (select from {target} p where p.id = owned.id) or exists (select from {stage} p where p.id = owned.id)
order by id
"""

# Projects get their handles in the order of the file, and not in the order in which they happen to be built.
_NUMBER = """
insert into fw_handles (project_id, entity_id, kind, number)
select id, id, 'project', nextval('fw_project_number') from (
  select s.id from {stage} s
  where not exists (select from fw_handles h where h.project_id = s.id and h.entity_id = s.id)
  order by s.fw_line) unnumbered
on conflict do nothing
"""
_MAY_NUMBER = """
select coalesce(has_table_privilege(to_regclass('fw_handles'), 'select')
  and has_table_privilege(to_regclass('fw_handles'), 'insert')
  and has_sequence_privilege(to_regclass('fw_project_number'), 'usage'), false)
"""

_COUNT = "select count(*) from {stage}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did.

    Attributes:
        rows: by table, rows imported.
        changed: by table, those that were new or different.
        skipped: bad rows left out, as (file name, line, reason).
        projects: ids of the projects that imported rows belong to.
    """

    rows: Mapping[str, int]
    changed: Mapping[str, int]
    skipped: tuple[Place, ...]
    projects: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A table's file, and how its lines are read."""

    table: str
    path: Path
    reader: Reader


@dataclass(slots=True)
class _Faults:
    """The bad rows found so far."""

    skip: bool
    places: list[Place] = field(default_factory=list)

    @property
    def room(self) -> int | None:
        """How many more may be found before the import gives up; None where they are skipped."""
        return None if self.skip else MOST_BAD_ROWS - len(self.places)

    def add(self, path: Path, line: int, reason: str) -> None:
        """Note a bad row. Raises BadRows when there are too many."""
        self.places.append((path.name, line, reason))
        if self.room == 0:
            self.settle()

    def settle(self) -> None:
        """Go on only if there is no bad row, or bad rows are skipped. Raises BadRows."""
        if self.places and not self.skip:
            raise _bad_rows(tuple(sorted(self.places)))


def files_of(directory: Path, catalog: Catalog) -> list[tuple[str, Path, int]]:
    """The files that an import reads, in its order, as (table, file, bytes).

    Raises:
        BadInput: the directory cannot be read, holds no such file, or holds one for no table of the registry.
    """
    tables = _tables(catalog.kinds)
    try:
        found = {path.stem: path for path in sorted(directory.iterdir()) if _is_rows(path)}
        for name, path in found.items():
            _check_file(name, path, tables)
        files = [(table, found[table], found[table].stat().st_size) for table in tables if table in found]
    except OSError as error:
        raise BadInput(f"cannot read {directory}: {error.strerror}; name a directory of .jsonl files") from error
    if not files:
        raise BadInput(f"{directory} holds no .jsonl file; each is named after its table, such as {EDGES}.jsonl")
    return files


def _tables(kinds: Registry) -> dict[str, tuple[Column, ...]]:
    """Every table's columns, in the order of import: what others may refer to first."""
    return {ACTORS: LINKING[ACTORS], **{kind.table: kind.columns_of() for kind in kinds.all}, **LINKING}


def _is_rows(path: Path) -> bool:
    return path.suffix == ".jsonl" and not path.name.startswith(".")


def _check_file(name: str, path: Path, tables: Mapping[str, object]) -> None:
    if name not in tables:
        raise BadInput(
            f"{path}: there is no table {name!r}{did_you_mean(name, tables)}; "
            f"rename or remove the file; the tables are {', '.join(tables)}"
        )
    if not path.is_file():
        raise BadInput(f"{path} is not a file that can be read; replace or remove it")


def import_directory(
    connection: Connection,
    directory: Path,
    catalog: Catalog,
    *,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Import every file of ``directory``, or nothing. ``connection`` is in autocommit mode and in no transaction.

    With ``skip_bad``, rows that fit no table or refer to no project or actor are left out and listed. What the
    database itself refuses stops the import all the same: PostgreSQL names one such row at a time.

    Raises:
        BadRows: rows do not fit; ``places`` has each, up to MOST_BAD_ROWS. A line 0 is not known.
        BadInput: the directory is none to import, or has rows for a table that the database does not have.
        SchemaError, BuildError, Unavailable: the database refused the work or was lost.
    """
    sources = _sources(directory, catalog)
    faults = _Faults(skip_bad)
    with mapped(f"importing {directory}"):
        with _refusals(), connection.transaction():
            _stage(connection, sources, catalog)
            for source in sources:
                _copy(connection, source, faults, progress or (lambda _table, _size: None))
            faults.settle()
            for source in sources:
                _check(connection, source, catalog, faults)
            faults.settle()
            imported = _merge(connection, sources, catalog, faults)
        _analyze(connection, sources)
    return imported


def _sources(directory: Path, catalog: Catalog) -> list[_Source]:
    declared = _tables(catalog.kinds)
    sources = []
    for table, path, _ in files_of(directory, catalog):
        if catalog.has(table):
            reader = Reader.of(table, declared[table], catalog.columns[table])
            sources.append(_Source(table=table, path=path, reader=reader))
        elif any(line.strip() for _, _, line in read_lines(path)):
            raise BadInput(f"{path} has rows, but the database has no table {table}; create it or drop the file")
    return sources


def _stage(connection: Connection, sources: list[_Source], catalog: Catalog) -> None:
    """Create the temporary tables; those of projects and actors always, to look owners up in."""
    columns: dict[str, tuple[str, ...]] = dict.fromkeys(_owning(catalog), ("id",))
    columns |= {source.table: source.reader.columns for source in sources}
    for table, names in columns.items():
        connection.execute(_statement(_STAGE, table, names))


def _owning(catalog: Catalog) -> dict[str, str]:
    """The tables here that own rows of others, and the column that says so."""
    owning = {catalog.kinds.project.table: "project_id", ACTORS: "actor_id"}
    return {table: column for table, column in owning.items() if catalog.has(table)}


def _copy(connection: Connection, source: _Source, faults: _Faults, progress: Progress) -> None:
    refused, heard = partial(faults.add, source.path), partial(progress, source.table)
    statement = _statement(_COPY, source.table, source.reader.columns)
    with _refusals(source), connection.cursor() as cursor, cursor.copy(statement) as copy:
        for number, values in read_rows(source.path, source.reader, refused, heard):
            copy.write_row((number, *values))


def _check(connection: Connection, source: _Source, catalog: Catalog, faults: _Faults) -> None:
    """Take out the rows that do not go together with others."""
    for delete in _checks(source, catalog):
        statement = sql.SQL(_TAKEN_OUT).format(delete=delete, limit=sql.Literal(faults.room))
        for line, reason in connection.execute(statement).fetchall():
            faults.add(source.path, line, reason)


def _checks(source: _Source, catalog: Catalog) -> Iterator[sql.Composed]:
    yield _statement(_TWICE, source.table)
    for owners, column in _owning(catalog).items():
        if column in source.reader.columns and source.table != EDGES:
            yield _statement(
                _ORPHANS,
                source.table,
                owners=sql.Identifier(owners),
                owners_stage=_staged(owners),
                owner=sql.Identifier(column),
                name=sql.Literal(column),
            )


def _merge(connection: Connection, sources: list[_Source], catalog: Catalog, faults: _Faults) -> Imported:
    rows, changed = {}, {}
    touched = connection.execute(_touched(sources, catalog)).fetchall()  # before rows move to other projects
    for source in sources:
        with _refusals(source):
            ((rows[source.table],),) = connection.execute(_statement(_COUNT, source.table)).fetchall()
            merge = _statement(_MERGE, source.table, source.reader.columns)
            changed[source.table] = connection.execute(merge).rowcount
    _number(connection, sources, catalog.kinds.project.table)
    return Imported(
        rows=rows,
        changed=changed,
        skipped=tuple(sorted(faults.places)),
        projects=tuple(project for (project,) in touched),
    )


def _number(connection: Connection, sources: list[_Source], projects: str) -> None:
    """Draw handles for new projects. Where we may not, as the application's role, or cannot before the migration,
    their first builds do.
    """
    named = any(source.table == projects for source in sources)
    if named and connection.execute(_MAY_NUMBER).fetchall() == [(True,)]:
        connection.execute(_statement(_NUMBER, projects))


def _touched(sources: list[_Source], catalog: Catalog) -> sql.Composed:
    projects = catalog.kinds.project.table
    owner = {source.table: "project_id" for source in sources if "project_id" in source.reader.columns}
    owned = [
        _statement(_OWNED, table, owner=sql.Identifier(column))
        for table, column in {projects: "id", **owner}.items()
    ]
    return _statement(_TOUCHED, projects, owned=sql.SQL(" union ").join(owned))


@contextmanager
def _refusals(source: _Source | None = None) -> Iterator[None]:
    """What the database refuses about a row becomes BadRows: constraints and triggers that only it knows."""
    try:
        yield
    except (psycopg.IntegrityError, psycopg.DataError, errors.RaiseException) as error:
        raise _bad_rows((_place(error.diag, source),)) from error


def _place(diag: Diagnostic, source: _Source | None) -> Place:
    detail = f" ({diag.message_detail[:200]})" if diag.message_detail else ""
    reason = f"the database refuses it: {diag.message_primary}{detail}"
    if source is None:  # a constraint that waits for the commit
        return f"{diag.table_name}.jsonl" if diag.table_name else "the whole", 0, reason
    copied = _COPY_LINE.search(diag.context or "")
    return source.path.name, _line_of(source, int(copied[1])) if copied else 0, reason


def _line_of(source: _Source, row: int) -> int:
    """Where the n-th good row stands: read again, so that no line numbers need be kept while all goes well."""
    rows = read_rows(source.path, source.reader, lambda _line, _reason: None, lambda _size: None)
    return next((line for line, _ in islice(rows, row - 1, None)), 0)


def _bad_rows(places: tuple[Place, ...]) -> BadRows:
    """The error for bad rows: how many, the first few, what to do."""
    count = f"at least {len(places)}" if len(places) >= MOST_BAD_ROWS else str(len(places))
    shown = [f"{file}:{line}: {reason}" if line else f"{file}: {reason}" for file, line, reason in places]
    more = [f"and {len(shown) - PLACES_SHOWN} more"] if len(shown) > PLACES_SHOWN else []
    listed = "\n  ".join([*shown[:PLACES_SHOWN], *more])
    advice = "so nothing was imported; correct them, or skip bad rows"
    return BadRows(f"{count} bad row{'s' * (len(places) != 1)}, {advice}:\n  {listed}", places)


def _analyze(connection: Connection, sources: list[_Source]) -> None:
    """Tell the planner about the new rows at once. All is committed: a failure here must not look like one."""
    with suppress(psycopg.Error):
        connection.execute(sql.SQL("analyze {}").format(_each("{}", [source.table for source in sources])))


def _statement(template: str, table: str, columns: Sequence[str] = (), **more: sql.Composable) -> sql.Composed:
    """A statement about a table and the temporary one beside it."""
    return sql.SQL(template).format(
        target=sql.Identifier(table),
        stage=_staged(table),
        columns=_each("{}", columns),
        assignments=_each("{0} = excluded.{0}", columns),
        old=_each("t.{}", columns),
        new=_each("excluded.{}", columns),
        **more,
    )


def _staged(table: str) -> sql.Identifier:
    return sql.Identifier("pg_temp", f"fw_import_{table}")


def _each(template: str, names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(sql.SQL(template).format(sql.Identifier(name)) for name in names)
