"""Ctrl-C, SIGTERM and a closed terminal in the middle of every command that takes its time.

What the middle is, is not left to chance: a lock that the test holds keeps a build or a merge where it is.
"""

import json
import signal
from pathlib import Path

import pytest
from acceptance.system import System, held, is_waited
from processes import CHECKOUT, Commands, eventually, runs

from foreword.reader import TRUSTED
from loaders import ledger
from loaders.claims import EDITS
from worker.app import REBUILD
from worker.servers import embedded

SAMPLE = CHECKOUT / "samples" / "harbour"
LIBRARY = "a8e1bf1f-2157-5c0b-a103-3b8fa71a9b3b"
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
ROWS = 60_000


@pytest.fixture(scope="module")
def sample(system: System) -> System:
    done = system.commands.run("import", str(SAMPLE))
    assert done.code == 0, done.err
    return system


def counted(system: System, table: str) -> int:
    row = system.connection.execute(f"select count(*) from {table}".encode()).fetchone()
    assert row is not None
    return int(row[0])


# ---- import


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that takes seconds to import."""
    directory = tmp_path_factory.mktemp("many")
    project = "00000000-0000-4000-8000-000000000001"
    times = {"created_at": "2026-11-21T00:00:00Z", "updated_at": "2026-11-21T00:00:00Z"}
    (directory / "onto_projects.jsonl").write_text(
        json.dumps({"id": project, "name": "Many", **times}) + "\n", encoding="utf-8"
    )
    with (directory / "onto_tasks.jsonl").open("w", encoding="utf-8") as file:
        for n in range(ROWS):
            row = {"id": f"00000000-0000-4000-9000-{n:012}", "project_id": project, "title": f"Task {n}", **times}
            file.write(json.dumps(row) + "\n")
    return directory


@pytest.mark.promise("worker.interrupt", "import.atomic")
def test_an_import_that_is_interrupted_imports_nothing(sample: System, many_rows: Path) -> None:
    before = counted(sample, "onto_tasks"), counted(sample, "onto_projects")

    with (
        held(sample.services.database_url, "share"),  # so that it cannot be done before it is told
        sample.commands.start("import", str(many_rows)) as running,
    ):
        assert running.says("importing: 20 %")
        ended = running.tell(signal.SIGINT)

    assert (ended.code, ended.out) == (130, "")
    assert ended.err.endswith("interrupted; nothing half done is left\n")
    assert (counted(sample, "onto_tasks"), counted(sample, "onto_projects")) == before


@pytest.mark.promise("worker.interrupt", "import.atomic")
@pytest.mark.parametrize("number", CODES)
def test_an_import_that_is_told_to_end_while_it_merges_imports_nothing(
    sample: System, tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "onto_tasks.jsonl").write_text(
        (SAMPLE / "onto_tasks.jsonl").read_text(encoding="utf-8").replace('"title":"', '"title":"Changed '),
        encoding="utf-8",
    )

    with (
        held(sample.services.database_url, "share") as looking,
        sample.commands.start("import", str(tmp_path)) as running,
    ):
        assert eventually(lambda: is_waited(looking))
        ended = running.tell(number)
        waits_on = is_waited(looking)

    assert ended.code == CODES[number], ended.err
    assert not waits_on  # the server was told, and does not go on
    assert counted(sample, "onto_tasks where title like 'Changed%'") == 0


# ---- work


@pytest.mark.promise("worker.interrupt")
@pytest.mark.parametrize("number", CODES)
def test_a_worker_that_is_told_to_end_finishes_its_build(sample: System, number: signal.Signals) -> None:
    asked = ledger.request_builds(sample.connection, [LIBRARY])

    with sample.worker("--concurrency", "2") as running:
        with held(sample.services.database_url) as looking:
            sample.app().send_task(REBUILD, args=[LIBRARY], queue=EDITS, retry=False)
            assert eventually(lambda: is_waited(looking))
            running.process.send_signal(number)
            assert eventually(lambda: "Warm shutdown" in "".join(running.out + running.err))
            assert running.process.poll() is None
        ended = running.ended()

    assert ended.code == 0, ended.err
    assert not sample.commands.left()
    assert ledger.answers(sample.connection, asked) == {LIBRARY: None}
    assert sample.reader.project(LIBRARY, actor=TRUSTED)


# ---- rebuild


@pytest.mark.promise("worker.interrupt", "worker.progress")
def test_a_rebuild_that_is_told_to_end_leaves_the_worker_to_its_builds(sample: System) -> None:
    with sample.worker("--concurrency", "2") as worker:
        with (
            held(sample.services.database_url) as looking,
            sample.commands.start("rebuild", "--all") as running,
        ):
            assert eventually(lambda: is_waited(looking))
            ended = running.tell(signal.SIGTERM)
            waiting = counted(sample, "fw_projects where requested > finished")
        answered = eventually(lambda: counted(sample, "fw_projects where requested > finished") == 0)

    assert (ended.code, ended.out) == (143, "")
    assert waiting == 2
    assert answered
    assert worker.process.returncode == 0


@pytest.mark.promise("worker.interrupt")
def test_a_second_ctrl_c_does_not_wait_for_a_build_and_leaves_nothing(commands: Commands) -> None:
    data = commands.home / "data"
    options = ["--data-dir", str(data)]
    with embedded(data) as addresses:
        assert commands.run(*options, "import", str(SAMPLE)).code == 0
        with (
            held(addresses.database_url) as looking,
            commands.start(*options, "rebuild", "--all") as running,
        ):
            assert eventually(lambda: is_waited(looking))
            family = running.children
            running.process.send_signal(signal.SIGINT)
            assert running.says("stopping the worker")
            assert running.process.poll() is None

            ended = running.tell(signal.SIGINT)

            assert not any(runs(each) for each in family)
        built = commands.run(*options, "rebuild", "--all", "--inline")

    assert (ended.code, ended.out) == (130, "")
    assert "Traceback" not in ended.err
    assert built.out == "rebuilt 2 of 2 projects\n"
    assert not commands.left()
