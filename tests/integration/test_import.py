"""Importing JSONL files into a real PostgreSQL: what fits goes in whole, and what does not is named."""

import json
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.pq import TransactionStatus
from sqlalchemy import create_engine
from strategies import uid

from foreword.errors import BadInput, BadRows, Unavailable
from foreword.kinds import KINDS, Column, Field, Kind
from loaders.catalog import Catalog, inspect
from loaders.connection import Connection, connect
from loaders.jsonl import MOST_BAD_ROWS, files_of, import_directory
from loaders.records import LONGEST_LINE
from loaders.tables import ontology
from worker.servers import Addresses

HARBOUR = Path(__file__).parents[2] / "samples" / "harbour"
PROJECT = "00000000-0000-4000-8000-000000000001"
ELSEWHERE = "00000000-0000-4000-8000-000000000002"
NOWHERE = "00000000-0000-4000-8000-00000000dead"
WHEN = "2026-01-01T00:00:00Z"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STAMPS = {"created_at": WHEN, "updated_at": WHEN}

Line = dict[str, Any] | str | bytes


@pytest.fixture
def catalog(connection: Connection) -> Catalog:
    return inspect(connection)


@pytest.fixture(scope="module")
def untouched(servers: Addresses, migrated: str) -> Iterator[Connection]:
    """One database for all the imports that leave it as it is: empty."""
    with connect(servers.database_url) as admin:
        admin.execute(f'create database fw_untouched template "{migrated}"'.encode())
    with connect(servers.database_url.replace("/foreword?", "/fw_untouched?")) as connection:
        yield connection


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write(tmp_path, "onto_projects", project())
    return tmp_path


def project(identity: str = PROJECT, **more: Any) -> dict[str, Any]:
    return {"id": identity, "name": "Pier", **STAMPS, **more}


def task(number: int = 1, **more: Any) -> dict[str, Any]:
    return {"id": str(UUID(int=number)), "project_id": PROJECT, "title": f"task {number}", **STAMPS, **more}


def without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def write(directory: Path, table: str, *lines: Line, end: bytes = b"\n") -> None:
    raw = [json.dumps(line) if isinstance(line, dict) else line for line in lines]
    encoded = [line.encode() if isinstance(line, str) else line for line in raw]
    (directory / f"{table}.jsonl").write_bytes(b"".join(line + end for line in encoded))


def count(connection: Connection, table: str = "onto_tasks") -> int:
    return int(column(connection, f"select count(*) from {table}")[0])


def column(connection: Connection, query: str) -> list[Any]:
    return [row[0] for row in connection.execute(query.encode()).fetchall()]


def everything(connection: Connection, catalog: Catalog) -> dict[str, int]:
    return {table: count(connection, table) for table in catalog.columns}


def exactly(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def refused(connection: Connection, directory: Path, catalog: Catalog) -> BadRows:
    """The refusal of an import, which has to leave every table empty."""
    with pytest.raises(BadRows) as caught:
        import_directory(connection, directory, catalog)
    assert not any(everything(connection, catalog).values())
    assert connection.info.transaction_status == TransactionStatus.IDLE
    return caught.value


def test_a_sample_is_imported_whole(connection: Connection, catalog: Catalog) -> None:
    imported = import_directory(connection, HARBOUR, catalog)

    lines = {path.stem: len(path.read_text().splitlines()) for path in HARBOUR.glob("*.jsonl")}
    assert imported.rows == imported.changed == everything(connection, catalog) == lines
    assert imported.projects == tuple(sorted(column(connection, "select id from onto_projects")))
    assert imported.skipped == ()


@pytest.mark.promise("import.again")
def test_importing_again_changes_nothing(connection: Connection, catalog: Catalog) -> None:
    first = import_directory(connection, HARBOUR, catalog)
    versions = column(connection, "select ctid || ' ' || xmin from onto_tasks order by id")

    again = import_directory(connection, HARBOUR, catalog)

    assert again.rows == first.rows
    assert set(again.changed.values()) == {0}
    assert column(connection, "select ctid || ' ' || xmin from onto_tasks order by id") == versions


def test_only_rows_that_differ_are_changed(connection: Connection, catalog: Catalog, directory: Path) -> None:
    write(directory, "onto_tasks", task(1), task(2))
    import_directory(connection, directory, catalog)
    write(directory, "onto_tasks", task(1), task(2, title="renamed"), task(3))

    imported = import_directory(connection, directory, catalog)

    assert imported.rows == {"onto_projects": 1, "onto_tasks": 3}
    assert imported.changed == {"onto_projects": 0, "onto_tasks": 2}
    assert column(connection, "select title from onto_tasks order by id") == ["task 1", "renamed", "task 3"]


BAD_LINES: dict[str, tuple[Line, str]] = {
    "a uuid that is none": (task(2, created_by="nobody"), "column 'created_by': Input should be a valid UUID"),
    "a time without zone": (task(2, due_at="2026-01-01T00:00:00"), "a time with its zone"),
    "a time as a number": (task(2, due_at=1700000000), "a time with its zone"),
    "a time as a number in a string": (task(2, due_at="1700000000"), "a time with its zone"),
    "a time that no calendar has": (
        task(2, due_at="2026-02-30T00:00:00Z"),
        "column 'due_at': day is out of range",
    ),
    "a time before all calendars": (task(2, due_at="0001-01-01T00:00:00+02:00"), "between the years 1 and 9999"),
    "an integer as a string": (task(2, priority="1"), "column 'priority': Input should be a valid integer"),
    "an integer with a fraction": (task(2, priority=1.5), "column 'priority': Input should be a valid integer"),
    "an integer that is true": (task(2, priority=True), "column 'priority': Input should be a valid integer"),
    "an integer out of range": (task(2, priority=6), "less than or equal to 5, not 6"),
    "text that is a number": (task(2, title=7), "column 'title': Input should be a valid string, not 7"),
    "a missing column": (without(task(2), "title"), "column 'title' is required and missing"),
    "a null where none may be": (task(2, title=None), "column 'title' must not be null"),
    "a misspelt column": (task(2, titel="x"), "unknown column 'titel', did you mean 'title'?"),
    "an alien column": (task(2, zzz="x"), "unknown column 'zzz'; the table has id, project_id, type_key"),
    "NUL in text": (task(2, title="a\0b"), "column 'title' holds the character NUL"),
    "NUL in JSON": (task(2, props={"a": [{"b": "\0"}]}), "column 'props' holds the character NUL"),
    "NUL in a key": (task(2, props={"\0": 1}), "column 'props' holds the character NUL"),
    "a lone surrogate in text": (task(2, title="\ud800"), "is no valid JSON: unexpected end of hex escape"),
    "a lone surrogate in JSON": (task(2, props=["\udc00"]), "is no valid JSON: lone leading surrogate"),
    "NaN in JSON": (task(2, props={"a": float("nan")}), "is no valid JSON: NaN is no number"),
    "infinity in JSON": (task(2, props={"a": [float("-inf")]}), "is no valid JSON: -Infinity is no number"),
    "a number beyond numeric": (json.dumps(task(2, props=[0])).replace("[0]", "[1e200000]"), "can hold"),
    "JSON too deep": (json.dumps(task(2)).replace('"task 2"', "[" * 10**5), "recursion limit exceeded"),
    "half a line": (json.dumps(task(2))[:-9], "is no valid JSON: EOF while parsing"),
    "two objects on a line": (json.dumps(task(2)) * 2, "is no valid JSON: trailing characters at column"),
    "a list": ("[1]", "is no JSON object"),
    "null": ("null", "is no JSON object"),
    "bytes that are not UTF-8": (b'{"id": "\xff"}', "is not UTF-8: invalid start byte at byte 9"),
    "a line without end": (b" " * (LONGEST_LINE + 1) + b"{}", "is longer than 67,108,864 bytes"),
}


@pytest.mark.promise("import.atomic")
@pytest.mark.parametrize(("line", "reason"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_named_and_changes_nothing(
    untouched: Connection, directory: Path, line: Line, reason: str
) -> None:
    write(directory, "onto_tasks", task(1), "", line, task(3))

    error = refused(untouched, directory, inspect(untouched))

    ((file, number, said),) = error.places
    assert (file, number) == ("onto_tasks.jsonl", 3)
    assert reason in said
    assert f"1 bad row, so nothing was imported; correct them, or skip bad rows:\n  {file}:3: {said}" == str(error)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"impact": "dire"}, "'low', 'medium', 'high' or 'critical', not 'dire'"),
        ({"probability": 1.01}, "less than or equal to 1, not 1.01"),
        ({"probability": True}, "column 'probability': Decimal input should be"),
        ({"probability": "NaN"}, "finite number, not 'NaN'"),
        ({"probability": float("nan")}, "finite number, not nan"),
        ({"probability": float("inf")}, "finite number, not inf"),
        ({"probability": "1e-20000"}, "should have an exponent of at most 9999"),
    ],
)
def test_risks_keep_to_the_values_of_the_registry(
    untouched: Connection, directory: Path, row: dict[str, Any], reason: str
) -> None:
    write(directory, "onto_risks", task(1, **row))

    error = refused(untouched, directory, inspect(untouched))

    assert reason in error.places[0][2]


@pytest.mark.promise("import.atomic")
def test_rows_that_do_not_go_together_are_named(untouched: Connection, directory: Path) -> None:
    member = {"id": NOWHERE, "project_id": PROJECT, "actor_id": NOWHERE, "role_key": "owner"}
    write(directory, "onto_tasks", task(1), task(2), task(1), task(4, project_id=NOWHERE), task(1))
    write(directory, "onto_project_members", member)

    error = refused(untouched, directory, inspect(untouched))

    assert error.places == (
        ("onto_project_members.jsonl", 1, f"actor_id {NOWHERE} is neither imported nor in the database"),
        ("onto_tasks.jsonl", 3, f"id {task(1)['id']} is also that of line 1"),
        ("onto_tasks.jsonl", 4, f"project_id {NOWHERE} is neither imported nor in the database"),
        ("onto_tasks.jsonl", 5, f"id {task(1)['id']} is also that of line 1"),
    )


def test_owners_may_be_in_the_database_already(connection: Connection, catalog: Catalog, directory: Path) -> None:
    import_directory(connection, directory, catalog)
    (directory / "onto_projects.jsonl").unlink()
    write(directory, "onto_tasks", task(1))

    imported = import_directory(connection, directory, catalog)

    assert imported.rows == {"onto_tasks": 1}
    assert imported.projects == (PROJECT,)


@pytest.mark.promise("import.skip-bad")
def test_skipping_lists_every_bad_row_and_imports_the_rest(
    connection: Connection, catalog: Catalog, directory: Path
) -> None:
    write(directory, "onto_projects", project(), project(ELSEWHERE, name=None), project(PROJECT, name="again"))
    write(directory, "onto_tasks", task(1), "nonsense", task(2, project_id=ELSEWHERE), task(1), task(3))

    imported = import_directory(connection, directory, catalog, skip_bad=True)

    assert [place[:2] for place in imported.skipped] == [
        ("onto_projects.jsonl", 2),
        ("onto_projects.jsonl", 3),
        ("onto_tasks.jsonl", 2),
        ("onto_tasks.jsonl", 3),
        ("onto_tasks.jsonl", 4),
    ]
    assert all(reason for _, _, reason in imported.skipped)
    assert imported.rows == {"onto_projects": 1, "onto_tasks": 2}
    assert column(connection, "select title from onto_tasks order by id") == ["task 1", "task 3"]
    assert column(connection, "select name from onto_projects") == ["Pier"]


@pytest.mark.promise("import.skip-bad")
def test_however_many_bad_rows_there_are_skipping_goes_on(
    connection: Connection, catalog: Catalog, directory: Path
) -> None:
    orphans = [task(n, project_id=NOWHERE) for n in range(10, 10 + 2 * MOST_BAD_ROWS)]
    write(directory, "onto_tasks", *["{}"] * 2 * MOST_BAD_ROWS, *orphans, task(1))

    imported = import_directory(connection, directory, catalog, skip_bad=True)

    assert [line for _, line, _ in imported.skipped] == list(range(1, 4 * MOST_BAD_ROWS + 1))
    assert count(connection) == 1


@pytest.mark.parametrize("bad", ["{}", json.dumps(task(1, project_id=NOWHERE)), json.dumps(task(1))])
def test_many_bad_rows_end_the_import_early(untouched: Connection, directory: Path, bad: str) -> None:
    write(directory, "onto_tasks", *[bad] * (3 * MOST_BAD_ROWS))

    error = refused(untouched, directory, inspect(untouched))

    assert len(error.places) == MOST_BAD_ROWS
    assert str(error).startswith(f"at least {MOST_BAD_ROWS} bad rows, so nothing was imported")
    assert str(error).endswith(f"and {MOST_BAD_ROWS - 5} more")


@pytest.mark.promise("import.edges-kept")
def test_edges_to_nowhere_are_imported(connection: Connection, catalog: Catalog, directory: Path) -> None:
    ends = {"src_kind": "task", "src_id": NOWHERE, "dst_kind": "boat", "dst_id": NOWHERE, "rel": "haunts"}
    edge = {"id": str(UUID(int=1)), "project_id": PROJECT, "created_at": WHEN, **ends}
    write(directory, "onto_edges", edge, {**edge, "id": str(UUID(int=2)), "project_id": ELSEWHERE})

    imported = import_directory(connection, directory, catalog)

    assert imported.rows["onto_edges"] == count(connection, "onto_edges") == 2
    assert imported.projects == (PROJECT,)


def test_files_of_other_systems_are_read(connection: Connection, catalog: Catalog, directory: Path) -> None:
    write(directory, "onto_tasks", b"\xef\xbb\xbf" + json.dumps(task(1)).encode(), "", " \t", task(2), end=b"\r\n")
    write(directory, "onto_plans", b"\xef\xbb\xbf")
    (directory / "README.md").write_text("about this data")
    (directory / "manifest.json").write_text("{}")
    (directory / "._onto_tasks.jsonl").write_bytes(b"\0\5\26\7 what another system keeps beside a file")

    imported = import_directory(connection, directory, catalog)

    assert imported.rows == {"onto_projects": 1, "onto_tasks": 2, "onto_plans": 0}


def test_what_only_looks_like_a_forbidden_character_is_kept(
    connection: Connection, catalog: Catalog, directory: Path
) -> None:
    text = "\\u0000 and \\ud800"
    write(directory, "onto_tasks", task(1, title=text, props=[text, "\U0001f6a2"]))

    import_directory(connection, directory, catalog)

    assert column(connection, "select title || (props->>0) || (props->>1) from onto_tasks") == [text + text + "🚢"]


def test_a_file_for_no_table_is_an_error_that_lists_the_tables(catalog: Catalog, directory: Path) -> None:
    write(directory, "onto_task", task(1))

    with pytest.raises(BadInput, match=r"onto_task\.jsonl: there is no table 'onto_task', did you mean") as caught:
        files_of(directory, catalog)

    assert all(table in str(caught.value) for table in ontology().tables)


def test_a_directory_without_files_is_an_error(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"holds no \.jsonl file; each is named after its table"):
        files_of(tmp_path, catalog)


def test_a_directory_that_is_none_is_an_error(catalog: Catalog, directory: Path) -> None:
    with pytest.raises(BadInput, match="No such file or directory; name a directory"):
        files_of(directory / "absent", catalog)
    with pytest.raises(BadInput, match="Not a directory; name a directory"):
        files_of(directory / "onto_projects.jsonl", catalog)


def test_what_cannot_be_read_is_an_error(catalog: Catalog, directory: Path) -> None:
    (directory / "onto_tasks.jsonl").mkdir()
    with pytest.raises(BadInput, match=r"onto_tasks\.jsonl is not a file that can be read"):
        files_of(directory, catalog)

    (directory / "onto_tasks.jsonl").rmdir()
    (directory / "onto_tasks.jsonl").symlink_to(directory / "nothing")
    with pytest.raises(BadInput, match=r"onto_tasks\.jsonl is not a file that can be read"):
        files_of(directory, catalog)


@pytest.mark.promise("import.atomic")
def test_a_file_that_goes_away_meanwhile_changes_nothing(
    connection: Connection, catalog: Catalog, directory: Path
) -> None:
    write(directory, "onto_tasks", task(1))

    with pytest.raises(BadInput, match=r"cannot read .*onto_tasks\.jsonl: No such file"):
        import_directory(
            connection,
            directory,
            catalog,
            progress=lambda _table, _size: (directory / "onto_tasks.jsonl").unlink(),
        )

    assert count(connection, "onto_projects") == 0


def test_rows_for_a_table_that_the_database_lacks_are_an_error(connection: Connection, directory: Path) -> None:
    connection.execute("drop table onto_outputs")
    catalog = inspect(connection)
    write(directory, "onto_outputs", "", without(task(1), "title"))

    with pytest.raises(BadInput, match="has rows, but the database has no table onto_outputs"):
        import_directory(connection, directory, catalog, skip_bad=True)

    assert count(connection, "onto_projects") == 0


def test_an_empty_file_for_a_table_that_the_database_lacks_is_none(
    connection: Connection, directory: Path
) -> None:
    connection.execute("drop table onto_outputs; drop table onto_actors")
    catalog = inspect(connection)
    write(directory, "onto_outputs", "")

    assert import_directory(connection, directory, catalog).rows == {"onto_projects": 1}


def test_a_column_that_the_database_lacks_may_only_be_null(connection: Connection, directory: Path) -> None:
    connection.execute("alter table onto_tasks drop created_by")
    catalog = inspect(connection)
    write(directory, "onto_tasks", task(1, created_by=None), task(2, created_by=NOWHERE))

    imported = import_directory(connection, directory, catalog, skip_bad=True)

    ((_, line, reason),) = imported.skipped
    assert (line, reason) == (2, "column 'created_by': the database's table does not have it, so it must be null")
    assert count(connection) == 1


def test_a_column_of_archived_rows_is_read_where_the_table_has_it(
    connection: Connection, catalog: Catalog, directory: Path
) -> None:
    write(directory, "onto_tasks", task(1, archived_at=WHEN), task(2))
    error = refused(connection, directory, catalog)
    connection.execute("alter table onto_tasks add archived_at timestamptz")

    import_directory(connection, directory, inspect(connection))

    assert error.places[0][2].startswith("unknown column 'archived_at'")
    assert column(connection, "select archived_at from onto_tasks order by id") == ["2026-01-01 00:00:00+00", None]


@pytest.mark.promise("import.atomic")
def test_what_only_the_database_refuses_is_named_with_its_file(
    connection: Connection, catalog: Catalog, directory: Path
) -> None:
    connection.execute("alter table onto_tasks add constraint no_shouting check (title = lower(title))")
    write(directory, "onto_tasks", task(1), task(2, title="LOUD"))

    error = refused(connection, directory, catalog)

    assert error.places[0][:2] == ("onto_tasks.jsonl", 0)
    assert 'violates check constraint "no_shouting"' in str(error)
    assert task(2)["id"] in str(error)


def test_a_value_that_only_the_database_refuses_is_named_with_its_line(
    connection: Connection, catalog: Catalog, directory: Path
) -> None:
    connection.execute("create type state as enum ('todo', 'done')")
    connection.execute("alter table onto_tasks alter state_key type state using null")
    write(directory, "onto_tasks", "", task(1, state_key="todo"), "", task(2, state_key="odd"), task(3))

    error = refused(connection, directory, catalog)

    ((file, line, reason),) = error.places
    assert (file, line) == ("onto_tasks.jsonl", 4)
    assert 'invalid input value for enum state: "odd"' in reason


def test_a_constraint_that_waits_for_the_commit_refuses_the_whole(
    connection: Connection, catalog: Catalog, directory: Path
) -> None:
    connection.execute(
        "alter table onto_edges add foreign key (src_id) references onto_tasks deferrable initially deferred"
    )
    ends = {"src_kind": "task", "src_id": NOWHERE, "dst_kind": "task", "dst_id": NOWHERE, "rel": "blocks"}
    write(directory, "onto_edges", {"id": NOWHERE, "project_id": PROJECT, "created_at": WHEN, **ends})

    error = refused(connection, directory, catalog)

    assert error.places[0][:2] == ("onto_edges.jsonl", 0)
    assert "violates foreign key constraint" in str(error)


def raise_on_insert(connection: Connection, code: str) -> None:
    """Have the server refuse every new task with an error of this code."""
    body = f"begin raise exception 'as asked' using errcode = '{code}'; end"
    connection.execute(f"create function refuse() returns trigger language plpgsql as $$ {body} $$".encode())
    connection.execute("create trigger refuse before insert on onto_tasks for each row execute function refuse()")


def test_what_a_trigger_refuses_is_a_bad_row(connection: Connection, catalog: Catalog, directory: Path) -> None:
    raise_on_insert(connection, "P0001")
    write(directory, "onto_tasks", task(1))

    error = refused(connection, directory, catalog)

    assert error.places == (("onto_tasks.jsonl", 0, "the database refuses it: as asked"),)


@pytest.mark.promise("import.atomic")
def test_a_full_disk_changes_nothing_and_is_said(
    connection: Connection, catalog: Catalog, directory: Path
) -> None:
    raise_on_insert(connection, "53100")
    write(directory, "onto_tasks", task(1))

    with pytest.raises(Unavailable, match="has no room: as asked; nothing was changed"):
        import_directory(connection, directory, catalog)

    assert count(connection, "onto_projects") == 0


@pytest.mark.promise("import.atomic")
def test_an_interrupt_changes_nothing(connection: Connection, catalog: Catalog) -> None:
    def interrupt(table: str, _size: int) -> None:
        if table == "onto_edges":
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        import_directory(connection, HARBOUR, catalog, progress=interrupt)

    assert not any(everything(connection, catalog).values())
    assert import_directory(connection, HARBOUR, catalog).changed["onto_edges"] > 0


def test_a_lost_server_is_said(database_url: str, connection: Connection, catalog: Catalog) -> None:
    def cut(table: str, _size: int) -> None:
        if table == "onto_edges":
            with connect(database_url) as other:
                other.execute("select pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])

    with pytest.raises(Unavailable, match=r"importing .*harbour: PostgreSQL"):
        import_directory(connection, HARBOUR, catalog, progress=cut)

    with connect(database_url) as other:
        assert not any(everything(other, catalog).values())


def test_progress_adds_up_to_the_files(connection: Connection, catalog: Catalog, directory: Path) -> None:
    write(directory, "onto_documents", *[task(n, title="x" * 10_000) for n in range(100)])
    told: list[tuple[str, int]] = []

    import_directory(connection, directory, catalog, progress=lambda table, size: told.append((table, size)))

    read = {table: sum(size for name, size in told if name == table) for table, _ in told}
    assert read == {table: size for table, _, size in files_of(directory, catalog)}
    assert len(told) > 4


def test_the_planner_knows_the_rows_at_once(connection: Connection, catalog: Catalog) -> None:
    imported = import_directory(connection, HARBOUR, catalog)

    known = connection.execute("select relname, reltuples::int from pg_class").fetchall()
    assert {table: rows for table, rows in known if table in imported.rows} == imported.rows


def test_a_row_that_moves_touches_both_projects(connection: Connection, catalog: Catalog, directory: Path) -> None:
    write(directory, "onto_projects", project(), project(ELSEWHERE))
    write(directory, "onto_tasks", task(1))
    import_directory(connection, directory, catalog)
    (directory / "onto_projects.jsonl").unlink()
    write(directory, "onto_tasks", task(1, project_id=ELSEWHERE))

    imported = import_directory(connection, directory, catalog)

    assert imported.projects == (PROJECT, ELSEWHERE)


BOAT = Kind(
    name="boat",
    plural="boats",
    table="onto_boats",
    handle="B",
    label="name",
    columns=(
        Column(name="name", required=True),
        Column(name="copy", type="jsonb", required=True),
        Column(name="length", type="numeric", between=(0, 500)),
        Column(name="crew", type="integer"),
    ),
    light=(Field("name"),),
)


@pytest.fixture
def fleet(empty_database: str) -> Iterator[tuple[Connection, Catalog]]:
    """A database made from a registry of thirteen kinds."""
    registry = KINDS.extended(BOAT)
    engine = create_engine(empty_database.replace("postgresql://", "postgresql+psycopg://"))
    ontology(registry).create_all(engine)
    engine.dispose()
    with connect(empty_database) as connection:
        yield connection, inspect(connection, registry)


@pytest.mark.promise("build.kind")
def test_a_thirteenth_kind_is_imported(fleet: tuple[Connection, Catalog], directory: Path) -> None:
    boat = {"id": NOWHERE, "project_id": PROJECT, "name": "Petrel", "copy": [], "crew": -(2**31), **STAMPS}
    write(directory, "onto_boats", boat, {**boat, "crew": 2**31}, {**boat, "copy": None}, without(boat, "copy"))

    imported = import_directory(fleet[0], directory, fleet[1], skip_bad=True)

    assert imported.rows == {"onto_projects": 1, "onto_boats": 1}
    assert column(fleet[0], "select name || crew from onto_boats") == ["Petrel-2147483648"]
    assert [reason for _, _, reason in imported.skipped] == [
        "column 'crew': Input should be less than or equal to 2147483647, not 2147483648",
        "column 'copy' must not be null",
        "column 'copy' is required and missing",
    ]


def test_numbers_keep_every_digit(fleet: tuple[Connection, Catalog], directory: Path) -> None:
    digits = "1.2345678901234567890123456789012345678900"
    boat = {"id": NOWHERE, "project_id": PROJECT, "name": "Petrel", "copy": 7.5, "length": 0.5, **STAMPS}
    line = json.dumps(boat).replace("7.5", f'{{ "a" :[ {digits}, 1e300]}}').replace("0.5", digits)
    write(directory, "onto_boats", line, line.replace(NOWHERE, ELSEWHERE).replace(digits, f'"{digits}"'))

    import_directory(fleet[0], directory, fleet[1])

    assert column(fleet[0], "select length from onto_boats") == [digits, digits]
    assert column(fleet[0], "select copy from onto_boats where id::text like '%d'") == [
        f'{{"a": [{digits}, 1{"0" * 300}]}}'
    ]


def test_a_number_out_of_range_by_its_last_digit_is_refused(
    fleet: tuple[Connection, Catalog], directory: Path
) -> None:
    boat = {"id": NOWHERE, "project_id": PROJECT, "name": "Petrel", "copy": 0, "length": 0.5, **STAMPS}
    write(directory, "onto_boats", json.dumps(boat).replace("0.5", "500.00000000000000000000001"))

    with pytest.raises(BadRows, match=r"onto_boats\.jsonl:1: column 'length': .* less than or equal to 500"):
        import_directory(fleet[0], directory, fleet[1])


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
ZONES = st.builds(lambda minutes: timezone(timedelta(minutes=minutes)), st.integers(-1439, 1439))
MOMENTS = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=ZONES)  # noqa: DTZ001 - ZONES has it
NUMBERS = st.integers(-(10**40), 10**40) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=10,
)


ROWS = st.fixed_dictionaries(
    {"title": TEXT, "due_at": MOMENTS.map(datetime.isoformat), "props": JSON},
    optional={"state_key": st.none() | TEXT, "priority": st.none() | st.integers(1, 5)},
)


@given(row=ROWS)
@settings(max_examples=40)
def test_any_legal_values_come_back_as_they_went_in(
    connection: Connection, catalog: Catalog, directory: Path, row: dict[str, Any]
) -> None:
    write(directory, "onto_tasks", task(1, **row))

    import_directory(connection, directory, catalog)

    query = "select title, state_key, priority, extract(epoch from due_at), props from onto_tasks"
    ((*plain, seconds, props),) = connection.execute(query).fetchall()
    assert plain == [row["title"], row.get("state_key"), row.get("priority")]
    assert EPOCH + timedelta(microseconds=int(Decimal(seconds) * 10**6)) == datetime.fromisoformat(row["due_at"])
    assert exactly(props or "null") == exactly(json.dumps(row["props"]))


# ---- handles


def test_projects_have_their_handles_in_the_order_of_the_file(
    connection: Connection, catalog: Catalog, directory: Path
) -> None:
    last, first, late = (uid(f"project {name}") for name in ("z", "a", "late"))
    numbers = "select entity_id from fw_handles where kind = 'project' order by number"
    write(directory, "onto_projects", project(last), project(first))
    import_directory(connection, directory, catalog)

    write(directory, "onto_projects", project(late), project(first), project(last))
    import_directory(connection, directory, catalog)

    assert column(connection, numbers) == [last, first, late]
