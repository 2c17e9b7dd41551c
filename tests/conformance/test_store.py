"""One suite over every implementation of the store: the fence, whole replacement, sets."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from foreword import keys
from foreword.memory import MemoryStore
from foreword.ports import NEWS_KEPT, WANTED_MOST, News, Raw, Store
from foreword.store import RedisStore

TTL = 600
_numbers = count(1)


@pytest.fixture(params=["memory", "redis", "redis, decoded"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Each implementation, empty."""
    if request.param == "memory":
        yield MemoryStore()
        return
    url = request.getfixturevalue("redis_url")
    with redis.Redis.from_url(url, decode_responses=request.param.endswith("decoded")) as client:
        yield RedisStore(client)


def a_key() -> str:
    """A key that no other example has used."""
    return keys.project(f"p{next(_numbers)}")


def texts(values: list[Raw]) -> list[str | None]:
    return [value.decode() if isinstance(value, bytes) else value for value in values]


fences = st.tuples(st.integers(0, 3), st.integers(0, 6)) | st.tuples(st.integers(0, 2**52), st.integers(0, 2**52))


@given(published=st.lists(fences, min_size=1, max_size=12))
@pytest.mark.promise("store.fence")
def test_the_highest_fence_stands_whatever_the_order(store: Store, published: list[tuple[int, int]]) -> None:
    key = a_key()
    highest: tuple[int, int] | None = None

    for fence in published:
        taken = store.publish(key, fence, {"by": repr(fence).encode()}, TTL)
        assert taken is (highest is None or fence > highest)
        highest = fence if taken else highest

    assert texts(store.read(key, ["by"])) == [repr(max(published))]


@given(order=st.permutations(range(8)))
@pytest.mark.promise("store.fence")
def test_any_permutation_of_publications_ends_at_the_newest(store: Store, order: list[int]) -> None:
    key = a_key()

    for generation in order:
        store.publish(key, (generation // 4, generation), {"by": str(generation).encode()}, TTL)

    assert texts(store.read(key, ["by"])) == ["7"]


@pytest.mark.promise("store.fence")
def test_the_epoch_goes_before_the_generation(store: Store) -> None:
    key = a_key()
    store.publish(key, (1, 100), {"by": b"before the restore"}, TTL)

    assert store.publish(key, (2, 1), {"by": b"after the restore"}, TTL)
    assert not store.publish(key, (1, 101), {"by": b"late"}, TTL)
    assert texts(store.read(key, ["by"])) == ["after the restore"]


@pytest.mark.promise("store.fence")
def test_publishing_again_with_the_same_fence_changes_nothing(store: Store) -> None:
    key = a_key()
    store.publish(key, (1, 1), {"by": b"first"}, TTL)

    assert not store.publish(key, (1, 1), {"by": b"second"}, TTL)
    assert texts(store.read(key, ["by"])) == ["first"]


@pytest.mark.promise("store.whole")
def test_a_publication_replaces_all_fields_also_those_it_does_not_have(store: Store) -> None:
    key = a_key()
    store.publish(key, (1, 1), {"text": b"old", "m:someone": b"owner"}, TTL)

    store.publish(key, (1, 2), {"text": b"new"}, TTL)

    assert texts(store.read(key, ["text", "m:someone"])) == ["new", None]


@pytest.mark.promise("store.whole")
def test_a_refused_publication_leaves_every_field(store: Store) -> None:
    key = a_key()
    store.publish(key, (1, 2), {"text": b"standing", "data": b"standing"}, TTL)

    store.publish(key, (1, 1), {"text": b"late", "more": b"late"}, TTL)

    assert texts(store.read(key, ["text", "data", "more"])) == ["standing", "standing", None]


@pytest.mark.promise("store.whole")
def test_readers_see_no_mixture_while_others_publish(store: Store) -> None:
    key = a_key()
    names = [f"f{n}" for n in range(300)]
    store.publish(key, (0, 0), dict.fromkeys(names, b"0"), TTL)

    def publish(writer: int) -> None:
        for generation in range(writer, 60, 3):
            store.publish(key, (1, generation), dict.fromkeys(names, str(generation).encode()), TTL)

    def read(_: int) -> list[set[str | None]]:
        return [set(texts(store.read(key, names))) for _ in range(60)]

    with ThreadPoolExecutor(6) as pool:
        writing = [pool.submit(publish, writer) for writer in range(3)]
        seen = [versions for reads in pool.map(read, range(3)) for versions in reads]
        for each in writing:
            each.result()

    assert all(len(versions) == 1 for versions in seen)
    assert texts(store.read(key, names)) == ["59"] * 300


@pytest.mark.promise("store.fence")
def test_of_concurrent_publications_the_newest_stands_and_readers_never_go_back(store: Store) -> None:
    key = a_key()
    store.publish(key, (0, 0), {"by": b"0"}, TTL)

    def publish(generation: int) -> bool:
        return store.publish(key, (1, generation), {"by": str(generation).encode()}, TTL)

    def read(_: int) -> list[int]:
        return [int(texts(store.read(key, ["by"]))[0] or "-1") for _ in range(80)]

    with ThreadPoolExecutor(6) as pool:
        reading = [pool.submit(read, n) for n in range(2)]
        taken = list(pool.map(publish, [*range(1, 60), *range(59, 0, -1)]))
        seen = [each.result() for each in reading]

    assert texts(store.read(key, ["by"])) == ["59"]
    assert 1 <= sum(taken) <= 59
    assert all(versions == sorted(versions) for versions in seen)


@pytest.mark.promise("store.whole")
def test_a_project_may_have_very_many_members(store: Store) -> None:
    key = a_key()
    members = {f"m:{n:036}": b"viewer" for n in range(5001)}

    assert store.publish(key, (1, 1), {"text": b"x", **members}, TTL)

    assert texts(store.read(key, ["text", f"m:{0:036}", f"m:{5000:036}", "m:nobody"])) == [
        "x",
        "viewer",
        "viewer",
        None,
    ]


@given(value=st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
@pytest.mark.promise("store.whole")
def test_any_text_is_stored_as_it_is(store: Store, value: str) -> None:
    key = a_key()

    store.publish(key, (1, 1), {"text": value.encode(), "empty": b""}, TTL)

    assert texts(store.read(key, ["text", "empty"])) == [value, ""]
    assert texts(store.read(key, ["text"])) == [value]


@pytest.mark.promise("store.whole")
def test_what_is_not_there_is_none_in_every_place(store: Store) -> None:
    key = a_key()
    store.publish(key, (1, 1), {"a": b"1", "b": b"2"}, TTL)

    assert store.read(a_key(), ["a", "b"]) == [None, None]
    assert [texts(row) for row in store.read_many([(key, ["b", "c", "a"]), (a_key(), ["a"])])] == [
        ["2", None, "1"],
        [None],
    ]


@pytest.mark.promise("reader.overview")
def test_sets_hold_each_member_once(store: Store) -> None:
    one, other = a_key(), a_key()

    store.add_to_sets([one, other], "p1")
    store.add_to_sets([one], "p2")
    store.add_to_sets([one], "p1")
    store.add_to_sets([], "p3")

    assert store.set_members(one) == {"p1", "p2"}
    assert store.set_members(other) == {"p1"}
    assert store.set_members(a_key()) == set()


@pytest.mark.promise("store.fence")
@pytest.mark.parametrize(
    "damage", ["", "garbage", "1", "1:", ":1", "1:2:3", "-1:5", "1e3:1", "99999999999999999999:x"]
)
def test_a_damaged_fence_does_not_lock_a_key_for_ever(redis_client: "redis.Redis", damage: str) -> None:
    key = a_key()
    redis_client.hset(key, mapping={keys.FENCE: damage, "text": "old"})

    assert RedisStore(redis_client).publish(key, (1, 1), {"text": b"new"}, TTL)
    assert redis_client.hgetall(key) == {b"fence": b"1:1", b"text": b"new"}


@pytest.mark.promise("store.fence")
def test_what_is_published_is_collected_in_the_end(redis_client: "redis.Redis") -> None:
    key = a_key()

    RedisStore(redis_client).publish(key, (1, 1), {"text": b"x"}, TTL)

    assert 0 < redis_client.ttl(key) <= TTL


@pytest.mark.promise("reader.overview")
def test_a_damaged_member_of_a_set_harms_no_reader(redis_client: "redis.Redis") -> None:
    key = a_key()
    redis_client.sadd(key, b"\xff\xfe", b"p1")

    assert "p1" in RedisStore(redis_client).set_members(key)


# ---- differences beside a bundle, and wishes


def news(key: str, since: str, entry: bytes | None = b"a") -> News:
    return News(key=keys.changes(key), since=since, entry=entry)


@pytest.mark.promise("fresh.changes")
def test_differences_are_kept_as_long_as_each_follows_the_one_before(store: Store) -> None:
    key, name = a_key(), f"p{next(_numbers)}"

    def kept() -> list[str | None]:
        return texts(store.read_with_list(key, ["by"], keys.changes(name))[1])

    store.publish(key, (1, 1), {"by": b"1"}, TTL, news(name, "", None))
    store.publish(key, (1, 2), {"by": b"2"}, TTL, news(name, "1:1", b"1 to 2"))
    store.publish(key, (1, 5), {"by": b"5"}, TTL, news(name, "1:2", b"2 to 5"))
    whole = kept()
    refused = store.publish(key, (1, 3), {"by": b"3"}, TTL, news(name, "1:2", b"2 to 3"))
    after_refusal = kept()
    store.publish(key, (1, 6), {"by": b"6"}, TTL, news(name, "1:2", b"2 to 6"))  # it does not follow
    after_gap = kept()
    store.publish(key, (1, 7), {"by": b"7"}, TTL, news(name, "1:6", b"6 to 7"))
    again = kept()
    store.publish(key, (1, 8), {"by": b"8"}, TTL, news(name, "1:7", None))

    assert whole == after_refusal == ["1 to 2", "2 to 5"]
    assert not refused
    assert after_gap == []
    assert again == ["6 to 7"]
    assert kept() == []
    assert texts(store.read_with_list(key, ["by"], keys.changes(name))[0]) == ["8"]


@pytest.mark.promise("fresh.changes")
def test_no_more_differences_are_kept_than_is_said(store: Store) -> None:
    key, name = a_key(), f"p{next(_numbers)}"
    for number in range(1, NEWS_KEPT + 20):
        store.publish(key, (1, number), {}, TTL, news(name, f"1:{number - 1}", str(number).encode()))

    kept = texts(store.read_with_list(key, ["by"], keys.changes(name))[1])

    assert len(kept) == NEWS_KEPT
    assert kept[-1] == str(NEWS_KEPT + 19)


@pytest.mark.promise("fresh.single-flight")
def test_wishes_are_a_set_with_an_end(store: Store) -> None:
    store.want(["wish 0", "wish 0"])
    for first in range(0, WANTED_MOST + 50, 1000):
        store.want([f"wish {number}" for number in range(first, first + 1000)])

    assert len(store.set_members(keys.WANTED)) == WANTED_MOST


# ---- announcements


@pytest.mark.promise("brief.told")
def test_what_is_told_stands_once_and_in_order(store: Store) -> None:
    first, second = {"id": "ann:1", "user": "Ann \u0141"}, {"id": "ben:1", "due": ""}

    told = [store.tell("ann:1", first, TTL), store.tell("ben:1", second, TTL), store.tell("ann:1", second, TTL)]

    found = store.told("0-0", 10)
    assert told == [True, True, False]
    assert [event for _, event in found] == [first, second]
    assert {type(cell) for _, event in found for pair in event.items() for cell in pair} == {str}


@pytest.mark.promise("brief.told")
def test_announcements_are_read_on_from_the_place_of_the_last(store: Store) -> None:
    nothing = store.told("0-0", 5)
    for number in range(7):
        store.tell(f"event {number}", {"id": str(number)}, TTL)

    pages, after = [], "0-0"
    while page := store.told(after, 3):
        pages.append([event["id"] for _, event in page])
        after = page[-1][0]
    store.tell("one more", {"id": "7"}, TTL)

    assert nothing == []
    assert pages == [["0", "1", "2"], ["3", "4", "5"], ["6"]]
    assert [event["id"] for _, event in store.told(after, 3)] == ["7"]


@pytest.mark.promise("brief.told")
def test_of_many_who_tell_the_same_one_does(store: Store) -> None:
    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(lambda n: store.tell(f"event {n % 5}", {"id": str(n % 5)}, TTL), range(60)))

    assert sum(told) == 5
    assert sorted(event["id"] for _, event in store.told("0-0", 100)) == [*"01234"]


@pytest.mark.promise("brief.told")
def test_the_mark_of_what_was_told_expires_and_the_stream_is_one(redis_client: "redis.Redis") -> None:
    RedisStore(redis_client).tell("ann:1", {"id": "ann:1"}, TTL)

    assert 0 < redis_client.ttl(keys.told("ann:1")) <= TTL
    assert sorted(redis_client.keys("*")) == sorted([keys.told("ann:1").encode(), keys.READY.encode()])
    assert key_slot(keys.READY.encode()) == key_slot(keys.told("other").encode())
