"""The cache in Redis. Takes a client and imports none: the chat process brings its own redis-py.

Works with clients that decode responses and with those that do not. Errors of the client pass through: whose
connection it is, theirs are the errors.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foreword.keys import FENCE, META, READY, TEXT, WANTED, told
from foreword.ports import NEWS_KEPT, NEWS_SECONDS, TOLD_KEPT, WANTED_MOST, News, Raw

# One hash, replaced as a whole or not at all. Fields go in by the hundred because a Lua call takes a few
# thousand arguments at most and a project may have many members. A damaged fence does not lock a key for ever.
PUBLISH = """
local stored = redis.call('HGET', KEYS[1], ARGV[1])
local epoch, generation = tonumber(ARGV[2]), tonumber(ARGV[3])
if stored then
  local e, g = string.match(stored, '^(%d+):(%d+)$')
  if e and (epoch < tonumber(e) or (epoch == tonumber(e) and generation <= tonumber(g))) then
    return 0
  end
end
-- First something that a full server refuses, before anything is changed: after a DEL it would refuse nothing.
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ':' .. ARGV[3])
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ':' .. ARGV[3])
for i = 9, #ARGV, 200 do
  redis.call('HSET', KEYS[1], unpack(ARGV, i, math.min(i + 199, #ARGV)))
end
redis.call('EXPIRE', KEYS[1], ARGV[4])
if KEYS[2] then
  if ARGV[6] == '' or stored ~= ARGV[5] then redis.call('DEL', KEYS[2]) end
  if ARGV[6] ~= '' and stored == ARGV[5] then
    redis.call('RPUSH', KEYS[2], ARGV[6])
    redis.call('LTRIM', KEYS[2], -tonumber(ARGV[7]), -1)
    redis.call('EXPIRE', KEYS[2], ARGV[8])
  end
end
return 1
"""

WANT = """
for i = 2, #ARGV do
  if redis.call('SCARD', KEYS[1]) < tonumber(ARGV[1]) then redis.call('SADD', KEYS[1], ARGV[i]) end
end
"""


TELL = """
if not redis.call('SET', KEYS[1], '', 'NX', 'EX', ARGV[1]) then return 0 end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', unpack(ARGV, 3))
return 1
"""

# The third word of a stamp's line is until when it is true.
OUTDATE = """
for _, field in ipairs(ARGV) do
  local stored = redis.call('HGET', KEYS[1], field)
  if stored then redis.call('HSET', KEYS[1], field, (string.gsub(stored, '^(%d+ 0) [^ \\n]+', '%1 0.0', 1))) end
end
"""

Event = tuple[str, Mapping[str, str]]


class RedisStore:
    """``foreword.ports.Store`` over a redis-py client."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._publish = client.register_script(PUBLISH)
        self._want = client.register_script(WANT)
        self._tell = client.register_script(TELL)
        self._outdate = client.register_script(OUTDATE)

    def publish(
        self,
        key: str,
        fence: tuple[int, int],
        fields: Mapping[str, bytes],
        ttl: int,
        news: News | None = None,
    ) -> bool:
        """See ``Store.publish``; atomic in the server."""
        epoch, generation = fence
        flat = [part for item in fields.items() for part in item]
        since, entry = (news.since, news.entry or b"") if news else ("", b"")
        kept = [since, entry, NEWS_KEPT, NEWS_SECONDS]
        named = [key, news.key] if news else [key]
        return bool(self._publish(keys=named, args=[FENCE, epoch, generation, ttl, *kept, *flat]))

    def read(self, key: str, fields: Sequence[str]) -> list[Raw]:
        """See ``Store.read``: one HMGET, or an HGET, which is a tenth cheaper."""
        if len(fields) == 1:
            return [self._client.hget(key, fields[0])]
        found: list[Raw] = self._client.hmget(key, fields)
        return found

    def read_many(self, wanted: Sequence[tuple[str, Sequence[str]]]) -> list[list[Raw]]:
        """See ``Store.read_many``: one pipeline."""
        with self._client.pipeline(transaction=False) as pipe:
            for key, fields in wanted:
                pipe.hmget(key, fields)
            found: list[list[Raw]] = pipe.execute()
        return found

    def read_with_list(self, key: str, fields: Sequence[str], news: str) -> tuple[list[Raw], list[Raw]]:
        """See ``Store.read_with_list``: one transaction."""
        with self._client.pipeline(transaction=True) as pipe:
            pipe.hmget(key, fields).lrange(news, 0, -1)
            found, listed = pipe.execute()
        return found, listed

    def want(self, members: Sequence[str]) -> None:
        """See ``Store.want``."""
        self._want(keys=[WANTED], args=[WANTED_MOST, *members])

    def tell(self, name: str, event: Mapping[str, str], ttl: int) -> bool:
        """See ``Store.tell``; atomic in the server."""
        flat = [part for item in event.items() for part in item]
        return bool(self._tell(keys=[told(name), READY], args=[ttl, TOLD_KEPT, *flat]))

    def told(self, after: str, most: int) -> list[Event]:
        """See ``Store.told``."""
        return _events(self._client.xrange(READY, f"({after}", "+", most))

    def add_to_sets(self, keys: Iterable[str], member: str) -> None:
        """See ``Store.add_to_sets``: one pipeline."""
        with self._client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.sadd(key, member)
            pipe.execute()

    def set_members(self, *keys: str) -> set[str]:
        """See ``Store.set_members``."""
        return _decoded(self._client.sunion(keys))

    def outdate(self, key: str) -> None:
        """See ``Store.outdate``; atomic in the server."""
        self._outdate(keys=[key], args=[META, TEXT])


class AsyncRedisReads:
    """The reading half of ``RedisStore`` over a redis.asyncio client."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._want = client.register_script(WANT)

    async def read(self, key: str, fields: Sequence[str]) -> list[Raw]:
        """See ``Store.read``."""
        if len(fields) == 1:
            return [await self._client.hget(key, fields[0])]
        found: list[Raw] = await self._client.hmget(key, fields)
        return found

    async def read_many(self, wanted: Sequence[tuple[str, Sequence[str]]]) -> list[list[Raw]]:
        """See ``Store.read_many``."""
        async with self._client.pipeline(transaction=False) as pipe:
            for key, fields in wanted:
                pipe.hmget(key, fields)
            found: list[list[Raw]] = await pipe.execute()
        return found

    async def read_with_list(self, key: str, fields: Sequence[str], news: str) -> tuple[list[Raw], list[Raw]]:
        """See ``Store.read_with_list``."""
        async with self._client.pipeline(transaction=True) as pipe:
            pipe.hmget(key, fields).lrange(news, 0, -1)
            found, listed = await pipe.execute()
        return found, listed

    async def want(self, members: Sequence[str]) -> None:
        """See ``Store.want``."""
        await self._want(keys=[WANTED], args=[WANTED_MOST, *members])

    async def told(self, after: str, most: int) -> list[Event]:
        """See ``Store.told``."""
        return _events(await self._client.xrange(READY, f"({after}", "+", most))

    async def set_members(self, *keys: str) -> set[str]:
        """See ``Store.set_members``."""
        return _decoded(await self._client.sunion(keys))


def _decoded(members: Iterable[bytes | str]) -> set[str]:
    return set(map(_text, members))


def _text(found: bytes | str) -> str:
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else found


def _events(found: Iterable[tuple[Any, Mapping[Any, Any]]]) -> list[Event]:
    return [(_text(place), {_text(k): _text(v) for k, v in event.items()}) for place, event in found]
