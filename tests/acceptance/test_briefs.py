"""Briefs as a user has them: who gets one, one at once, those on schedule by real processes, what was given up."""

import csv
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from acceptance.system import AS_OF, System, Tell
from model_server import Script, fails, model_server, streams
from processes import CHECKOUT, Ended, Running, arguments, eventually
from strategies import uid

from foreword import tokens
from foreword.reader import Reader
from loaders import brief_queue, briefs
from loaders.subscriptions import save
from loaders.wanted import wanted
from worker.servers import Addresses

SAMPLE = CHECKOUT / "samples" / "harbour"
IDRIS, ASTA = "a7af32f0-f494-5c31-afaa-1331553955cc", "d3e203a5-d5ea-50e8-811a-37dc1dbcb303"
TOVE = "4d485163-42a7-59eb-9fec-c01eccb9dd5c"
MAIL = "asta@netloft.example.org"
NOBODY = "00000000-0000-4000-8000-000000000000"
CODES = {signal.SIGTERM: 0, signal.SIGINT: 0}


@pytest.fixture(scope="module")
def sample(system: System) -> System:
    done = system.commands.run("import", str(SAMPLE))
    assert done.code == 0, done.err
    return system


@pytest.fixture(autouse=True)
def nothing_yet(sample: System) -> None:
    """No subscription and no brief."""
    sample.redis.flushall()
    for table in ("announcements", "briefs", "subscriptions", "model_calls"):
        sample.connection.execute(f"delete from fw_{table}".encode())


def of_json(told: Ended) -> Any:
    assert told.code == 0, told.err
    return json.loads(told.out)


def counted(system: System, table: str) -> int:
    return int(system.connection.execute(f"select count(*) from {table}".encode()).fetchall()[0][0])


# ---- who gets one, and when


@pytest.mark.promise("brief.edit")
def test_a_subscription_is_added_changed_paused_resumed_and_removed(tell: Tell) -> None:
    where = ["--zone", "Europe/Copenhagen", "--json"]
    options = ["--at", "7:30", "--weekly", "mon", "--channel", "mail", "--channel", "chat", "--when-empty", "none"]

    (added,) = of_json(tell("subscriptions", "add", MAIL, *where, *options, "--tenant", "library"))
    (changed,) = of_json(tell("subscriptions", "add", ASTA, "--daily", "--at", "08:00:30", "--json"))
    (paused,) = of_json(tell("subscriptions", "pause", MAIL.upper(), "--json"))
    (resumed,) = of_json(tell("subscriptions", "resume", ASTA, "--json"))
    shown = tell("subscriptions", "list")
    removed = [tell("subscriptions", "remove", MAIL).out, tell("subscriptions", "remove", MAIL).out]
    nobody = tell("subscriptions", "list")

    assert (added["user_id"], added["at"], added["weekday"], added["tenant"]) == (ASTA, "07:30:00", 0, "library")
    assert (added["channels"], added["when_empty"], added["active"]) == (["chat", "mail"], "none", True)
    assert datetime.fromisoformat(added["next_run_at"]) > datetime.now(UTC)
    assert date.fromisoformat(added["next_date"]).weekday() == 0
    assert (changed["at"], changed["weekday"]) == ("08:00:30", None)
    kept = ("zone", "channels", "when_empty", "tenant")
    assert [changed[name] for name in kept] == [added[name] for name in kept]
    assert (paused["active"], paused["next_run_at"], resumed["active"]) == (False, None, True)
    assert resumed["next_run_at"] == changed["next_run_at"]
    assert all(words in shown.out for words in (ASTA, "Europe/Copenhagen", "08:00:30", "daily", "active"))
    assert removed == ["removed\n", "there was none\n"]
    assert "nobody yet; `python -m worker subscriptions add USER --zone ZONE`" in nobody.out


@pytest.mark.promise("cli.errors", "zones.named")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["add", MAIL, "--zone", "Europe/Berln"], "no time zone 'Europe/Berln'; did you mean Europe/Berlin?"),
        (["add", MAIL], "a subscription needs zone; give one, such as Europe/Berlin"),
        (["add", MAIL, "--zone", "UTC", "--at", "25:00"], "is no time of day; write HH:MM"),
        (["add", MAIL, "--zone", "UTC", "--weekly", "mondy"], "did you mean 'monday'"),
        (["add", MAIL, "--zone", "UTC", "--channel", "fax"], "there is no channel 'fax'"),
        (["add", MAIL, "--zone", "UTC", "--when-empty", "some"], "it is brief or none"),
        (["add", "nobody@example.org", "--zone", "UTC"], "there is no live actor 'nobody@example.org'"),
        (["add", NOBODY, "--zone", "UTC"], "there is no live actor"),
        (["pause", MAIL], "has no subscription"),
        (["resume", MAIL], "has no subscription"),
        (["list", "--user", MAIL], "has no subscription"),
        (["import", "/nonexistent.csv"], "cannot read /nonexistent.csv"),
        (["import", str(SAMPLE / "README.md")], "is neither .jsonl nor .csv"),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, list) else "",
)
def test_what_cannot_be_meant_is_said_and_changes_nothing(
    sample: System, tell: Tell, arguments: list[str], says: str
) -> None:
    told = tell("subscriptions", *arguments)

    assert (told.code, told.out) == (2, "")
    assert says in told.err
    assert "Traceback" not in told.err
    assert counted(sample, "fw_subscriptions") == 0


ROWS = [
    {"user": MAIL, "zone": "Europe/Copenhagen", "at": "07:30"},
    {"user": IDRIS, "zone": "Africa/Lagos", "weekday": "fri", "channels": "mail"},
    {"user": TOVE, "zone": "UTC", "active": "false"},
]


@pytest.mark.promise("brief.enrol")
@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_subscriptions_are_imported_from_a_file_and_again_changes_nothing(
    sample: System, tell: Tell, tmp_path: Path, suffix: str
) -> None:
    file = tmp_path / f"who{suffix}"
    if suffix == ".csv":
        with file.open("w", encoding="utf-8", newline="") as opened:
            writer = csv.DictWriter(opened, ["user", "zone", "at", "weekday", "channels", "active"])
            writer.writeheader()
            writer.writerows(ROWS)
    else:
        file.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")

    first, second = tell("subscriptions", "import", str(file)), tell("subscriptions", "import", str(file))

    assert (first.code, first.out) == (0, "3 subscriptions, 3 new or changed, 0 skipped\n")
    assert second.out == "3 subscriptions, 0 new or changed, 0 skipped\n"
    listed = {each["user_id"]: each for each in of_json(tell("subscriptions", "list", "--json"))}
    assert [listed[user]["zone"] for user in (ASTA, IDRIS, TOVE)] == ["Europe/Copenhagen", "Africa/Lagos", "UTC"]
    assert [listed[user]["active"] for user in (ASTA, IDRIS, TOVE)] == [True, True, False]
    assert listed[IDRIS]["weekday"] == 4


@pytest.mark.promise("brief.enrol", "cli.errors")
def test_of_a_bad_file_nothing_is_imported_or_the_good_rows_where_that_is_said(
    sample: System, tell: Tell, tmp_path: Path
) -> None:
    file = tmp_path / "who.jsonl"
    bad = [{"user": MAIL, "zone": "Europe/Berln"}, {"user": "nobody", "zone": "UTC"}, {"zone": "UTC"}]
    file.write_text("\n".join(map(json.dumps, [ROWS[1], *bad])) + "\n{", encoding="utf-8")

    refused = tell("subscriptions", "import", str(file))
    before = counted(sample, "fw_subscriptions")
    skipped = tell("subscriptions", "import", str(file), "--skip-bad", "--json")

    assert (refused.code, refused.out, before) == (2, "", 0)
    for place in (
        "who.jsonl:2: ",
        "did you mean Europe/Berlin",
        "who.jsonl:3: ",
        "who.jsonl:4: ",
        "who.jsonl:5: ",
    ):
        assert place in refused.err
    assert skipped.code == 0
    assert (json.loads(skipped.out)["rows"], len(json.loads(skipped.out)["skipped"])) == (1, 4)
    assert skipped.err.count("skipped who.jsonl:") == 4
    assert counted(sample, "fw_subscriptions") == 1


# ---- one at once


@pytest.mark.promise("brief.by-hand")
def test_a_brief_is_shown_in_every_form_and_made_once(sample: System, tell: Tell) -> None:
    shown = {form: tell("brief", MAIL, *form) for form in ((), ("--markdown",), ("--html",), ("--text",))}
    document = of_json(tell("brief", "7cb6e3b6-221c-5ba4-8e74-8423471bc8f8", "--json"))

    assert {told.code for told in shown.values()} == {0}
    assert {told.err for told in shown.values()} == {f"brief of {AS_OF}, revision 1, words by template\n"}
    assert shown[()] == shown["--markdown",]
    assert shown[()].out.startswith("# ")
    assert shown["--html",].out.lstrip().lower().startswith("<!doctype html")
    text = shown["--text",].out.removesuffix("\n")
    assert f"brief of {AS_OF}, UTC" in text
    assert tokens.count(text) <= 1500
    assert (document["user"], document["date"], document["kind"]) == (ASTA, AS_OF, "asked")
    assert document["totals"]["overdue"] == 9
    assert counted(sample, "fw_briefs") == 1
    assert counted(sample, "fw_announcements") == 0
    copy = sample.reader.brief(ASTA)
    assert (copy.status, copy.data, copy.text.rstrip("\n")) == ("fresh", document, text.rstrip("\n"))


@pytest.mark.promise("brief.by-hand")
def test_another_date_by_force_and_without_keeping_it(sample: System, tell: Tell) -> None:
    dry = tell("brief", ASTA, "--dry-run")
    kept = counted(sample, "fw_briefs")
    yesterday = tell("brief", ASTA, "--date", "2026-11-20", "--json")
    today = tell("brief", ASTA, "--json")
    forced = tell("brief", ASTA, "--force", "--json")
    again = tell("brief", ASTA, "--dry-run", "--date", "2026-11-20", "--text")

    assert (dry.code, dry.err, kept) == (0, "nothing was kept\n", 0)
    assert dry.out.startswith("# ")
    assert of_json(yesterday)["date"] == "2026-11-20"
    assert (of_json(today)["since"], today.err) == (
        "2026-11-20",
        f"brief of {AS_OF}, revision 1, words by template\n",
    )
    assert forced.err == f"brief of {AS_OF}, revision 2, words by template\n"
    assert (again.code, "brief of 2026-11-20" in again.out) == (0, True)
    listed = of_json(tell("briefs", "list", MAIL, "--json"))
    heads = [(head["local_date"], head["revision"], head["state"]) for head in listed]
    assert heads == [(AS_OF, 2, "ready"), ("2026-11-20", 1, "ready")]


@pytest.mark.promise("brief.by-hand")
def test_a_subscriptions_zone_is_the_briefs(tell: Tell) -> None:
    tell("subscriptions", "add", MAIL, "--zone", "Pacific/Auckland")

    assert of_json(tell("brief", MAIL, "--json"))["zone"] == "Pacific/Auckland"
    assert of_json(tell("brief", IDRIS, "--json", FOREWORD_ZONE="Asia/Kolkata"))["zone"] == "Asia/Kolkata"


@pytest.mark.promise("cli.errors")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([MAIL, "--date", "2026-11-22"], "2026-11-22 has not begun in UTC, where it is 2026-11-21"),
        ([MAIL, "--date", "tomorrow"], "does not match the format"),
        ([MAIL, "--date", "0001-01-01"], "there are no briefs of dates before 1970-01-01"),
        (["nobody"], "there is no live actor 'nobody'"),
        ([], "Missing argument 'USER'"),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, list) else "",
)
def test_a_brief_that_cannot_be_meant_is_refused(
    sample: System, tell: Tell, arguments: list[str], says: str
) -> None:
    told = tell("brief", *arguments)

    assert (told.code, told.out) == (2, "")
    assert says in told.err
    assert counted(sample, "fw_briefs") == 0


@pytest.mark.promise("brief.by-hand", "brief.lease")
def test_one_that_another_makes_is_waited_for_and_taken_over_when_he_dies(sample: System, tell: Tell) -> None:
    day = date.fromisoformat(AS_OF)
    assert isinstance(briefs.begin_now(sample.connection, ASTA, day, force=False), briefs.Begun)
    sample.connection.execute("update fw_briefs set quiet_until = now() + interval '1 s'")

    told = tell("brief", MAIL)

    waits = f"the brief of {AS_OF} is being made by another; waiting for it\n"
    assert (told.code, told.err) == (0, f"{waits}brief of {AS_OF}, revision 1, words by template\n")


@pytest.mark.promise("brief.dead")
def test_a_brief_that_fails_is_said_and_can_be_asked_for_again(sample: System, tell: Tell) -> None:
    sample.connection.execute("alter table fw_handles rename to fw_handles_away")
    try:
        failed = tell("brief", MAIL)
        listed = of_json(tell("briefs", "list", MAIL, "--json"))
    finally:
        sample.connection.execute("alter table fw_handles_away rename to fw_handles")

    assert (failed.code, failed.out) == (1, "")
    assert failed.err.startswith("error: ")
    assert "Traceback" not in failed.err
    assert [(head["state"], head["attempts"]) for head in listed] == [("pending", 1)]
    assert listed[0]["reason"]
    assert tell("brief", MAIL).code == 0


# ---- how they stand


@pytest.mark.promise("brief.by-hand")
def test_how_briefs_stand_is_told_to_people_and_scripts(sample: System, tell: Tell) -> None:
    tell("subscriptions", "add", MAIL, "--zone", "UTC")
    tell("subscriptions", "add", IDRIS, "--zone", "UTC")
    tell("subscriptions", "pause", IDRIS)
    tell("brief", MAIL)

    stands = of_json(tell("briefs", "status", "--json"))
    shown = tell("briefs", "status")
    listed = tell("briefs", "list", MAIL)

    assert (stands["states"], stands["active"], stands["paused"], stands["broken"]) == ({"ready": 1}, 1, 1, 0)
    assert (stands["pending"], stands["overdue"], stands["briefs_dead"]) == (0, 0, 0)
    assert datetime.fromisoformat(stands["next_due"]) > datetime.now(UTC) - timedelta(minutes=1)
    assert "1 active, 1 paused, 0 broken" in shown.out
    assert (AS_OF in listed.out, "ready" in listed.out, "asked" in listed.out) == (True, True, True)
    assert tell("briefs", "list", TOVE).code == 0


@pytest.mark.promise("brief.dead")
def test_what_was_given_up_is_listed_and_tried_again(sample: System, tell: Tell) -> None:
    own = sample.connection
    own.execute(
        "insert into fw_briefs (user_id, local_date, state, kind, zone, due_at, build_at)"
        " values (%s, (now() at time zone 'Etc/GMT-14')::date, 'pending', 'daily', 'UTC', now(), now())",
        [IDRIS],
    )
    ((user, day, _),) = brief_queue.claim(own, 1)
    begun = briefs.begin(own, user, day)
    assert begun is not None
    briefs.fail(own, begun, "the tables are away", permanent=True)

    (letter,) = of_json(tell("dead-letters", "list", "--json"))
    shown = tell("dead-letters", "list")
    wrong = [tell("dead-letters", "replay"), tell("dead-letters", "replay", MAIL, "--all")]
    others = tell("dead-letters", "replay", MAIL)
    replayed = tell("dead-letters", "replay", IDRIS, "--date", day.isoformat())
    nothing = tell("dead-letters", "replay", "--all")

    assert (letter["user_id"], letter["channel"], letter["error"]) == (IDRIS, None, "the tables are away")
    assert "the tables are away" in shown.out
    assert [(told.code, told.out) for told in wrong] == [(2, "")] * 2
    assert "name a user, or say --all" in wrong[0].err
    assert others.out == nothing.out == "trying again 0 briefs and 0 announcements\n"
    assert replayed.out == "trying again 1 briefs and 0 announcements\n"
    assert [head["state"] for head in of_json(tell("briefs", "list", IDRIS, "--json"))] == ["pending"]
    assert tell("dead-letters", "list").out.endswith("none\n")


# ---- a model


SAYS = "There are 9 overdue tasks and 20 blocked tasks."
LIE = "There are 8 overdue tasks, and T999 is done."


@pytest.fixture
def model() -> Iterator[Script]:
    with model_server() as script:
        yield script


@pytest.fixture
def of_model(tell: Tell, model: Script) -> Tell:
    """Commands where a model is configured."""
    variables = {"FOREWORD_MODEL_URL": model.url, "FOREWORD_MODEL_NAME": "m", "FOREWORD_MODEL_KEY": "sk-s3cret"}
    prices = {"FOREWORD_MODEL_PRICE_IN": "0.15", "FOREWORD_MODEL_PRICE_OUT": "0.60"}
    return lambda *arguments, **more: tell(*arguments, **variables, **prices, **more)


def calls(system: System) -> list[tuple[Any, ...]]:
    return system.connection.execute(
        "select prompt, model, prompt_tokens, completion_tokens, cost::text, outcome"
        " from fw_model_calls order by id"
    ).fetchall()


@pytest.mark.promise("model.words", "model.recorded")
def test_a_models_true_words_are_used_and_its_calls_recorded(
    sample: System, of_model: Tell, model: Script
) -> None:
    model.does(streams(SAYS), streams("There are 9 overdue tasks."))

    told = of_model("brief", MAIL, "--json")

    document = of_json(told)
    assert document["summary"] == {"text": SAYS, "words": "model", "why": None}
    narrative = document["projects"][0]["narrative"]
    assert narrative == {"text": "There are 9 overdue tasks.", "words": "model", "why": None}
    assert told.err == f"brief of {AS_OF}, revision 1, words by model\n"
    cost = "0.000228"
    assert calls(sample) == [
        (prompt, "m", 1200, 80, cost, "ok") for prompt in ("brief_summary.1", "brief_project.1")
    ]
    assert [asked.headers["authorization"] for asked in model.asked] == ["Bearer sk-s3cret"] * 2
    assert SAYS in of_model("brief", MAIL).out
    assert len(model.asked) == 2  # it is kept


@pytest.mark.promise("model.checked", "model.recorded")
def test_a_model_that_lies_is_asked_once_more_and_then_the_template_stands(
    sample: System, of_model: Tell, model: Script
) -> None:
    model.does(streams(LIE))

    document = of_json(of_model("brief", MAIL, "--json"))

    assert document["summary"]["words"] == "template"
    assert document["summary"]["why"].startswith("refused: ")
    assert "8" in document["summary"]["why"] or "T999" in document["summary"]["why"]
    assert LIE not in document["summary"]["text"]
    assert document["projects"][0]["narrative"]["words"] == "template"
    assert [call[-1] for call in calls(sample)] == ["ok"] * 4
    (head,) = of_json(of_model("briefs", "list", MAIL, "--json"))
    assert (head["words"], head["reason"]) == ("template", document["summary"]["why"])


@pytest.mark.promise("model.outage", "model.breaker", "model.recorded")
def test_a_model_that_is_down_costs_no_brief_and_is_left_alone(
    sample: System, of_model: Tell, model: Script
) -> None:
    for number in range(5):
        project = uid(f"project {number}")
        sample.connection.execute(
            "insert into onto_projects (id, name, state_key) values (%s, %s, 'active')", [project, f"P{number}"]
        )
        sample.connection.execute(
            "insert into onto_tasks (id, project_id, title, state_key, due_at) values (%s, %s, 'x', 'todo', %s)",
            [uid(f"task {number}"), project, AS_OF],
        )
        sample.connection.execute(
            "insert into onto_project_members (id, project_id, actor_id, role_key) values (%s, %s, %s, 'owner')",
            [uid(f"member {number}"), project, TOVE],
        )
    model.does(fails(401))

    try:
        document = of_json(of_model("brief", TOVE, "--json"))
    finally:
        sample.connection.execute("delete from onto_projects where name like 'P_'")
        sample.connection.execute(
            "delete from onto_project_members where role_key = 'owner' and id = any(%s)",
            [[uid(f"member {number}") for number in range(5)]],
        )
        sample.connection.execute("delete from onto_tasks where title = 'x'")

    narratives = [section["narrative"] for section in document["projects"][:5]]
    assert {words["words"] for words in (document["summary"], *narratives)} == {"template"}
    assert "refuses every request" in document["summary"]["why"]
    assert "left alone for" in narratives[-1]["why"]
    assert [call[-1] for call in calls(sample)] == ["denied"] * 3
    assert len(model.asked) == 3
    assert "sk-s3cret" not in json.dumps(document)


@pytest.mark.promise("model.optional")
def test_a_model_without_a_name_is_said_before_anything_is_made(sample: System, tell: Tell) -> None:
    told = tell("brief", MAIL, FOREWORD_MODEL_URL="http://127.0.0.1:1/v1")

    assert (told.code, told.out) == (2, "")
    assert "set FOREWORD_MODEL_NAME" in told.err
    assert counted(sample, "fw_briefs") == 0


# ---- scheduled ones


@pytest.fixture(scope="module")
def fresh(servers: Addresses, migrated: str, bytecode: Path) -> Iterator[System]:
    """A system with the sample, whose clock is today's."""
    with System.over(servers, migrated, bytecode) as system:
        system.commands.environment.pop("FOREWORD_AS_OF")  # type: ignore[attr-defined]
        done = system.commands.run("import", str(SAMPLE))
        assert done.code == 0, done.err
        yield system


@pytest.fixture
def scheduled(fresh: System) -> Callable[..., datetime]:
    """Subscribes somebody to what is due in some seconds; when that is."""
    fresh.redis.flushall()
    for table in ("announcements", "briefs", "subscriptions", "leader"):
        fresh.connection.execute(f"delete from fw_{table}".encode())
    fresh.connection.execute("delete from fw_facts where name = 'ticked'")

    def schedule(user: str, seconds: float) -> datetime:
        ((now,),) = fresh.connection.execute("select clock_timestamp()").fetchall()
        due = (datetime.fromisoformat(now) + timedelta(seconds=seconds)).replace(microsecond=0)
        zone = "UTC" if due.hour not in {23, 0} else "Etc/GMT+6"  # no date is to end meanwhile
        at = due.astimezone(UTC) if zone == "UTC" else due.astimezone(UTC) - timedelta(hours=6)
        save(fresh.connection, wanted({"user_id": user, "zone": zone, "at": f"{at:%H:%M:%S}"}))
        return due

    return schedule


@contextmanager
def running(system: System, *arguments: str, **variables: str) -> Iterator[Running]:
    """A command that runs until the end of the block, and is then told to end."""
    with system.commands.start(*arguments, **variables) as one:
        yield one
        if one.process.poll() is None:
            assert one.tell(signal.SIGTERM).code in {0, 143}, one.err


def told_of(system: System) -> list[tuple[float, dict[str, str]]]:
    """Announcements in the stream: when, in seconds since 1970, and what."""
    found = Reader(system.redis).ready()
    return [(int(place.partition("-")[0]) / 1000, dict(event)) for place, event in found]


def states(system: System) -> dict[str, tuple[str, int]]:
    rows = system.connection.execute("select user_id, state, revision from fw_briefs").fetchall()
    return {user: (state, revision) for user, state, revision in rows}


@pytest.mark.promise("brief.told", "brief.by-hand", "brief.row")
def test_what_a_beat_ticks_workers_make_and_a_relay_tells_at_its_hour(
    fresh: System, scheduled: Callable[..., datetime]
) -> None:
    due = scheduled(ASTA, 11)
    by_hand = fresh.commands.run("brief", MAIL, "--json")  # of the date of their zone, which they now have
    assert scheduled(IDRIS, 11) >= due

    with running(fresh, "beat"), fresh.worker("--concurrency", "2"):
        ticked = eventually(lambda: states(fresh).get(IDRIS) == ("pending", 0))
        with running(fresh, "relay"):
            made = eventually(lambda: set(states(fresh).values()) == {("ready", 1), ("ready", 2)})
            early = told_of(fresh), fresh.connection.execute("select clock_timestamp()").fetchall()[0][0]
            told = eventually(lambda: len(told_of(fresh)) == 2)
            at_rest = [counted(fresh, "fw_briefs"), counted(fresh, "fw_announcements")]

    assert by_hand.code == 0, by_hand.err
    assert ticked
    assert made
    assert datetime.fromisoformat(early[1]) >= due or early[0] == []
    assert told
    assert at_rest == [2, 2]
    assert states(fresh) == {ASTA: ("ready", 2), IDRIS: ("ready", 1)}
    for at, event in told_of(fresh):
        assert at >= due.timestamp()
        assert (event["kind"], event["revision"]) == ("daily", "2" if event["user"] == ASTA else "1")
        brief = Reader(fresh.redis).brief(event["user"], event["date"])
        assert brief.status == "fresh"
        assert brief.data["totals"]["projects"] >= 1


@pytest.mark.promise("brief.told", "brief.late", "fresh.lost-messages")
@pytest.mark.parametrize("options", [(), ("--inline",)], ids=["no worker", "inline"])
def test_a_relay_alone_schedules_makes_and_tells(
    fresh: System, scheduled: Callable[..., datetime], options: tuple[str, ...]
) -> None:
    due = scheduled(IDRIS, 4)
    down = {} if not options else {"FOREWORD_BROKER_URL": "redis://127.0.0.1:1/0"}

    with running(fresh, "relay", *options, **down):
        assert eventually(lambda: told_of(fresh))
        asked = fresh.reader.brief(IDRIS).data
        fresh.redis.delete(*fresh.redis.keys("fw:*brief*latest"))
        again = eventually(lambda: Reader(fresh.redis).brief(IDRIS).data == asked)

    ((at, event),) = told_of(fresh)
    assert at >= due.timestamp()
    assert event["user"] == IDRIS
    assert again  # what a reader misses is copied again
    assert states(fresh) == {IDRIS: ("ready", 1)}


# ---- beat


@pytest.mark.promise("worker.interrupt")
@pytest.mark.parametrize("number", CODES)
def test_a_beat_that_is_told_to_end_ends_at_once(fresh: System, number: signal.Signals) -> None:
    with fresh.commands.start("beat", "--loglevel", "INFO") as one:
        assert one.says("beat: Starting"), one.err
        ended = one.tell(number)

    assert ended.code == CODES[number], ended.err
    assert "Traceback" not in ended.err
    assert not fresh.commands.left()


@pytest.mark.promise("cli.down")
def test_a_beat_without_a_broker_says_so(fresh: System) -> None:
    told = fresh.commands.run("beat", FOREWORD_BROKER_URL="redis://127.0.0.1:1/0")

    assert (told.code, told.out) == (3, "")
    assert "Redis does not answer" in told.err
    assert "FOREWORD_BROKER_URL" in told.err
    assert "Traceback" not in told.err


@pytest.mark.promise("worker.interrupt")
def test_up_runs_a_beat_beside_a_worker_and_a_relay(fresh: System) -> None:
    def commands(of: Running) -> set[str]:
        return {word for child in of.children for word in arguments(child)[1:]}

    with fresh.commands.start("up") as one:
        assert one.says("foreword is up"), one.err
        runs = eventually(lambda: {"work", "relay", "beat"} <= commands(one))
        ended = one.tell(signal.SIGTERM)

    assert runs
    assert ended.code == 143
    assert not fresh.commands.left()
