"""One suite over every reader: in memory, over Redis, over Redis with decoded responses, awaited."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import Any, Protocol

import pytest
import redis
import redis.asyncio
from briefs import an_account, brief
from hypothesis import given
from hypothesis import strategies as st
from strategies import PROJECT_ID, a_hostile_project, a_project, a_task, projects, rendered, texts, uid

from foreword import AsyncReader, BadBudget, BadInput, Context, NotAMember, Reader, codec, keys, reader, tokens
from foreword.brief_lines import brief_lines
from foreword.bundle import Content
from foreword.changes import difference, facts_of
from foreword.lines import Fitted, fit
from foreword.memory import MemoryStore
from foreword.ports import News, Raw, Store
from foreword.rows import ProjectRows
from foreword.stamp import SCHEMA, Stamp
from foreword.store import RedisStore

NOW = 1_795_000_000.0
MEMBER, STRANGER = uid("member"), uid("stranger")
ENTITY = uid("t")
FRESH = Stamp(
    epoch=1, generation=5, snapshot="10:20:", as_of="2026-11-21", valid_until=NOW + 60, built=NOW, budget=1500
)
TTL = 600


class Ask(Protocol):
    """Calls a method of a reader: ``ask("project", PROJECT_ID, actor=MEMBER)``."""

    def __call__(self, method: str, *args: Any, **kwargs: Any) -> Context: ...


class House:
    """A store, and a reader of it."""

    def __init__(self, store: Store, ask: Ask) -> None:
        self.store = store
        self.ask = ask

    def publish(self, rows: ProjectRows, stamp: Stamp = FRESH, *members: str) -> Content:
        """Build and publish a project as a worker does."""
        content = rendered(rows)
        text = fit(content.lines, content.always, 1500)
        fields = codec.encode(
            content,
            replace(stamp, tokens=text.tokens),
            text,
            [(actor, "viewer") for actor in members or (MEMBER,)],
        )
        self.store.publish(keys.project(rows.project_id), stamp.fence, fields, TTL)
        self.store.add_to_sets([keys.projects_of(actor) for actor in members or (MEMBER,)], rows.project_id)
        return content

    def publish_focus(self, rows: ProjectRows, stamp: Stamp = FRESH) -> Content:
        """A focus bundle has the fields of any bundle."""
        content = rendered(rows)
        text = fit(content.lines, content.always, 1500)
        fields = codec.encode(content, replace(stamp, tokens=text.tokens), text)
        for reference in (ENTITY, "T1"):
            self.store.publish(keys.focus(PROJECT_ID, reference), stamp.fence, fields, TTL)
        return content

    def spoil(self, key: str, stamp: Stamp, **fields: bytes) -> None:
        """Put damaged fields where a bundle was."""
        self.store.publish(key, stamp.fence, fields, TTL)


def sync(reader: Reader) -> Ask:
    def ask(method: str, *args: Any, **kwargs: Any) -> Context:
        found: Context = getattr(reader, method)(*args, **kwargs)
        return found

    return ask


def awaited(url: str) -> Ask:
    async def call(method: str, *args: Any, **kwargs: Any) -> Context:
        async with redis.asyncio.Redis.from_url(url) as client:
            found: Context = await getattr(AsyncReader(client, clock=lambda: NOW), method)(*args, **kwargs)
            return found

    return lambda method, *args, **kwargs: asyncio.run(call(method, *args, **kwargs))


@pytest.fixture(params=["memory", "redis", "redis, decoded", "redis, awaited"])
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    """An empty store and a reader of it whose clock stands at NOW."""
    if request.param == "memory":
        store = MemoryStore()
        yield House(store, sync(Reader.over(store, clock=lambda: NOW)))
        return
    url = request.getfixturevalue("redis_url")
    with redis.Redis.from_url(url, decode_responses=request.param == "redis, decoded") as client:
        awaits = request.param == "redis, awaited"
        ask = awaited(url) if awaits else sync(Reader(client, clock=lambda: NOW))
        yield House(RedisStore(client), ask)


# ---- a project


@pytest.mark.promise("reader.twins", "reader.members")
def test_a_member_reads_the_text_its_exact_count_and_its_stamp(house: House) -> None:
    content = house.publish(a_project(tasks=[a_task("t")]))

    found = house.ask("project", PROJECT_ID, actor=MEMBER)

    text = fit(content.lines, content.always, 1500)
    assert (found.status, found.text, found.tokens) == ("fresh", text.text, text.tokens)
    assert found.tokens == tokens.count(found.text)
    assert found.stamp == replace(FRESH, tokens=text.tokens)
    assert found
    assert not found.data


@pytest.mark.parametrize("method", ["project", "bundle", "focus"])
@pytest.mark.promise("reader.members")
def test_a_stranger_gets_an_error_and_no_data(house: House, method: str) -> None:
    house.publish(a_project())
    house.publish_focus(a_project())
    entity = [ENTITY] if method == "focus" else []

    with pytest.raises(NotAMember, match=STRANGER):
        house.ask(method, PROJECT_ID, *entity, actor=STRANGER)


@pytest.mark.promise("reader.members")
def test_a_removed_member_is_out_with_the_next_bundle(house: House) -> None:
    house.publish(a_project(), FRESH, MEMBER, STRANGER)
    house.publish(a_project(), replace(FRESH, generation=6), MEMBER)

    with pytest.raises(NotAMember):
        house.ask("project", PROJECT_ID, actor=STRANGER, budget=500)
    assert house.ask("overview", STRANGER).data == {"projects": [], "not_built": 0}


@pytest.mark.parametrize("method", ["project", "bundle"])
@pytest.mark.promise("reader.members")
def test_trusted_reads_without_being_a_member(house: House, method: str) -> None:
    house.publish(a_project())

    assert house.ask(method, PROJECT_ID, actor=reader.TRUSTED).status == "fresh"


@pytest.mark.promise("reader.members")
def test_nobody_is_trusted_by_leaving_the_actor_out(house: House) -> None:
    house.publish(a_project())

    for actor in (None, "", "TRUSTED", True):
        with pytest.raises(BadInput):
            house.ask("project", PROJECT_ID, actor=actor)
    with pytest.raises(BadInput):
        house.ask("overview", reader.TRUSTED)


@pytest.mark.parametrize("actor", [MEMBER, STRANGER, reader.TRUSTED], ids=["member", "stranger", "trusted"])
@pytest.mark.promise("reader.stale")
def test_what_was_never_built_is_missing_for_anybody(house: House, actor: Any) -> None:
    for found in (
        house.ask("project", PROJECT_ID, actor=actor),
        house.ask("project", PROJECT_ID, actor=actor, budget=500),
        house.ask("bundle", PROJECT_ID, actor=actor),
        house.ask("focus", PROJECT_ID, ENTITY, actor=actor),
    ):
        assert found == Context("missing")
        assert not found


@pytest.mark.parametrize(("left", "status"), [(60, "fresh"), (0.001, "fresh"), (0, "stale"), (-86400, "stale")])
@pytest.mark.promise("reader.stale")
def test_a_bundle_is_stale_from_the_moment_its_dates_stop_being_true(
    house: House, left: float, status: str
) -> None:
    house.publish(a_project(), replace(FRESH, valid_until=NOW + left))

    found = house.ask("project", PROJECT_ID, actor=MEMBER)

    assert found.status == status
    assert found.text.startswith("# project")
    assert house.ask("project", PROJECT_ID, actor=MEMBER, budget=300).status == status
    assert house.ask("bundle", PROJECT_ID, actor=MEMBER).status == status
    assert house.ask("overview", MEMBER).status == status


@pytest.mark.promise("reader.stale", "store.fence")
def test_a_deleted_project_is_missing_and_a_late_build_cannot_bring_it_back(house: House) -> None:
    house.publish(a_project())
    house.publish_focus(a_project(), replace(FRESH, generation=9))
    gone = replace(FRESH, generation=6, gone=True)
    house.store.publish(keys.project(PROJECT_ID), gone.fence, codec.tombstone(gone), TTL)

    house.publish(a_project(), replace(FRESH, generation=5))

    for actor in (MEMBER, STRANGER, reader.TRUSTED):
        assert house.ask("project", PROJECT_ID, actor=actor).status == "missing"
        assert house.ask("project", PROJECT_ID, actor=actor, budget=500).status == "missing"
        assert house.ask("bundle", PROJECT_ID, actor=actor).status == "missing"
        assert house.ask("focus", PROJECT_ID, ENTITY, actor=actor).status == "missing"
    assert house.ask("overview", MEMBER).data == {"projects": [], "not_built": 0}


@pytest.mark.promise("store.version")
def test_a_bundle_of_another_version_is_missing(house: House) -> None:
    line = FRESH.line().replace(str(SCHEMA), str(SCHEMA + 1), 1).encode()
    house.spoil(
        keys.project(PROJECT_ID),
        FRESH,
        **{"meta": line, "text": line + b"hello\n", "lines": b"[0,[]]", "data": b"{}", f"m:{MEMBER}": b"owner"},
    )

    assert house.ask("project", PROJECT_ID, actor=MEMBER).status == "missing"
    assert house.ask("project", PROJECT_ID, actor=MEMBER, budget=500).status == "missing"
    assert house.ask("bundle", PROJECT_ID, actor=MEMBER).status == "missing"
    assert house.ask("focus", PROJECT_ID, ENTITY, actor=MEMBER).status == "missing"


@pytest.mark.promise("lines.budget", "reader.twins")
def test_any_budget_reads_as_a_fresh_fit(house: House) -> None:
    content = house.publish(a_hostile_project(3))

    for budget in (250, 251, 400, 999, 1500, 3000, 4000):
        found = house.ask("project", PROJECT_ID, actor=MEMBER, budget=budget)
        fitted = fit(content.lines, content.always, budget)
        assert (found.text, found.tokens) == (fitted.text, fitted.tokens)
        assert found.tokens == tokens.count(found.text) <= budget


@pytest.mark.parametrize("method", ["project", "focus", "overview"])
@pytest.mark.promise("lines.budget")
def test_a_budget_below_the_smallest_is_refused(house: House, method: str) -> None:
    args = {"project": [PROJECT_ID], "focus": [PROJECT_ID, ENTITY], "overview": [MEMBER]}[method]
    actor = {} if method == "overview" else {"actor": MEMBER}

    with pytest.raises(BadBudget):
        house.ask(method, *args, budget=249, **actor)


@pytest.mark.promise("reader.twins")
def test_the_structured_bundle_is_what_was_built(house: House) -> None:
    content = house.publish(a_hostile_project(4))

    found = house.ask("bundle", PROJECT_ID, actor=MEMBER)

    assert found.data == json.loads(json.dumps(content.data, default=dict))
    assert found.text == fit(content.lines, content.always, 1500).text


@given(rows=projects())
@pytest.mark.promise("reader.twins")
def test_any_project_reads_as_it_was_built(rows: ProjectRows) -> None:
    store = MemoryStore()
    house = House(store, sync(Reader.over(store, clock=lambda: NOW)))

    content = house.publish(rows)

    assert house.ask("bundle", PROJECT_ID, actor=MEMBER).data == json.loads(json.dumps(content.data, default=dict))


# ---- damage

DAMAGE = [
    b"",
    b"\n",
    b"null",
    b"[]",
    b"{}",
    b"0",
    b'"text"',
    b"[" * 100_000,
    b"1 0",
    b"1 0 soon 5 1 1 1500 0 d z s\ntext\n",
    b"1 0 1e9 many 1 1 1500 0 d z s\ntext\n",
    b"1 x 1e9 5 1 1 1500 0 d z s\ntext\n",
    b"[1]",
    b"[1,2]",
    b"[0,[[1,null,2]]]",
    b'[0,[[1,null,"2","x"]]]',
    b'["0",[[1,null,2,"x"]]]',
    b'{"relevance":"1"}',
    b'{"line":"x","tokens":1,"relevance":1,"header":{}}',
    b'{"header":null}',
]


ALL_READS = ("text", "other budget", "bundle", "focus", "overview")
READS_OF = {
    "meta": ("other budget", "focus", "overview"),
    "text": ("text", "bundle", "focus"),
    "lines": ("other budget",),
    "data": ("bundle", "focus"),
    "head": ("overview",),
}


def every_read(house: House) -> dict[str, Context]:
    return {
        "text": house.ask("project", PROJECT_ID, actor=MEMBER),
        "other budget": house.ask("project", PROJECT_ID, actor=MEMBER, budget=500),
        "bundle": house.ask("bundle", PROJECT_ID, actor=MEMBER),
        "focus": house.ask("focus", PROJECT_ID, ENTITY, actor=MEMBER),
        "overview": house.ask("overview", MEMBER),
    }


def published_fields() -> dict[str, bytes]:
    content = rendered(a_project())
    return codec.encode(content, FRESH, fit(content.lines, content.always, 1500), [(MEMBER, "owner")])


@pytest.mark.parametrize("field", READS_OF)
@pytest.mark.promise("store.version", "reader.stale")
def test_a_damaged_field_is_a_miss_for_who_reads_it_and_nothing_to_others(house: House, field: str) -> None:
    house.store.add_to_sets([keys.projects_of(MEMBER)], PROJECT_ID)
    damages = [damage for damage in DAMAGE if field != "data" or not damage.startswith(b"{")]

    for generation, damage in enumerate(damages, 1):
        stamp = replace(FRESH, generation=generation)
        for key in (keys.project(PROJECT_ID), keys.focus(PROJECT_ID, ENTITY)):
            house.spoil(key, stamp, **{**published_fields(), field: damage})

        found = every_read(house)

        assert tuple(read for read in ALL_READS if not found[read]) == READS_OF[field], damage[:40]
        assert all(context.text == "" for context in found.values() if not context)


@given(spoilt=st.dictionaries(st.sampled_from([*READS_OF, f"m:{MEMBER}"]), st.binary(max_size=40), max_size=4))
@pytest.mark.promise("store.version", "reader.stale")
def test_whatever_a_hash_holds_no_read_crashes(spoilt: dict[str, bytes]) -> None:
    store = MemoryStore()
    house = House(store, sync(Reader.over(store, clock=lambda: NOW)))
    store.add_to_sets([keys.projects_of(MEMBER)], PROJECT_ID)
    for key in (keys.project(PROJECT_ID), keys.focus(PROJECT_ID, ENTITY)):
        store.publish(key, FRESH.fence, {**published_fields(), **spoilt}, TTL)

    found = every_read(house)

    assert {read for read in ALL_READS if not found[read]} <= {
        r for field in spoilt for r in READS_OF.get(field, ())
    }


@pytest.mark.parametrize("damage", [b"\xff\xfe", b"1 0 1e99 5 1 1 1500 0 d z s\n\xff"])
@pytest.mark.promise("store.version")
def test_text_that_is_no_utf8_is_a_miss(redis_client: "redis.Redis", damage: bytes) -> None:
    fields = {"meta": damage, "text": damage, "lines": damage, "data": damage, f"m:{MEMBER}": b"owner"}
    RedisStore(redis_client).publish(keys.project(PROJECT_ID), (1, 1), fields, TTL)
    found = Reader(redis_client, clock=lambda: NOW)

    assert not found.project(PROJECT_ID, actor=MEMBER)
    assert not found.project(PROJECT_ID, actor=MEMBER, budget=500)
    assert not found.bundle(PROJECT_ID, actor=MEMBER)


# ---- ids


class Watched(MemoryStore):
    """A store that remembers which keys were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def read(self, key: str, fields: Any) -> list[Raw]:
        self.asked += [key, *fields]
        return super().read(key, fields)

    def set_members(self, *keys: str) -> set[str]:
        self.asked += keys
        return super().set_members(*keys)


ID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
WHOSE = rf"project|projects|focus:(?:{ID}|[A-Z]+[1-9][0-9]*)|brief:(?:latest|[0-9-]{{10}})"
KEY_OR_FIELD = re.compile(rf"fw:(?:{SCHEMA}|{SCHEMA - 1}):{{{ID}}}:(?:{WHOSE})|m:{ID}|meta|text|lines|data|head")

CALLS: list[Callable[[Reader, str], Context]] = [
    lambda reader, odd: reader.project(odd, actor=MEMBER),
    lambda reader, odd: reader.project(PROJECT_ID, actor=odd),
    lambda reader, odd: reader.bundle(odd, actor=MEMBER),
    lambda reader, odd: reader.bundle(PROJECT_ID, actor=odd),
    lambda reader, odd: reader.focus(odd, ENTITY, actor=MEMBER),
    lambda reader, odd: reader.focus(PROJECT_ID, odd, actor=MEMBER),
    lambda reader, odd: reader.focus(PROJECT_ID, ENTITY, actor=odd),
    lambda reader, odd: reader.overview(odd),
]

ODD_IDS = [
    "",
    "*",
    "fence",
    "}:project",
    f"{PROJECT_ID}}}:x",
    f"{PROJECT_ID}\n",
    f"m:{MEMBER}",
    "T7 T8",
    "T0",
    "\x00",
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.promise("reader.members")
def test_an_id_that_is_no_uuid_is_refused_before_it_reaches_a_key(call: Callable[[Reader, str], Context]) -> None:
    store = Watched()

    for odd in ODD_IDS:
        with pytest.raises(BadInput, match="is no UUID"):
            call(Reader.over(store), odd)
    assert store.asked == []


@given(odd=texts | texts.map(lambda text: f"{PROJECT_ID}{text}"), call=st.sampled_from(CALLS))
@pytest.mark.promise("reader.members")
def test_nothing_but_canonical_ids_and_handles_ever_reaches_a_key(
    odd: str, call: Callable[[Reader, str], Context]
) -> None:
    store = Watched()

    with suppress(BadInput):
        call(Reader.over(store), odd)

    ours = {keys.MARKER, keys.FILLING}  # of no id
    assert [asked for asked in store.asked if not KEY_OR_FIELD.fullmatch(asked) and asked not in ours] == []


@pytest.mark.promise("handles.either", "reader.twins")
def test_a_uuid_in_another_spelling_is_the_same_id(house: House) -> None:
    house.publish(a_project())

    found = house.ask("project", f"{{{PROJECT_ID.upper()}}}", actor=MEMBER.replace("-", ""))

    assert found.status == "fresh"


# ---- focus


@pytest.mark.promise("reader.twins", "reader.members")
def test_a_focus_bundle_is_read_through_the_projects_membership(house: House) -> None:
    house.publish(a_project())
    content = house.publish_focus(a_project(tasks=[a_task("t")]))

    found = house.ask("focus", PROJECT_ID, ENTITY, actor=MEMBER)

    assert found.status == "fresh"
    assert found.data == json.loads(json.dumps(content.data, default=dict))
    assert found.text == fit(content.lines, content.always, 1500).text
    smaller = house.ask("focus", PROJECT_ID, ENTITY, actor=MEMBER, budget=300)
    assert smaller.text == fit(content.lines, content.always, 300).text
    assert smaller.data == found.data


@pytest.mark.parametrize("reference", ["T1", "t1", " T1 ", ENTITY, ENTITY.upper(), ENTITY.replace("-", "")])
@pytest.mark.promise("handles.either")
def test_a_focus_bundle_is_read_by_handle_or_uuid(house: House, reference: str) -> None:
    house.publish(a_project())
    house.publish_focus(a_project(tasks=[a_task("t")]))

    assert house.ask("focus", PROJECT_ID, reference, actor=MEMBER).status == "fresh"


@pytest.mark.parametrize(("generation", "status"), [(4, "stale"), (5, "fresh"), (6, "fresh")])
@pytest.mark.promise("reader.stale")
def test_a_focus_bundle_older_than_its_projects_is_stale(house: House, generation: int, status: str) -> None:
    house.publish(a_project())
    house.publish_focus(a_project(), replace(FRESH, generation=generation))

    assert house.ask("focus", PROJECT_ID, ENTITY, actor=MEMBER).status == status


# ---- an actor's overview


def a_project_called(name: str, state: str = "active") -> ProjectRows:
    """A project with an id of its own."""
    rows = a_project(project={"name": name, "state_key": state})
    return replace(rows, project_id=uid(name), project=(uid(name), *rows.project[1:]))


@pytest.mark.promise("reader.overview")
def test_an_overview_holds_exactly_the_projects_the_actor_may_read_most_relevant_first(house: House) -> None:
    house.publish(a_project_called("Paused", "paused"))
    house.publish(a_project_called("Active"))
    house.publish(a_project_called("Planned", "planning"))
    house.publish(a_project_called("Done", "completed"))
    house.publish(a_project_called("Somebody else's"), FRESH, STRANGER)
    house.store.add_to_sets([keys.projects_of(MEMBER)], uid("Somebody else's"))
    house.store.add_to_sets([keys.projects_of(MEMBER)], uid("never built"))

    found = house.ask("overview", MEMBER)

    heading, *lines = found.text.splitlines()
    assert heading == "## projects: 4"
    assert [line.split('"')[1] for line in lines] == ["Active", "Planned", "Paused", "Done"]
    assert [project["name"] for project in found.data["projects"]] == ["Active", "Planned", "Paused", "Done"]
    assert found.tokens == tokens.count(found.text)
    assert (found.status, found.data["not_built"]) == ("stale", 1)


@pytest.mark.promise("reader.overview", "reader.stale")
def test_an_overview_is_as_stale_as_its_oldest_project(house: House) -> None:
    house.publish(a_project_called("New"))
    house.publish(a_project_called("Old"), replace(FRESH, valid_until=NOW - 1))

    found = house.ask("overview", MEMBER)

    assert found.status == "stale"
    assert found.stamp is not None
    assert found.stamp.valid_until == NOW - 1


@pytest.mark.promise("reader.overview")
def test_an_actor_without_projects_has_an_empty_overview(house: House) -> None:
    found = house.ask("overview", MEMBER)

    assert (found.status, found.text, found.tokens) == ("missing", "", 0)
    assert found.data == {"projects": [], "not_built": 0}


@pytest.mark.promise("reader.overview")
def test_the_heading_of_an_overview_counts_exactly_for_any_number() -> None:
    counted = {n: reader._HEADING_TOKENS + -(-len(str(n)) // 3) for n in range(1201)}

    assert counted == {n: tokens.count(f"## projects: {n}\n") for n in range(1201)}


@pytest.mark.parametrize("many", [1, 9, 10, 99, 100, 999, 1000, 1200])
@pytest.mark.parametrize("budget", [250, 1500])
@pytest.mark.promise("reader.overview", "lines.additive", "lines.budget")
def test_an_overview_of_any_number_of_hostile_projects_counts_exactly_and_fits(many: int, budget: int) -> None:
    store = MemoryStore()
    content = [rendered(a_hostile_project(seed, each=1, edges=0)) for seed in range(20)]
    for n in range(many):
        fields = codec.encode(content[n % 20], FRESH, fit([], 0, 250), [(MEMBER, "owner")])
        store.publish(keys.project(uid(str(n))), FRESH.fence, fields, TTL)
        store.add_to_sets([keys.projects_of(MEMBER)], uid(str(n)))

    found = Reader.over(store, clock=lambda: NOW).overview(MEMBER, budget=budget)

    assert found.tokens == tokens.count(found.text) <= budget
    assert found.text.startswith(f"## projects: {many}\n")
    assert len(found.data["projects"]) == many
    assert len(found.text.splitlines()) > 1


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=20))
@pytest.mark.promise("reader.overview")
def test_projects_stand_by_relevance_then_by_id(relevances: list[int]) -> None:
    store = MemoryStore()
    plain = rendered(a_project())
    for n, relevance in enumerate(relevances):
        data = {**plain.data, "header": {"id": uid(str(n))}}
        content = replace(plain, relevance=relevance, data=data)
        store.publish(
            keys.project(uid(str(n))), (1, 1), codec.encode(content, FRESH, fit([], 0, 250), [(MEMBER, "x")]), TTL
        )
        store.add_to_sets([keys.projects_of(MEMBER)], uid(str(n)))

    found = Reader.over(store, clock=lambda: NOW).overview(MEMBER)

    order = sorted((-relevance, uid(str(n))) for n, relevance in enumerate(relevances))
    assert [project["id"] for project in found.data["projects"]] == [entity for _, entity in order]


@pytest.mark.promise("handles.either")
def test_a_focus_bundle_is_read_by_handle_and_by_uuid_alike(redis_client: "redis.Redis") -> None:
    store = RedisStore(redis_client)
    line = Stamp(epoch=1, generation=1, valid_until=2e9).line().encode()
    store.publish(keys.project(PROJECT_ID), (1, 1), {keys.META: line}, 60)
    for reference in (ENTITY, "T12"):
        store.publish(
            keys.focus(PROJECT_ID, reference), (1, 2), {keys.TEXT: line + b"T12\n", keys.DATA: b"{}"}, 60
        )
    read = Reader(redis_client, clock=lambda: 1e9)

    texts = {
        read.focus(PROJECT_ID, reference, actor=reader.TRUSTED).text for reference in (ENTITY, "T12", " t12 ")
    }

    assert texts == {"T12\n"}


# ---- freshness


def follow(house: House, generation: int, snapshot: str, *tasks: str) -> str:
    """Publish the next bundle, with the difference to the one before; its version."""
    stamp = replace(FRESH, generation=generation, snapshot=snapshot)
    rows = a_project(tasks=[a_task(task) for task in tasks])
    before, old = (house.store.read(keys.project(PROJECT_ID), [part])[0] for part in (keys.META, keys.DATA))
    content = rendered(rows)
    text = fit(content.lines, content.always, 1500)
    fields = codec.encode(content, replace(stamp, tokens=text.tokens), text, [(MEMBER, "viewer")])
    was, data = codec.decode_stamp(before), codec.decode_data(old)
    entry = None
    if was is not None and data is not None:
        found = difference(facts_of(data), facts_of(codec.decode_data(fields[keys.DATA]) or {}))
        entry = codec.encode_news(codec.Step(since=was.version, version=stamp.version, difference=found))
    news = News(key=keys.changes(PROJECT_ID), since=was.version if was else "", entry=entry)
    assert house.store.publish(keys.project(PROJECT_ID), stamp.fence, fields, TTL, news)
    return stamp.version


@pytest.mark.promise("fresh.demanded", "reader.twins")
def test_a_demand_is_met_exactly_by_what_contains_it(house: House) -> None:
    follow(house, 5, "10:20:15", "t")

    def status(token: str, **more: Any) -> str:
        return house.ask("project", PROJECT_ID, actor=MEMBER, at_least=token, **more).status

    assert [status(f"1:{each}") for each in (9, 14, 15, 19, 20)] == ["fresh", "fresh", "stale", "fresh", "stale"]
    assert status("2:9") == "stale"
    assert status("1:15", wait=0.02) == "stale"
    assert status("1:15", budget=300) == "stale"
    assert house.ask("bundle", PROJECT_ID, actor=MEMBER, at_least="1:15").data
    with pytest.raises(BadInput, match="is no token"):
        status("soon")
    assert house.ask("project", PROJECT_ID, actor=MEMBER, wait=60).status == "fresh"
    assert house.ask("project", uid("nobody"), actor=MEMBER, wait=0.02).status == "missing"
    assert house.store.set_members(keys.WANTED) >= {uid("nobody")}


@pytest.mark.promise("fresh.changes", "reader.twins")
def test_changes_are_folded_from_the_version_that_was_seen(house: House) -> None:
    first = follow(house, 5, "10:10:", "one", "two")
    second = follow(house, 7, "12:12:", "one", "three")
    last = follow(house, 9, "14:14:", "three", "four")

    def changes(since: str) -> Any:
        return house.ask("changes", PROJECT_ID, since=since, actor=MEMBER)

    whole, step, nothing = changes(first), changes(second), changes(last)
    assert {found.status for found in (whole, step, nothing)} == {"ok"}
    assert {found.version for found in (whole, step, nothing)} == {last}
    assert (set(whole.added), set(whole.gone)) == ({uid("three"), uid("four")}, {uid("one"), uid("two")})
    assert (set(step.added), set(step.gone)) == ({uid("four")}, {uid("one")})
    assert not nothing
    assert changes("1:6").status == "too old"
    with pytest.raises(NotAMember):
        house.ask("changes", PROJECT_ID, since=first, actor=STRANGER)


@pytest.mark.promise("fresh.single-flight", "reader.twins")
def test_what_is_missing_or_stale_is_asked_for_and_nothing_else(house: House) -> None:
    stale, gone, lost = uid("stale"), uid("gone"), uid("lost")
    house.publish(a_project())
    house.spoil(keys.project(gone), FRESH, **codec.tombstone(replace(FRESH, gone=True)))
    house.store.add_to_sets([keys.projects_of(MEMBER)], lost)

    house.ask("project", PROJECT_ID, actor=MEMBER)
    house.ask("project", gone, actor=MEMBER)
    nothing = house.store.set_members(keys.WANTED)
    house.ask("focus", PROJECT_ID, "t1", actor=MEMBER)
    house.ask("project", stale, actor=MEMBER)
    house.ask("overview", MEMBER)

    assert nothing == set()
    assert house.store.set_members(keys.WANTED) == {f"{PROJECT_ID} T1", stale, lost}


@pytest.mark.promise("fresh.reconciled", "reader.overview")
def test_while_an_emptied_redis_is_filled_again_no_overview_is_whole(house: House) -> None:
    house.publish(a_project())
    before = house.ask("overview", MEMBER)

    house.store.publish(keys.MARKER, (1, 1), {keys.FILLING: b"1"}, TTL)

    assert before.status == "fresh"
    assert house.ask("overview", MEMBER).status == "stale"


# ---- a text that keeps its beginning


@pytest.mark.promise("steady.prefix", "reader.twins")
def test_a_steady_text_is_continued_and_begun_anew_for_another_project(house: House) -> None:
    rows = a_project(tasks=[a_task("t", state_key="todo", title="Caulk the boat")])
    house.publish(rows)
    first = house.ask("steady", PROJECT_ID, actor=MEMBER)
    assert first.status == "fresh"
    assert first.tokens == tokens.count(first.text)

    touched = "2026-11-21 09:00:00+00"
    edited = a_project(tasks=[a_task("t", state_key="done", title="Caulk the boat", updated_at=touched)])
    house.publish(edited, replace(FRESH, generation=6))
    second = house.ask("steady", PROJECT_ID, actor=MEMBER, previous=first)
    assert second.text.startswith(first.text)
    assert '"Caulk the boat" done changed' in second.text
    assert second.tokens == tokens.count(second.text)

    other = replace(second, steady=second.steady._replace(of=uid("another")) if second.steady else None)
    anew = house.ask("steady", PROJECT_ID, actor=MEMBER, previous=other)
    assert not anew.text.startswith(first.text)
    assert anew.text == house.ask("steady", PROJECT_ID, actor=MEMBER).text


@pytest.mark.promise("reader.members")
def test_a_steady_text_is_for_members_and_budgets_that_hold_it(house: House) -> None:
    house.publish(a_project())
    with pytest.raises(NotAMember):
        house.ask("steady", PROJECT_ID, actor=STRANGER)
    with pytest.raises(BadBudget):
        house.ask("steady", PROJECT_ID, actor=MEMBER, budget=249)
    assert house.ask("steady", uid("nothing"), actor=MEMBER).status == "missing"


# ---- briefs

USER, DAY = uid("user"), "2026-11-21"
OF_DAY = replace(FRESH, epoch=date.fromisoformat(DAY).toordinal(), snapshot="")


def publish_brief(house: House, stamp: Stamp = OF_DAY, **about: Any) -> tuple[dict[str, Any], Fitted]:
    """Publish a brief as a worker does, and its text for the default budget."""
    document = brief(*an_account({"Pier": 30, "Boat": 30}, due_at="2026-11-20 00:00:00+00"), **about).document
    lines, always = brief_lines(document, tokens.count)
    text = fit(lines, always, 1500)
    fields = codec.encode_text(lines, always, document, replace(stamp, tokens=text.tokens), text)
    for key in (keys.brief(USER, document["date"]), keys.brief(USER)):
        house.store.publish(key, stamp.fence, fields, TTL)
    return document, text


@pytest.mark.promise("reader.twins")
@pytest.mark.parametrize("day", [None, DAY, date.fromisoformat(DAY)])
def test_a_brief_is_read_by_its_date_or_as_the_latest(house: House, day: Any) -> None:
    document, text = publish_brief(house)

    found = house.ask("brief", USER.upper(), day)

    assert (found.status, found.text, found.tokens) == ("fresh", text.text, text.tokens)
    assert found.tokens == tokens.count(found.text)
    assert found.data == json.loads(json.dumps(document))
    assert f"brief of {DAY}, UTC" in found.text
    assert house.store.set_members(keys.WANTED) == set()


@pytest.mark.promise("brief.lines", "reader.twins")
@pytest.mark.parametrize("budget", [250, 400, 900, 3000])
def test_a_brief_is_cut_to_any_budget_exactly(house: House, budget: int) -> None:
    document, _ = publish_brief(house)
    lines, always = brief_lines(document, tokens.count)

    found = house.ask("brief", USER, budget=budget)

    assert (found.text, found.tokens) == (fit(lines, always, budget).text, tokens.count(found.text))
    assert found.tokens <= budget
    assert found.data["date"] == DAY


@pytest.mark.promise("reader.stale")
def test_a_brief_is_stale_once_the_day_of_its_user_is_over(house: House) -> None:
    publish_brief(house, replace(OF_DAY, valid_until=NOW))

    for found in (house.ask("brief", USER), house.ask("brief", USER, DAY), house.ask("brief", USER, budget=300)):
        assert found.status == "stale"
        assert found.data["date"] == DAY
    assert house.store.set_members(keys.WANTED) == set()


@pytest.mark.promise("fresh.single-flight")
def test_a_brief_that_is_missing_is_asked_for(house: House) -> None:
    publish_brief(house)

    missing = [house.ask("brief", USER, "2026-11-20"), house.ask("brief", STRANGER), house.ask("brief", STRANGER)]

    assert missing == [Context("missing")] * 3
    assert house.store.set_members(keys.WANTED) == {f"brief {USER} 2026-11-20", f"brief {STRANGER}"}


@pytest.mark.promise("reader.stale")
@pytest.mark.parametrize(
    "damage", [{}, {"data": b"no"}, {"data": b"[]"}, {"text": b"garbage", "meta": b"garbage"}]
)
def test_a_damaged_brief_is_missing_and_asked_for(house: House, damage: dict[str, bytes]) -> None:
    _, text = publish_brief(house)
    whole = {"meta": OF_DAY.line().encode(), "text": (OF_DAY.line() + text.text).encode(), "data": b"{}"}
    house.spoil(keys.brief(USER), replace(OF_DAY, generation=6), **({**whole, **damage} if damage else {}))

    assert house.ask("brief", USER).status == "missing"
    assert house.store.set_members(keys.WANTED) == {f"brief {USER}"}


@pytest.mark.promise("reader.stale")
@pytest.mark.parametrize(
    "day", ["yesterday", "", "2026-11-31", "2026-11-21T09:00", 20261121.0, "20261121", "٢٠٢٦-11-21", "*"]
)
def test_what_is_no_date_and_nobodys_id_is_refused(house: House, day: Any) -> None:
    with pytest.raises(BadInput, match="is no date"):
        house.ask("brief", USER, day)
    with pytest.raises(BadInput, match="is no UUID"):
        house.ask("brief", "ann", DAY)
    with pytest.raises(BadBudget):
        house.ask("brief", USER, DAY, budget=249)
    assert house.store.set_members(keys.WANTED) == set()


@pytest.mark.promise("brief.told", "reader.twins")
def test_announcements_are_read_page_by_page(house: House) -> None:
    empty: Any = house.ask("ready")
    for number in range(5):
        house.store.tell(f"{USER}:{number}", {"id": f"{USER}:{number}", "date": DAY}, TTL)

    first: Any = house.ask("ready", most=2)
    rest: Any = house.ask("ready", first[-1][0])

    assert empty == []
    assert [event["id"][-1] for _, event in [*first, *rest]] == [*"01234"]
    assert all(event["date"] == DAY for _, event in rest)
    assert not house.ask("ready", rest[-1][0], most=1)


@pytest.mark.promise("brief.told")
@pytest.mark.parametrize(
    "after", ["", "0", "$", "-", "-1-0", "0-0 ", "0-0-0", "\u0661-\u0660", "9" * 20 + "-0", None, "(0-0"]
)
def test_what_is_no_place_among_announcements_is_refused(house: House, after: Any) -> None:
    with pytest.raises(BadInput, match="is no place among announcements"):
        house.ask("ready", after)


@pytest.mark.promise("brief.told")
@pytest.mark.parametrize("most", [0, -1])
def test_no_announcements_cannot_be_asked_for(house: House, most: int) -> None:
    with pytest.raises(BadInput, match="one is the least"):
        house.ask("ready", most=most)
