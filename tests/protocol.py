"""A model of the freshness protocol (docs/adr/0009-freshness.md) and the exhaustive search that tries to break it.

What is modelled: one project. Edits are transactions that draw their id, then commit or roll back, in any order;
requests change what a bundle should hold without a log row (a date, a schema). Builders, relays, Redis with its
replica and PostgreSQL with its disk take the steps of the table ``STEPS`` in any order, so that whoever does not
move is paused. Builders and relays die, sessions are taken over, messages vanish and double, Redis is emptied or
fails over to a replica that lags, PostgreSQL crashes and loses what it had not flushed.

Faults are not counted: any of them may happen again and again. That the search ends all the same is because only
the order of generations and the identity of markers matter, so states are compared after renumbering both.
What is bounded is in ``Bounds``: edits, requests, builders, relays.

What is abstracted away:
- Time. A lease, a lock or a quiet time may end at any moment; debounce is nothing but quiet.
- Attempts, back-off and parking, which only delay. A build that fails is a builder that dies.
- A message that was claimed and not yet sent is one that is on its way; a hundred of them are one that doubles.
- A builder that hangs for ever and is taken over is one that dies; one that wakes up again is modelled.
- The lock is given back by the step that ends the build: in between nothing can begin, and nothing else cares.
- Epochs, tombstones, expiry of single keys and a Redis with two masters at once.

What is checked: ``broken_in`` of every state, ``broken_by`` of every step, and the end. An end is a state that no
fair step leaves (fair: nobody dies, nothing is lost, no edit begins). Every end has to be ``right``, and from
every state fair steps have to lead to an end. In a finite graph this leaves a fair run no other place to stay in:
no dead end, no cycle without a way out.

``python tests/protocol.py`` prints the worlds, and for every mutant of the protocol the shortest way to disaster;
``python tests/protocol.py "no fence"`` that of one; ``python tests/protocol.py --deep`` searches larger worlds,
which takes minutes.
"""

import gc
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import NamedTuple

# ---- what there is


class Bundle(NamedTuple):
    """A published bundle. Generation 0: there is none. ``content`` and ``claims`` are bit masks of edits."""

    generation: int = 0
    content: int = 0
    claims: int = 0
    """The edits that a reader takes to be in it: those whose ids its stamp shows as visible."""


class Redis(NamedTuple):
    bundle: Bundle = Bundle()
    marker: int = 0
    """Its number; 0: there is none."""
    foreign: bool = False
    """The marker was written for another run of Redis or of PostgreSQL."""


class Record(NamedTuple):
    """What the project's row in PostgreSQL says about its bundle."""

    generation: int
    marker: int


class Ledger(NamedTuple):
    """What PostgreSQL holds and may forget in a crash, as far as it had not reached the disk."""

    drawn: int
    """Transaction ids given away; edit n has the id n."""
    rows: int
    """Bit mask of committed edits whose log row is there."""
    due: bool
    """Asked for, by a request or by the comparison with Redis."""
    record: Record
    sequence: int
    """The last generation given away."""


IDLE, DRAWN, BEGUN, READ, LOADED, MARKED, RECORDED, PUBLISHED = range(8)
PHASES = ("idle", "drawn", "begun", "read", "loaded", "marked", "recorded", "published")
NO_SESSION, SESSION, LOCK = range(3)
OPEN, LEASED, SETTLED = range(3)


class Builder(NamedTuple):
    phase: int = IDLE
    generation: int = 0
    hold: int = NO_SESSION
    """LOCK: a session that holds the project's lock. SESSION: one that lost it, which only a mutant has."""
    horizon: int = 0
    """Ids given away when it began: what it waited for makes that many ids durable."""
    covers: bool = False
    """It began after the latest request."""
    content: int = 0
    claims: int = 0
    marker: int = 0


class Relay(NamedTuple):
    """How far a relay is in comparing the project with Redis. Polling and claiming are one step each."""

    phase: int = 0
    marker: int = 0
    generation: int = 0
    same: bool = False


class State(NamedTuple):
    running: int
    committed: int
    ledger: Ledger
    disk: Ledger | None
    """The ledger that a crash of PostgreSQL would leave; None: the present one."""
    quiet: int
    message: bool
    redis: Redis
    replica: Bundle
    """What a fail-over would leave. The marker stays, now of another run: so would any older one be."""
    builders: tuple[Builder, ...]
    relays: tuple[Relay, ...]
    markers: int
    """Marker numbers given away."""


# ---- what may happen, and what may be wrong


class Fault(StrEnum):
    """What a world may do to the protocol, as often as it likes."""

    DEATH = "a builder dies"
    STRAY = "a message doubled, or a command: a builder begins without need"
    LOSS = "a message vanishes"
    TAKEOVER = "a builder that holds the lock has its session ended"
    LATE = "the finish of a session that was ended still reaches the database"
    WIPE = "Redis is emptied"
    FAILOVER = "Redis fails over to a replica that lags"
    RELAY_DEATH = "a relay dies"
    LATE_MARKER = "a relay that was paused writes a marker that nobody needs"
    OUTAGE = "PostgreSQL crashes and loses what it had not flushed"
    EVICTION = "the bundle's key alone vanishes from Redis"
    RETURN = "Redis fails over and back again between two looks of the relay"


class Break(StrEnum):
    """A rule of the protocol that a mutant does without."""

    NO_FENCE = "no fence"
    LEDGER_FIRST = "ledger before cache"
    LABEL_LATE = "version read after the content"
    NO_INCARNATION = "no incarnation check"
    RUN_UNSEEN = "run of Redis not looked at"
    START_UNSEEN = "start of PostgreSQL not looked at"
    NUMBER_REUSED = "marker number used again"
    MARKER_AT_FINISH = "marker taken when finishing"
    VERIFIED_FIRST = "verified before the check"
    MARKER_LAST = "marker read after the check"
    BLIND_VERDICT = "verdict recorded unseen"
    SESSION_KEPT = "lease ends, session stays"
    ALL_ROWS = "all log rows deleted"
    ROWS_BY_NUMBER = "log rows deleted by number"
    TOKENS_BY_NUMBER = "tokens compared by number"
    EARLY_CLEAN = "early clean flag"
    REFUSED_FINISH = "finish after a refused publication"
    OLD_ON_RECORD = "an older generation goes on record"
    MESSAGE_IS_TRUTH = "message is the truth"
    BUSY_IS_DONE = "already building, no later look"
    ANSWERED_UNSEEN = "request answered by a build that began before it"
    NUMBER_UNLOCKED = "generation drawn outside the lock"
    BEGIN_UNFLUSHED = "begin does not wait for the disk"
    CLAIMS_UNFLUSHED = "stamp claims ids that are not on disk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A world: how many of each there are, and which faults it has.

    Attributes:
        edits: transactions that may begin.
        requests: changes of what a bundle should hold that leave no log row.
        builders: processes that can build, paused ones included.
        relays: processes that compare the project with Redis.
        broker: whether messages wake the builders, or a plain loop does.
        faults: what happens, any number of times each.
    """

    edits: int = 1
    requests: int = 0
    builders: int = 2
    relays: int = 1
    broker: bool = False
    faults: frozenset[Fault] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """A world, and what is broken in the protocol that lives in it."""

    bounds: Bounds
    broken: frozenset[Break] = field(default_factory=frozenset)


def start(rules: Rules) -> State:
    """A settled project without edits: its first bundle published, recorded and verified."""
    bundle = Bundle(generation=1)
    return State(
        running=0,
        committed=0,
        ledger=Ledger(drawn=0, rows=0, due=False, record=Record(1, 1), sequence=1),
        disk=None,
        quiet=OPEN,
        message=False,
        redis=Redis(bundle, marker=1),
        replica=bundle if rules.bounds.faults & {Fault.FAILOVER, Fault.RETURN} else Bundle(),
        builders=(Builder(),) * rules.bounds.builders,
        relays=(Relay(),) * rules.bounds.relays,
        markers=1,
    )


# ---- small words


def below(number: int) -> int:
    """The mask of all edits before ``number``."""
    return (1 << number) - 1


def bits(mask: int) -> Iterator[int]:
    return (1 << n for n in range(mask.bit_length()) if mask >> n & 1)


def due(s: State) -> bool:
    return s.ledger.rows != 0 or s.ledger.due


def locked(s: State) -> bool:
    return any(b.hold == LOCK for b in s.builders)


def with_builder(s: State, place: int, builder: Builder) -> State:
    return s._replace(builders=(*s.builders[:place], builder, *s.builders[place + 1 :]))


def with_relay(s: State, place: int, relay: Relay) -> State:
    return s._replace(relays=(*s.relays[:place], relay, *s.relays[place + 1 :]))


def those(s: State, phase: int) -> Iterator[tuple[int, Builder]]:
    return ((place, b) for place, b in enumerate(s.builders) if b.phase == phase)


def an_idle_builder(s: State) -> int | None:
    """The first of them: they are all alike."""
    return next((place for place, _ in those(s, IDLE)), None)


def flushed(s: State, ledger: Ledger) -> State:
    """A commit that waits for the disk, and thereby for all that was written before it."""
    return s._replace(ledger=ledger, disk=None)


def unflushed(s: State, ledger: Ledger, rules: Rules) -> Iterator[State]:
    """A commit that does not wait: a crash may take it back, with or without what is waiting already."""
    if Fault.OUTAGE not in rules.bounds.faults:
        yield s._replace(ledger=ledger)
        return
    yield s._replace(ledger=ledger, disk=s.ledger)
    if s.disk is not None:
        yield s._replace(ledger=ledger, disk=s.disk)


def asked_again(s: State) -> State:
    """No build that has begun answers what is asked now."""
    return s._replace(builders=tuple(b._replace(covers=False) for b in s.builders))


# ---- the application


def edit_begins(s: State, rules: Rules) -> Iterator[State]:
    drawn = s.ledger.drawn
    if drawn < rules.bounds.edits:
        begun = s._replace(running=s.running | 1 << drawn)
        yield from unflushed(begun, s.ledger._replace(drawn=drawn + 1), rules)


def edit_commits(s: State, _: Rules) -> Iterator[State]:
    for edit in bits(s.running):
        committed = s._replace(
            running=s.running ^ edit,
            committed=s.committed | edit,
            quiet=OPEN if s.quiet == SETTLED else s.quiet,
        )
        yield flushed(committed, s.ledger._replace(rows=s.ledger.rows | edit))


def edit_rolls_back(s: State, _: Rules) -> Iterator[State]:
    for edit in bits(s.running):
        yield s._replace(running=s.running ^ edit)


def request(s: State, rules: Rules) -> Iterator[State]:
    asked = (s.committed >> rules.bounds.edits).bit_length()
    if asked < rules.bounds.requests:
        committed = s.committed | 1 << rules.bounds.edits + asked
        yield flushed(asked_again(s._replace(committed=committed)), s.ledger._replace(due=True))


# ---- the relay: messages


def claim(s: State, rules: Rules) -> Iterator[State]:
    if not rules.bounds.broker or not due(s) or s.quiet != OPEN or locked(s):
        return
    s = s._replace(message=True, quiet=SETTLED if Break.MESSAGE_IS_TRUTH in rules.broken else LEASED)
    if Break.EARLY_CLEAN in rules.broken:
        s = s._replace(ledger=s.ledger._replace(rows=0, due=False))
    yield s


def lease_ends(s: State, _: Rules) -> Iterator[State]:
    if s.quiet == LEASED:
        yield s._replace(quiet=OPEN)


def message_vanishes(s: State, _: Rules) -> Iterator[State]:
    if s.message:
        yield s._replace(message=False)


# ---- builders


def message_arrives(s: State, rules: Rules) -> Iterator[State]:
    """A builder takes it: begins, or finds that another builds already or that nothing is to be done."""
    if not s.message or an_idle_builder(s) is None:
        return
    taken = s._replace(message=False)
    if locked(s) and Break.NUMBER_UNLOCKED not in rules.broken:
        yield taken._replace(quiet=SETTLED) if Break.BUSY_IS_DONE in rules.broken else taken
    elif due(s):
        yield from begun(taken, rules)
    else:
        yield taken


def loop_begins(s: State, rules: Rules) -> Iterator[State]:
    if not rules.bounds.broker and due(s):
        yield from begun(s, rules)


def begins_without_need(s: State, rules: Rules) -> Iterator[State]:
    yield from begun(s, rules)


def begun(s: State, rules: Rules) -> Iterator[State]:
    """Under the lock, in one session: the generation drawn, its commit awaited."""
    place = an_idle_builder(s)
    unlocked = Break.NUMBER_UNLOCKED in rules.broken
    if place is None or (locked(s) and not unlocked):
        return
    generation = s.ledger.sequence + 1
    builder = Builder(BEGUN, generation, LOCK, s.ledger.drawn, s.ledger.due)
    if unlocked:
        builder = Builder(DRAWN, generation)
    drawn = s.ledger._replace(sequence=generation)
    s = with_builder(s, place, builder)
    if Break.BEGIN_UNFLUSHED in rules.broken:
        yield from unflushed(s, drawn, rules)
    else:
        yield flushed(s, drawn)


def takes_the_lock(s: State, _: Rules) -> Iterator[State]:
    """Only of the mutant that draws its generation before."""
    if not locked(s):
        for place, b in those(s, DRAWN):
            holder = Builder(BEGUN, b.generation, LOCK, s.ledger.drawn, s.ledger.due)
            yield flushed(with_builder(s, place, holder), s.ledger)


def loads(s: State, rules: Rules) -> Iterator[State]:
    """The snapshot: content and version of one instant."""
    for place, b in those(s, BEGUN):
        if Break.LABEL_LATE in rules.broken:
            yield with_builder(s, place, b._replace(phase=READ, content=s.committed))
        else:
            yield with_builder(s, place, labelled(s, b._replace(content=s.committed), rules))


def reads_the_version(s: State, rules: Rules) -> Iterator[State]:
    """Only of the mutant that reads it after the content."""
    for place, b in those(s, READ):
        yield with_builder(s, place, labelled(s, b, rules))


def labelled(s: State, b: Builder, rules: Rules) -> Builder:
    """Transactions that have ended, and whose ids cannot be given away again after a crash.

    An id that was rolled back leaves no trace on disk: after a crash it belongs to another edit. The begin of the
    build did reach the disk, and with it every id before.
    """
    visible = below(s.ledger.drawn) & ~s.running
    durable = visible if Break.CLAIMS_UNFLUSHED in rules.broken else visible & below(b.horizon)
    return b._replace(phase=LOADED, claims=durable, horizon=0)


def reads_the_marker(s: State, _: Rules) -> Iterator[State]:
    for place, b in those(s, LOADED):
        yield with_builder(s, place, b._replace(phase=MARKED, marker=s.redis.marker))


def publishes(s: State, rules: Rules) -> Iterator[State]:
    """Redis takes it if its generation is greater than what stands there."""
    first = RECORDED if Break.LEDGER_FIRST in rules.broken else MARKED
    for place, b in those(s, first):
        stays = (b.hold or Fault.LATE in rules.bounds.faults) and first == MARKED
        then = b._replace(phase=PUBLISHED) if stays else Builder()
        if b.generation > s.redis.bundle.generation or Break.NO_FENCE in rules.broken:
            bundle = Bundle(b.generation, b.content, b.claims)
            yield with_builder(s._replace(redis=s.redis._replace(bundle=bundle)), place, then)
        else:
            yield with_builder(s, place, then if Break.REFUSED_FINISH in rules.broken else Builder())


def finishes(s: State, rules: Rules) -> Iterator[State]:
    first = Break.LEDGER_FIRST in rules.broken
    for place, b in those(s, MARKED if first else PUBLISHED):
        if b.hold:
            then = b._replace(phase=RECORDED) if first else Builder()
            yield from unflushed(with_builder(s, place, then), closed(s, b, rules), rules)


def finishes_late(s: State, rules: Rules) -> Iterator[State]:
    for place, b in those(s, PUBLISHED):
        if not b.hold:
            yield from unflushed(with_builder(s, place, Builder()), closed(s, b, rules), rules)


def gives_up(s: State, _: Rules) -> Iterator[State]:
    """It finds its session gone when it wants to finish."""
    for place, b in those(s, PUBLISHED):
        if not b.hold:
            yield with_builder(s, place, Builder())


def closed(s: State, b: Builder, rules: Rules) -> Ledger:
    """The ledger after the finish of ``b``, one statement."""
    ledger, gone = s.ledger, b.claims
    if Break.ALL_ROWS in rules.broken:
        gone = ledger.rows
    if Break.ROWS_BY_NUMBER in rules.broken:
        gone = below(b.claims.bit_length())
    ledger = ledger._replace(rows=ledger.rows & ~gone)
    if b.generation < ledger.record.generation and Break.OLD_ON_RECORD not in rules.broken:
        return ledger
    marker = s.redis.marker if Break.MARKER_AT_FINISH in rules.broken else b.marker
    answered = b.covers or Break.ANSWERED_UNSEEN in rules.broken
    return ledger._replace(record=Record(b.generation, marker), due=ledger.due and not answered)


def builder_dies(s: State, _: Rules) -> Iterator[State]:
    for place, b in enumerate(s.builders):
        if b.phase != IDLE:
            yield with_builder(s, place, Builder())


def taken_over(s: State, rules: Rules) -> Iterator[State]:
    for place, b in enumerate(s.builders):
        if b.hold == LOCK:
            late = Fault.LATE in rules.bounds.faults and b.phase in {LOADED, MARKED, PUBLISHED}
            without = b._replace(hold=NO_SESSION) if late else cut(b)
            kept = b._replace(hold=SESSION)
            yield with_builder(s, place, kept if Break.SESSION_KEPT in rules.broken else without)


def cut(b: Builder) -> Builder:
    """A builder without its session: it can load and finish nothing, but publish what it has."""
    if b.phase not in {LOADED, MARKED, RECORDED}:
        return Builder()
    # Without a finish its marker and what it answers are of no use: forgotten, so that fewer states differ.
    return Builder(max(b.phase, MARKED), b.generation, content=b.content, claims=b.claims)


# ---- the relay: Redis is not believed


def relay_writes_a_marker(s: State, rules: Rules) -> Iterator[State]:
    foreign = s.redis.foreign and Break.RUN_UNSEEN not in rules.broken
    if Break.NO_INCARNATION not in rules.broken and (not s.redis.marker or foreign):
        yield marked_anew(s, rules)


def marked_anew(s: State, rules: Rules) -> State:
    number = 1 if Break.NUMBER_REUSED in rules.broken else s.markers + 1
    return s._replace(redis=s.redis._replace(marker=number, foreign=False), markers=number)


def relay_writes_late(s: State, rules: Rules) -> Iterator[State]:
    yield marked_anew(s, rules)


def relay_reads_the_marker(s: State, rules: Rules) -> Iterator[State]:
    """Only where there is something to verify: otherwise it would look again."""
    marker = s.redis.marker
    foreign = s.redis.foreign and Break.RUN_UNSEEN not in rules.broken
    unverified = marker not in {0, s.ledger.record.marker} and not foreign
    if unverified and Break.NO_INCARNATION not in rules.broken:
        for place, relay in enumerate(s.relays):
            if relay.phase == 0:
                yield with_relay(s, place, Relay(1, marker))


def relay_reads_the_record(s: State, rules: Rules) -> Iterator[State]:
    generation = s.ledger.record.generation
    for place, relay in enumerate(s.relays):
        if relay.phase == 1:
            read = with_relay(s, place, relay._replace(phase=2, generation=generation))
            if Break.VERIFIED_FIRST in rules.broken:
                record = Record(generation, relay.marker)
                yield from unflushed(read, s.ledger._replace(record=record), rules)
            else:
                yield read


def relay_compares(s: State, _: Rules) -> Iterator[State]:
    for place, relay in enumerate(s.relays):
        if relay.phase == 2:
            same = relay.generation == s.redis.bundle.generation
            yield with_relay(s, place, relay._replace(phase=3, same=same))


def relay_records(s: State, rules: Rules) -> Iterator[State]:
    """The verdict holds for the generation that was compared: if another is on record by now, it looks again."""
    for place, relay in enumerate(s.relays):
        if relay.phase == 3:
            done, record = with_relay(s, place, Relay()), s.ledger.record
            if record.generation != relay.generation and Break.BLIND_VERDICT not in rules.broken:
                yield done
                continue
            marker = s.redis.marker if Break.MARKER_LAST in rules.broken else relay.marker
            ledger = s.ledger._replace(record=record._replace(marker=marker))
            if not relay.same:
                done, ledger = asked_again(done), ledger._replace(due=True)
            yield from unflushed(done, ledger, rules)


def relay_dies(s: State, _: Rules) -> Iterator[State]:
    for place, relay in enumerate(s.relays):
        if relay.phase:
            yield with_relay(s, place, Relay())


# ---- servers


def redis_is_emptied(s: State, _: Rules) -> Iterator[State]:
    yield s._replace(redis=Redis())


def replica_follows(s: State, _: Rules) -> Iterator[State]:
    yield s._replace(replica=s.redis.bundle)


def redis_fails_over(s: State, _: Rules) -> Iterator[State]:
    yield s._replace(redis=s.redis._replace(bundle=s.replica, foreign=s.redis.marker != 0))


def redis_fails_over_and_back(s: State, _: Rules) -> Iterator[State]:
    """The server of before, with the data of the replica: its name is the one in the marker."""
    yield s._replace(redis=s.redis._replace(bundle=s.replica))


def bundle_is_evicted(s: State, _: Rules) -> Iterator[State]:
    yield s._replace(redis=s.redis._replace(bundle=Bundle()))


def postgres_crashes(s: State, rules: Rules) -> Iterator[State]:
    """Sessions die, what was running is undone, what had not reached the disk may be gone; no edit's commit is.

    Ids that left no trace on disk are given away again.
    """
    foreign = s.redis.foreign or (s.redis.marker != 0 and Break.START_UNSEEN not in rules.broken)
    builders = tuple(cut(b) for b in s.builders)
    down = s._replace(running=0, disk=None, redis=s.redis._replace(foreign=foreign), builders=builders)
    yield down
    if s.disk is not None:
        yield down._replace(ledger=s.disk)


# ---- the table of steps


class Kind(Enum):
    """Who moves: the application begins, the protocol goes on, the world does harm or what nobody notices."""

    CHANGE = "change"
    FAIR = "fair"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Step:
    """A kind of step: ``after`` gives every state in which one may end. ``needs``: a fault that the world has."""

    kind: Kind
    after: Callable[[State, Rules], Iterable[State]]
    needs: tuple[Fault, ...] = ()


STEPS: Mapping[str, Step] = {
    "edit begins": Step(Kind.CHANGE, edit_begins),
    "edit commits": Step(Kind.FAIR, edit_commits),
    "edit rolls back": Step(Kind.FAIR, edit_rolls_back),
    "request": Step(Kind.CHANGE, request),
    "relay claims": Step(Kind.FAIR, claim),
    "lease ends": Step(Kind.FAIR, lease_ends),
    "message arrives": Step(Kind.FAIR, message_arrives),
    "builder begins": Step(Kind.FAIR, loop_begins),
    "builder takes the lock": Step(Kind.FAIR, takes_the_lock),
    "builder loads": Step(Kind.FAIR, loads),
    "builder reads the version": Step(Kind.FAIR, reads_the_version),
    "builder reads the marker": Step(Kind.FAIR, reads_the_marker),
    "builder publishes": Step(Kind.FAIR, publishes),
    "builder finishes": Step(Kind.FAIR, finishes),
    "builder gives up": Step(Kind.FAIR, gives_up),
    "relay writes a marker": Step(Kind.FAIR, relay_writes_a_marker),
    "relay reads the marker": Step(Kind.FAIR, relay_reads_the_marker),
    "relay reads the record": Step(Kind.FAIR, relay_reads_the_record),
    "relay compares": Step(Kind.FAIR, relay_compares),
    "relay records": Step(Kind.FAIR, relay_records),
    "message vanishes": Step(Kind.FAULT, message_vanishes, (Fault.LOSS,)),
    "builder begins without need": Step(Kind.FAULT, begins_without_need, (Fault.STRAY,)),
    "builder dies": Step(Kind.FAULT, builder_dies, (Fault.DEATH,)),
    "builder is taken over": Step(Kind.FAULT, taken_over, (Fault.TAKEOVER,)),
    "builder finishes late": Step(Kind.FAULT, finishes_late, (Fault.LATE,)),
    "relay dies": Step(Kind.FAULT, relay_dies, (Fault.RELAY_DEATH,)),
    "relay writes a late marker": Step(Kind.FAULT, relay_writes_late, (Fault.LATE_MARKER,)),
    "Redis is emptied": Step(Kind.FAULT, redis_is_emptied, (Fault.WIPE,)),
    "replica follows": Step(Kind.FAULT, replica_follows, (Fault.FAILOVER, Fault.RETURN)),
    "Redis fails over": Step(Kind.FAULT, redis_fails_over, (Fault.FAILOVER,)),
    "Redis fails over and back": Step(Kind.FAULT, redis_fails_over_and_back, (Fault.RETURN,)),
    "bundle is evicted": Step(Kind.FAULT, bundle_is_evicted, (Fault.EVICTION,)),
    "PostgreSQL crashes": Step(Kind.FAULT, postgres_crashes, (Fault.OUTAGE,)),
}

LOSES_BUNDLES = {"Redis is emptied", "Redis fails over", "Redis fails over and back", "bundle is evicted"}


def steps_of(bounds: Bounds) -> list[tuple[str, Step]]:
    return [(name, step) for name, step in STEPS.items() if not step.needs or bounds.faults & set(step.needs)]


# ---- what must hold


def broken_in(s: State, rules: Rules) -> str | None:
    """What is wrong in this state, if anything."""
    bundle, with_token = s.redis.bundle, below(rules.bounds.edits)
    if bundle.content & ~s.committed:
        return "the bundle holds an edit that was never committed"
    claims = below(bundle.claims.bit_length()) if Break.TOKENS_BY_NUMBER in rules.broken else bundle.claims
    if claims & s.committed & ~bundle.content & with_token:
        return "a reader is told that the bundle contains an edit that it lacks"
    missing = s.committed & ~bundle.content if bundle.generation else -1
    if missing & ~s.ledger.rows and not owed(s):
        return "the bundle is not what was committed, and nothing that the protocol looks at says so"
    return None


def owed(s: State) -> bool:
    """Whether something besides log rows will lead to a build, whoever dies now."""
    redis, record = s.redis, s.ledger.record
    unverified = record.marker != redis.marker and record.generation != redis.bundle.generation
    return s.ledger.due or not redis.marker or redis.foreign or unverified


def broken_by(before: State, name: str, after: State) -> str | None:
    """What is wrong with this step, if anything. ``after`` is not renumbered."""
    old, new = before.redis.bundle, after.redis.bundle
    if old != new and name not in LOSES_BUNDLES:
        if new.generation < old.generation:
            return "the generation in Redis goes backwards"
        if old.content & ~new.content:
            return "an edit that the bundle held is gone from it"
    deleted = before.ledger.rows & ~after.ledger.rows
    if deleted and name != "PostgreSQL crashes":
        held = (b.content for b, then in zip(before.builders, after.builders, strict=True) if b != then)
        if deleted & ~next(held, 0):
            return "a log row is deleted by a build that does not hold its edit"
    return None


def right(s: State) -> bool:
    """What has to be so when nothing more happens: there is a bundle, and it is exactly what was committed."""
    return s.redis.bundle.generation != 0 and s.redis.bundle.content == s.committed


# ---- states that differ in numbers only are one


def canonical(s: State, rules: Rules) -> State:
    """The state that stands for all that differ from it in who is who, or in the numbers drawn so far.

    Generations are ranked. Of a marker it matters whether it is the present one: what was replaced never returns.
    """
    order = order_of_generations(s)
    if Break.BEGIN_UNFLUSHED in rules.broken:  # where a number may come twice, its distance to others matters
        order = {generation: generation for generation in range(s.ledger.sequence + len(order) + 1)}
    return renumbered(s, order, one_marker=Break.NUMBER_REUSED in rules.broken)


def order_of_generations(s: State) -> dict[int, int]:
    """The rank of every generation that somebody holds. The last one drawn is none below the highest of them."""
    held = {0, s.redis.bundle.generation, s.replica.generation, s.ledger.record.generation}
    held.update([b.generation for b in s.builders])
    held.update([r.generation for r in s.relays])
    if s.disk is not None:
        held.add(s.disk.record.generation)
    order = {generation: rank for rank, generation in enumerate(sorted(held))}
    order.setdefault(s.ledger.sequence, len(order) - 1)
    return order


PAST, PRESENT = 1, 2


def renumbered(s: State, order: Mapping[int, int], *, one_marker: bool) -> State:
    """Positional throughout: this is where the time of the search goes."""
    present = s.redis.marker

    def marker(old: int) -> int:
        return old if one_marker else PRESENT if old == present != 0 else PAST

    def ledger(old: Ledger) -> Ledger:
        drawn, rows, due, (generation, verified), sequence = old
        return Ledger(drawn, rows, due, Record(order[generation], marker(verified)), order[sequence])

    def bundle(old: Bundle) -> Bundle:
        return Bundle(order[old[0]], old[1], old[2])

    def builder(old: Builder) -> Builder:
        phase, generation, hold, horizon, covers, content, claims, read = old
        return Builder(phase, order[generation], hold, horizon, covers, content, claims, marker(read))

    def relay(old: Relay) -> Relay:
        phase, read, generation, same = old
        return Relay(phase, marker(read), order[generation], same)

    running, committed, now, disk, quiet, message, redis, replica, builders, relays, _ = s
    return State(
        running,
        committed,
        ledger(now),
        None if disk is None else ledger(disk),
        quiet,
        message,
        Redis(bundle(redis.bundle), marker(present) if present else 0, redis.foreign),
        bundle(replica),
        tuple(sorted([builder(b) if b.phase else b for b in builders])),
        tuple(sorted([relay(r) if r.phase else r for r in relays])),
        PRESENT,
    )


# ---- the search


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """What went wrong, and the shortest way there: (step, state after it), the first being the start."""

    reason: str
    trace: tuple[tuple[str, State], ...]

    @property
    def steps(self) -> int:
        return len(self.trace) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How many states there are, or were seen until the violation."""

    states: int
    violation: Violation | None = None


class Graph:
    """States by number in the order in which they were found, and for each the way it was found."""

    def __init__(self, root: State) -> None:
        self.states = [root]
        self.number = {root: 0}  # of every state, and of those that it stands for
        self.parents = array("i", [-1])
        self.names = [""]
        self.fair_before: list[list[int]] = [[]]  # who leads here by a fair step
        self.ends = bytearray([1])  # whether no fair step leads away

    def find(self, state: State, parent: int, name: str) -> int:
        """The number of ``state``, which may be new: then it was found from ``parent``, by the step ``name``."""
        known = self.number.get(state)
        if known is not None:
            return known
        number = self.number[state] = len(self.states)
        self.states.append(state)
        self.parents.append(parent)
        self.names.append(name)
        self.fair_before.append([])
        self.ends.append(1)
        return number

    def way(self, number: int) -> list[int]:
        """The numbers from the root to ``number``."""
        numbers = []
        while number >= 0:
            numbers.append(number)
            number = self.parents[number]
        return numbers[::-1]


def search(rules: Rules) -> Result:
    """Every state there is, nearest first, until something is wrong."""
    collects = gc.isenabled()
    gc.disable()  # millions of tuples and no cycle among them: collecting would take half the time
    try:
        return _search(rules)
    finally:
        if collects:
            gc.enable()


def _search(rules: Rules) -> Result:
    steps, graph = steps_of(rules.bounds), Graph(canonical(start(rules), rules))
    for number, state in enumerate(graph.states):  # grows while it is walked
        for name, step in steps:
            for after in step.after(state, rules):
                reason = broken_by(state, name, after)
                known = graph.number.get(after)
                if known is None:
                    known = graph.find(canonical(after, rules), number, name)
                    graph.number[after] = known
                    reason = reason or broken_in(graph.states[known], rules)
                if reason:
                    return failed(graph, rules, reason, [*graph.way(number), known], name)
                if step.kind is Kind.FAIR and known != number:
                    graph.fair_before[known].append(number)
                    graph.ends[number] = 0
    return stuck(graph, rules) or Result(states=len(graph.states))


def stuck(graph: Graph, rules: Rules) -> Result | None:
    """The nearest end that is not right; or else the nearest state from which no fair run ends."""
    good = [number for number, end in enumerate(graph.ends) if end]
    wrong = next((number for number in good if not right(graph.states[number])), None)
    if wrong is not None:
        return failed(
            graph, rules, "nothing more happens, and the bundle is not what was committed", graph.way(wrong)
        )
    ends = bytearray(graph.ends)  # by now: whether a fair run from here ends
    for number in good:  # grows while it is walked
        for before in graph.fair_before[number]:
            if not ends[before]:
                ends[before] = 1
                good.append(before)
    if len(good) == len(ends):
        return None
    return failed(graph, rules, "it goes on for ever, and nothing is put right", graph.way(ends.index(0)))


def failed(graph: Graph, rules: Rules, reason: str, way: list[int], last: str = "") -> Result:
    """The result that shows ``way``. Its last step is ``last``, where that is not how the state was found."""
    names = [graph.names[number] for number in way[1:]]
    if last:
        names[-1] = last
    trace = [("start", start(rules))]
    for name, number in zip(names, way[1:], strict=True):
        wanted = graph.states[number]
        # Without renumbering, so that a number means the same in every line.
        after = STEPS[name].after(trace[-1][1], rules)
        trace.append((name, next(state for state in after if canonical(state, rules) == wanted)))
    return Result(states=len(graph.states), violation=Violation(reason=reason, trace=tuple(trace)))


# ---- worlds, and who does not survive them

WORLDS: Mapping[str, Bounds] = {
    "messages": Bounds(
        edits=2, broker=True, faults=frozenset({Fault.DEATH, Fault.LOSS, Fault.STRAY, Fault.TAKEOVER})
    ),
    "requests": Bounds(
        requests=1, broker=True, faults=frozenset({Fault.DEATH, Fault.LOSS, Fault.STRAY, Fault.TAKEOVER})
    ),
    "Redis emptied": Bounds(faults=frozenset({Fault.WIPE, Fault.DEATH, Fault.RELAY_DEATH, Fault.TAKEOVER})),
    "Redis fails over": Bounds(faults=frozenset({Fault.FAILOVER, Fault.DEATH, Fault.TAKEOVER})),
    "PostgreSQL crashes": Bounds(edits=2, builders=1, faults=frozenset({Fault.OUTAGE, Fault.DEATH})),
    "two relays": Bounds(
        edits=0,
        requests=1,
        builders=1,
        relays=2,
        faults=frozenset({Fault.WIPE, Fault.LATE_MARKER, Fault.RELAY_DEATH}),
    ),
}
"""Those that the tests search whole."""

DEEP: Mapping[str, Bounds] = {
    "three edits": Bounds(
        edits=3, requests=1, broker=True, faults=frozenset({Fault.DEATH, Fault.LOSS, Fault.STRAY, Fault.TAKEOVER})
    ),
    "late finish, Redis emptied": Bounds(faults=frozenset({Fault.LATE, Fault.TAKEOVER, Fault.WIPE, Fault.STRAY})),
    "late finish, Redis fails over": Bounds(faults=frozenset({Fault.LATE, Fault.TAKEOVER, Fault.FAILOVER})),
    "late finish, PostgreSQL crashes": Bounds(faults=frozenset({Fault.LATE, Fault.TAKEOVER, Fault.OUTAGE})),
    "Redis emptied and fails over": Bounds(faults=frozenset({Fault.WIPE, Fault.FAILOVER, Fault.TAKEOVER})),
    "PostgreSQL crashes, two builders": Bounds(edits=2, faults=frozenset({Fault.OUTAGE, Fault.DEATH})),
    "PostgreSQL crashes, Redis emptied": Bounds(faults=frozenset({Fault.OUTAGE, Fault.WIPE, Fault.STRAY})),
    "PostgreSQL crashes, Redis emptied, requests": Bounds(
        edits=0, requests=1, faults=frozenset({Fault.OUTAGE, Fault.WIPE, Fault.STRAY})
    ),
    "two relays, Redis fails over": Bounds(
        builders=1, relays=2, faults=frozenset({Fault.FAILOVER, Fault.LATE_MARKER, Fault.RELAY_DEATH})
    ),
}
"""Those that take minutes."""

MUTANTS: Mapping[Break, Bounds] = {
    Break.NO_FENCE: WORLDS["messages"],
    Break.LEDGER_FIRST: WORLDS["messages"],
    Break.LABEL_LATE: WORLDS["messages"],
    Break.NO_INCARNATION: WORLDS["Redis emptied"],
    Break.RUN_UNSEEN: WORLDS["Redis fails over"],
    Break.NUMBER_REUSED: WORLDS["Redis emptied"],
    Break.MARKER_AT_FINISH: WORLDS["Redis emptied"],
    Break.VERIFIED_FIRST: WORLDS["Redis emptied"],
    Break.MARKER_LAST: WORLDS["Redis emptied"],
    Break.BLIND_VERDICT: WORLDS["Redis fails over"],
    Break.SESSION_KEPT: WORLDS["messages"],
    Break.ALL_ROWS: WORLDS["messages"],
    Break.ROWS_BY_NUMBER: WORLDS["messages"],
    Break.TOKENS_BY_NUMBER: WORLDS["messages"],
    Break.EARLY_CLEAN: WORLDS["messages"],
    # Needs a finish that comes late: else whoever can finish has held the lock since it began.
    Break.OLD_ON_RECORD: DEEP["late finish, Redis emptied"],
    Break.MESSAGE_IS_TRUTH: WORLDS["messages"],
    Break.BUSY_IS_DONE: WORLDS["messages"],
    Break.ANSWERED_UNSEEN: WORLDS["requests"],
    Break.NUMBER_UNLOCKED: WORLDS["messages"],
    # Requests have no ids: what kills it here is the generation that is drawn twice, not an id.
    Break.BEGIN_UNFLUSHED: DEEP["PostgreSQL crashes, Redis emptied, requests"],
    Break.CLAIMS_UNFLUSHED: WORLDS["PostgreSQL crashes"],
}
"""What the protocol cannot do without, each with a world that shows it."""

REDUNDANT: Mapping[Break, Bounds] = {
    # A higher generation has a later snapshot, so that what refused the bundle holds every edit that it held.
    Break.REFUSED_FINISH: WORLDS["messages"],
    # As long as edits wait for the disk. Of an application that does not, this notices what was lost.
    Break.START_UNSEEN: WORLDS["PostgreSQL crashes"],
}
"""What other rules imply, in these worlds: second lines of defence. Here so that it is noticed when they become
the first.
"""

ASSUMPTIONS: Mapping[Fault, Bounds] = {
    Fault.EVICTION: Bounds(builders=1, faults=frozenset({Fault.EVICTION})),
    Fault.RETURN: Bounds(builders=1, faults=frozenset({Fault.RETURN})),
}
"""What the relay does not notice: the protocol stands on these not happening, or on a reader that asks."""


def without(rule: Break, bounds: Bounds) -> Rules:
    return Rules(bounds=bounds, broken=frozenset({rule}))


# ---- telling


def told(violation: Violation) -> Iterator[str]:
    """What went wrong, and one line a step: what happened, and the essentials of the state after it."""
    yield f"{violation.steps} steps: {violation.reason}"
    for number, (name, state) in enumerate(violation.trace):
        yield f"{number:4}  {name:28}{'; '.join(essentials(state))}"


def essentials(s: State) -> Iterator[str]:
    ledger, redis = s.ledger, s.redis
    yield f"committed {edits(s.committed)}"
    if s.running:
        yield f"running {edits(s.running)}"
    yield f"rows {edits(ledger.rows)}" + " and due" * ledger.due
    yield f"record g{ledger.record.generation} m{ledger.record.marker}"
    marker = f"m{redis.marker}" + " of another run" * redis.foreign if redis.marker else "no marker"
    yield f"Redis {published(redis.bundle)} {marker}"
    yield from (at_work(b) for b in s.builders if b.phase)
    yield from (comparing(r) for r in s.relays if r.phase)
    if s.message:
        yield "a message"


def edits(mask: int) -> str:
    return "{" + ",".join(str(n) for n in range(mask.bit_length()) if mask >> n & 1) + "}"


def published(bundle: Bundle) -> str:
    return f"g{bundle.generation} {edits(bundle.content)}" if bundle.generation else "empty"


def at_work(b: Builder) -> str:
    content = f" {edits(b.content)}" if b.phase >= READ else ""
    marker = f" m{b.marker}" if b.phase >= MARKED and b.hold else ""
    cut_off = " cut off" if b.phase > DRAWN and not b.hold else ""
    return f"builder g{b.generation} {PHASES[b.phase]}{content}{marker}{cut_off}"


def comparing(r: Relay) -> str:
    generation = f" g{r.generation}" if r.phase > 1 else ""
    verdict = (" same" if r.same else " differs") if r.phase > 2 else ""
    return f"relay m{r.marker}{generation}{verdict}"


def report(label: str, rules: Rules) -> Iterator[str]:
    began = time.perf_counter()
    result = search(rules)
    seconds = time.perf_counter() - began
    yield f"{label}: {result.states:,} states, {seconds:.1f} s{'' if result.violation else ', holds'}"
    if result.violation is not None:
        yield from told(result.violation)


def everything() -> Iterator[tuple[str, Rules]]:
    yield from ((name, Rules(bounds=bounds)) for name, bounds in WORLDS.items())
    yield from ((rule, without(rule, bounds)) for rule, bounds in MUTANTS.items())
    yield from ((f"redundant: {rule}", without(rule, bounds)) for rule, bounds in REDUNDANT.items())
    yield from ((f"assumed not to happen: {fault}", Rules(bounds=bounds)) for fault, bounds in ASSUMPTIONS.items())


def main(arguments: list[str]) -> int:
    """Print what is found: everything, what is named, or the larger worlds (``--deep``)."""
    if "--deep" in arguments:
        chosen = [(name, Rules(bounds=bounds)) for name, bounds in DEEP.items()]
    else:
        chosen = [(label, rules) for label, rules in everything() if not arguments or label in arguments]
    if not chosen:
        names = ", ".join(label for label, _ in everything())
        sys.stderr.write(f"nothing is called {' '.join(arguments)}. There are: {names}\n")
        return 2
    for label, rules in chosen:
        sys.stdout.writelines(f"{line}\n" for line in report(label, rules))
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
