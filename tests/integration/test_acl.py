"""The access rules of deploy/redis: what nobody may who is not meant to. That everybody may do their work is seen
where all of it runs: tests/acceptance/test_deployed.py.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from access import BROKER, CACHE, Guarded, client, guarded
from strategies import uid

from foreword import keys
from foreword.reader import TRUSTED, Reader
from foreword.store import WANT, RedisStore

PROJECT, USER = uid("project"), uid("user")
BUNDLE = keys.project(PROJECT)


@pytest.fixture(scope="module")
def servers_with_rules() -> Iterator[Guarded]:
    home = Path(tempfile.mkdtemp(prefix="fw-acl-"))
    with guarded(home) as found:
        yield found
    shutil.rmtree(home)


EVERYWHERE = [
    "FLUSHALL",
    "FLUSHDB",
    "CONFIG GET *",
    "CONFIG SET maxmemory 1",
    "ACL LIST",
    "ACL SETUSER chat +@all",
]
EVERYWHERE += [
    "SHUTDOWN",
    "MONITOR",
    "KEYS *",
    "SCAN 0",
    "CLIENT LIST",
    "CLIENT KILL TYPE normal",
]
EVERYWHERE += ["REPLICAOF NO ONE", "SAVE", "BGREWRITEAOF", "SCRIPT FLUSH", "FUNCTION LIST", "SWAPDB 0 1"]
EVERYWHERE += ["EVAL 'return 1' 0", "SLOWLOG GET", "MODULE LIST", "CLUSTER RESET", "LATENCY RESET", "RANDOMKEY"]

BUNDLES = [f"HGETALL {BUNDLE}", f"HGET {BUNDLE} text"]
WRITING = [
    f"HSET {BUNDLE} text forged",
    f"DEL {BUNDLE}",
    f"EXPIRE {BUNDLE} 1",
    f"RENAME {BUNDLE} fw:x",
    "SET fw:x 1",
]

REFUSED = {
    (CACHE, "worker"): ["INFO", "GET session:1", "SET session:1 x", "PUBLISH c x", "SUBSCRIBE c"],
    (CACHE, "relay"): ["GET session:1", "SET session:1 x", "PUBLISH c x"],
    (CACHE, "beat"): [*BUNDLES, *WRITING, f"SPOP {keys.WANTED}", "ZRANGE fw:alive 0 -1"],
    (CACHE, "chat"): [
        *WRITING,
        f"HGETALL {BUNDLE}",
        "INFO",
        f"SADD {keys.projects_of(USER)} {PROJECT}",  # may wish, and add to no other set
        f"SPOP {keys.WANTED}",
        "SMEMBERS session:1",
        f"DEL {keys.WANTED}",
        f"XADD {keys.READY} * user x",
        f"HSET {keys.MARKER} value x",
        "ZADD fw:alive 1 x",
        "HGET session:1 x",
        "SCRIPT LOAD return",
        "PUBLISH c x",
    ],
    (BROKER, "worker"): ["GET session:1", "PUBLISH c x", "SUBSCRIBE other", "HSET fw:x a b"],
    (BROKER, "relay"): [
        "RPOP edits",
        "BRPOP edits 1",
        "DEL edits",
        "HGETALL unacked",
        "PUBLISH c x",
        "GET session:1",
    ],
    (BROKER, "operator"): [
        "RPOP edits",
        "BRPOP edits 1",
        "DEL edits",
        "PUBLISH c x",
        "GET session:1",
        "HGETALL x",
    ],
    (BROKER, "beat"): [
        "LPUSH edits x",
        "RPOP briefs",
        "DEL briefs",
        "HGETALL unacked",
        "PUBLISH /0.celery.pidbox x",
    ],
    (BROKER, "flower"): [
        *("LPUSH edits x", "RPOP edits", "BRPOP edits 1", "DEL edits", "LINDEX edits 0", "LRANGE edits 0 -1"),
        *("HGETALL unacked", "HDEL unacked x", "ZADD unacked_index 1 x", "GET session:1"),
    ],
}


def refused(by: "redis.Redis", command: str) -> bool:
    try:
        with suppress(redis.TimeoutError):
            by.execute_command(*_words(command))  # type: ignore[no-untyped-call]
    except redis.exceptions.NoPermissionError:
        return True
    except redis.ResponseError:  # was allowed, and made no sense
        return False
    return False


def _words(command: str) -> list[str]:
    if "'" in command:
        before, script, after = command.split("'")
        return [*before.split(), script, *after.split()]
    return command.split()


@pytest.mark.promise("secure.acl")
@pytest.mark.parametrize(("server", "user"), REFUSED, ids=str)
def test_a_user_is_refused_everything_else(servers_with_rules: Guarded, server: str, user: str) -> None:
    with servers_with_rules.client(server, user) as one:
        allowed = [command for command in [*EVERYWHERE, *REFUSED[server, user]] if not refused(one, command)]

    assert allowed == []


@pytest.mark.promise("secure.acl")
@pytest.mark.parametrize("server", [CACHE, BROKER])
def test_nobody_is_let_in_without_a_name(servers_with_rules: Guarded, server: str) -> None:
    port = servers_with_rules.ports[server]

    for user, password in (("default", ""), ("default", "any"), ("default", "default"), ("", ""), ("admin", "")):
        with client(port, user, password) as nobody, pytest.raises(redis.AuthenticationError):
            nobody.ping()


@pytest.mark.promise("secure.acl")
def test_a_probe_may_ping_and_nothing_else(servers_with_rules: Guarded) -> None:
    with servers_with_rules.client(CACHE, "health") as probe:
        assert probe.ping()
        assert all(refused(probe, command) for command in [*EVERYWHERE, *BUNDLES, *WRITING, "INFO"])


@pytest.mark.promise("secure.acl")
def test_nobody_may_pass_for_another_server_s_user(servers_with_rules: Guarded) -> None:
    password = (servers_with_rules.secrets / "cache_chat").read_text()

    with (
        client(servers_with_rules.ports[BROKER], "chat", password) as chat,
        pytest.raises(redis.AuthenticationError),
    ):
        chat.ping()


@pytest.mark.promise("secure.acl")
def test_a_chat_reads_and_wishes(servers_with_rules: Guarded) -> None:
    with servers_with_rules.client(CACHE, "worker") as worker, servers_with_rules.client(CACHE, "relay") as relay:
        relay.script_load(WANT)  # as a relay does
        store = RedisStore(worker)
        store.publish(BUNDLE, (1, 1), {"meta": b"m", "text": b"m\nt"}, 60)
        with servers_with_rules.client(CACHE, "chat") as chat:
            reader = Reader(chat)
            reader.project(PROJECT, actor=TRUSTED)
            reader.overview(USER)
            reader.brief(USER)
            reader.ready()
            reader.changes(PROJECT, since="1:1", actor=TRUSTED)

        wished: Any = relay.smembers(keys.WANTED)

    assert {wish.decode() for wish in wished} >= {PROJECT}
    assert not [each for each in servers_with_rules.refused(CACHE) if each[0] == "chat" and "wanted" in each[1]][
        1:
    ]
