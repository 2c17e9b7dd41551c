"""``up``: the whole system in the foreground: servers, migrations, a worker per queue, a relay, a beat and Flower,
kept alive, with one screen that shows how they fare.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Literal, Self

import click
import orjson
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from foreword.errors import ForewordError
from loaders.claims import EDITS, EVERYTHING, SWEEP
from loaders.glance import Glance
from loaders.migrate import migrate
from worker import crew
from worker.app import BRIEFS, create_app
from worker.commands.flower import ADDRESS, PORT, USER, password, password_place
from worker.events import UP
from worker.lookout import SERVERS, Lookout, Seen, failing
from worker.screen import print_json, say
from worker.settings import Settings
from worker.supervisor import Event, Kept, Part, Signals, State, Supervisor
from worker.wiring import Services, check_broker, redis_client, services

SHOW_SECONDS = 0.5
"""Between pictures of the screen."""

PORTS = range(PORT, PORT + 20)
"""Where Flower looks for a free port: two systems may run on a machine."""

SHARE = 4
"""For every so many worker processes of edits there is one for briefs and one for the sweep."""

QUICK_SECONDS, RELAY_SECONDS = 10.0, 30.0
"""For what has nothing under way to end, and for a relay, whose builders may."""

COLOURS = {
    State.STARTING: "yellow",
    State.RUNNING: "green",
    State.SILENT: "bold red",
    State.ENDING: "bold red",
    State.RESTING: "bold red",
    State.STOPPING: "yellow",
    State.STOPPED: "dim",
}

COLUMNS = {
    "process": 7,
    "pid": 7,
    "state": 8,
    "for": 6,
    "restarts": 8,
    "memory": 7,
    "said": 6,
    "last word": None,
}
RIGHT = {"pid", "for", "restarts", "memory", "said"}
"""The table of processes: its columns and their widths, the last one whatever is left. ``said`` is the age of the
last word, which stays: what a process said before it fell silent is what one wants to know.
"""

LAST = ("event", "what", "thread", "job", "project", "error", "message")
"""What is shown of a last word."""

FRESH_SECONDS = 60.0
"""A last word that is older is dimmed: it is history."""

QUIET = {"started", "ready", "stopped"}
"""Events of the ordinary course, which plain lines leave out."""


@click.command(short_help="Run everything in the foreground")
@click.option("--no-flower", is_flag=True, help="Without Flower.")
@click.option(
    "--flower-port",
    type=click.IntRange(0, 65535),
    help=f"Where Flower listens; by default the first free port from {PORT} on, 0: any.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON for each event.")
@click.pass_obj
def up(settings: Settings, *, no_flower: bool, flower_port: int | None, as_json: bool) -> int:
    """Run everything on this machine until Ctrl-C, then stop it in order: servers, a worker for each queue, a
    relay, a beat and Flower. What dies is started again. A second Ctrl-C does not wait for builds.

    In a terminal one screen shows what runs where and how it fares; piped, a line says what happens.
    """
    reporter = _Reporter(settings, as_json=as_json)
    if settings.database_url is None or settings.redis_url is None:  # the first time takes seconds
        reporter.tell(Event(name="preparing", text=f"preparing servers in {settings.data_dir}"))
    with services(settings) as found:
        migrate(found.database_url)
        redis_client(found.redis_url).close()
        check_broker(found.broker_url)
        port = None if no_flower else _flower_port(flower_port)
        with Signals.noted() as signals:
            _keep_running(settings, found, port, reporter, signals)
        return _told_to_end(signals.asked[0])


def _told_to_end(number: int) -> int:
    """What ends any command is what ends this one, now that nothing is left but the servers."""
    os.kill(os.getpid(), number)
    time.sleep(crew.END_SECONDS)  # it has come by then; else the code says it
    return 128 + number


def shares(processes: int) -> dict[str, int]:
    """How many processes each queue's worker has. A build waits for servers half of its time, and briefs and the
    sweep rest most of the day: all together there may be more than are asked for.
    """
    others = max(1, processes // SHARE)
    return {EDITS: processes, BRIEFS: others, SWEEP: others}


def parts(settings: Settings, flower_port: int | None) -> list[Part]:
    """What runs, in the order in which it is started."""
    works = {
        queue: ("work", "--queue", queue, "--concurrency", str(processes))
        for queue, processes in shares(settings.concurrency).items()
    }
    rows: list[tuple[str, str, tuple[str, ...], float, int]] = [
        *((queue, f"the {queue} worker", arguments, crew.STOP_SECONDS, 3) for queue, arguments in works.items()),
        ("relay", "the relay", ("relay",), RELAY_SECONDS, 2),
        ("beat", "the beat", ("beat",), QUICK_SECONDS, 0),
    ]
    if flower_port is not None:
        rows.append(("flower", "Flower", ("flower", f"--port={flower_port}"), QUICK_SECONDS, 1))
    return [
        Part(
            name=name,
            called=called,
            arguments=arguments,
            settings=_own(settings, place),
            grace=grace,
            rank=rank,
            role="worker" if name in works else name,
        )
        for place, (name, called, arguments, grace, rank) in enumerate(rows)
    ]


def _own(settings: Settings, place: int) -> Settings:
    """Each has its metrics on a port of its own, from the one that is set on."""
    if not settings.metrics_port:
        return settings
    return settings.model_copy(update={"metrics_port": settings.metrics_port + place})


def _flower_port(wanted: int | None) -> int | None:
    """A port for Flower; None where it is not installed.

    Raises:
        ForewordError: the port that is wanted is taken.
    """
    if find_spec("flower") is None:
        say("Flower is not installed (pip install -r requirements/flower.txt): going on without")
        return None
    for port in PORTS if wanted is None else (wanted,):
        with closing(socket.socket()) as trying:
            trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trying.bind((ADDRESS, port))
            except OSError:
                continue
            return int(trying.getsockname()[1])
    raise ForewordError(
        f"Flower cannot listen on {ADDRESS}:{PORT if wanted is None else wanted}, something else does: choose a"
        " port with --flower-port, or say --no-flower"
    )


def _keep_running(
    settings: Settings, found: Services, port: int | None, reporter: "_Reporter", signals: Signals
) -> None:
    """Keep everything running until a signal says otherwise, and stop it."""
    supervisor = Supervisor(parts(settings, port), reporter.tell)
    listening = {} if port is None else {"flower": (ADDRESS, port)}
    app = create_app(settings, found)
    lookout = Lookout(settings, found, app, supervisor.kept, listening, reporter.tell)
    places = _places(settings, found, port)
    with ExitStack() as stack:
        stack.callback(lookout.stop)  # last: the servers must not be stopped while it mends them
        screen = stack.enter_context(_Screen.on(reporter, supervisor, lookout, places))
        stack.callback(supervisor.stop, signals)
        if port is not None:
            password(settings)  # made before anybody is told where it is
        names = ", ".join(kept.part.name for kept in supervisor.kept)
        reporter.tell(Event(name="starting", text=f"starting {names}"))
        was_ready = False
        while not signals.asked:
            rest = supervisor.look(servers_answer=lookout.is_calm)
            if lookout.ident is None:
                lookout.start()
            if supervisor.is_ready and not was_ready:
                was_ready = True
                reporter.announce(places)
            screen.show()
            reporter.check()
            signals.wait(min(rest, SHOW_SECONDS))


def _places(settings: Settings, found: Services, port: int | None) -> dict[str, str]:
    """Where everything is. No passwords: what the settings name is shown as they show it."""
    logs = [str(settings.data_dir / f"{EDITS}.log"), "briefs.log", "sweep.log", "relay.log", "beat.log"]
    servers = {"postgres.log": settings.database_url, "redis.log": settings.redis_url}
    logs += [log for log, elsewhere in servers.items() if elsewhere is None]
    named = {
        "PostgreSQL": str(settings.database_url or found.database_url),
        "Redis": str(settings.redis_url or found.redis_url),
        "broker": str(settings.broker_url or settings.redis_url or found.broker_url),
        "data": str(settings.data_dir),
        "logs": ", ".join([*logs, *(["flower.log"] if port is not None else [])]),
    }
    if port is None:
        return named
    secret = f"user {USER}, password in {password_place(settings)}"
    return named | {"Flower": f"http://{ADDRESS}:{port} {secret}"}


class _Reporter:
    """Says what happens, from any thread: lines of JSON, or lines for people, above the screen where there is one.
    A standard output that is gone is kept in mind, and no reason to leave things half stopped.
    """

    def __init__(self, settings: Settings, *, as_json: bool) -> None:
        self.as_json = as_json
        self.above: Console | None = None
        self._settings = settings
        self._failure: OSError | None = None
        self._lock = threading.Lock()

    def tell(self, event: Event) -> None:
        """Say an event."""
        with self._lock:
            try:
                self._say(event)
            except OSError as error:
                self._failure = error

    def _say(self, event: Event) -> None:
        at = datetime.now(UTC)
        if self.as_json:
            whole = {"at": at, "level": UP[event.name].level, "event": event.name, "text": event.text}
            whole |= event.facts
            print_json(whole, indented=False)
        elif event.name in QUIET and not event.facts.get("restarts"):
            return
        elif self.above is not None:
            self.above.print(Text(f"{at.astimezone():%H:%M:%S} {event.text}"))
        else:
            say(event.text)

    def announce(self, places: Mapping[str, str]) -> None:
        """Everything runs: say where."""
        if self.as_json or self.above is not None:
            self.tell(Event(name="up", text="foreword is up; Ctrl-C stops it", facts=dict(places)))
            return
        lines = ["foreword is up; Ctrl-C stops it", *(f"  {name:<10} {shown}" for name, shown in places.items())]
        lines.append(
            "next, in another terminal: python -m worker import DIR; what is imported or edited is built at once"
        )
        try:
            click.echo("\n".join(lines))
        except OSError as error:
            self._failure = error

    def check(self) -> None:
        """Raises OSError where standard output takes no more."""
        if self._failure is not None:
            raise self._failure


class _Screen:
    """The screen; nothing where standard output is no terminal."""

    def __init__(
        self, live: Live | None, supervisor: Supervisor, lookout: Lookout, places: Mapping[str, str]
    ) -> None:
        self._live, self._supervisor, self._lookout, self._places = live, supervisor, lookout, places

    @classmethod
    def on(
        cls, reporter: _Reporter, supervisor: Supervisor, lookout: Lookout, places: Mapping[str, str]
    ) -> "_Screen":
        if reporter.as_json or not sys.stdout.isatty():
            return cls(None, supervisor, lookout, places)
        live = Live(console=Console(highlight=False), auto_refresh=False, transient=False)
        reporter.above = live.console
        return cls(live, supervisor, lookout, places)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self.show()
            self._live.stop()

    def show(self) -> None:
        """A new picture."""
        if self._live is not None:
            seen = self._lookout.seen
            self._live.update(
                Group(processes(self._supervisor.kept, seen), system(seen), _placed(self._places)), refresh=True
            )


def processes(kept: list[Kept], seen: Seen) -> Table:
    """What runs where and how it fares."""
    rows = [_row(each, seen.memory.get(each.pid or 0), time.monotonic(), time.time()) for each in kept]
    made = Table(header_style="bold", box=None, expand=True)
    for column, width in COLUMNS.items():
        justify: Literal["left", "right"] = "right" if column in RIGHT else "left"
        ratio = None if width else 1
        made.add_column(column, justify=justify, width=width, ratio=ratio, no_wrap=True, overflow="ellipsis")
    for row in rows:
        made.add_row(*row)
    return made


def _row(kept: Kept, memory: int | None, now: float, today: float) -> tuple[str | Text, ...]:
    """The cells of a process, at a time of the clock that its start is known by, and of the one on the wall."""
    said, age = last_word(kept, today)
    return (
        kept.part.name,
        str(kept.pid or ""),
        Text(kept.state.value, COLOURS[kept.state]),
        _since(kept, now),
        str(max(kept.restarts, 0)),
        f"{memory / 1e6:.0f} MB" if memory else "",
        Text(duration(age) if said else "", "dim"),
        Text(said, "dim" if age > FRESH_SECONDS else ""),
    )


def _since(kept: Kept, now: float) -> str:
    """For how long it has run, or been silent, or until when it rests."""
    if kept.state in {State.SILENT, State.ENDING}:
        return duration(kept.silence)
    if kept.pid:
        return duration(now - kept.begun)
    return f"in {max(kept.rests_until - now, 0):.0f} s" if kept.state == State.RESTING else ""


def system(seen: Seen) -> Table:
    """What waits, and whether the servers answer."""
    made = Table.grid(padding=(0, 2))
    servers = Text("  ").join(
        Text(f"{name} {'answers' if seen.answers[name] else 'does not answer'}", _colour(seen.answers[name]))
        for name in SERVERS
        if name in seen.answers
    )
    made.add_row(Text("servers", "bold"), servers)
    queues = ", ".join(f"{name} {length}" for name, length in seen.queues.items())
    made.add_row(Text("queues", "bold"), Text(queues))
    if seen.glance is not None:
        made.add_row(Text("projects", "bold"), Text(_projects(seen.glance)))
        briefs = f"{seen.glance.briefs_pending} waiting, {seen.glance.briefs_generating} being made"
        made.add_row(Text("briefs", "bold"), Text(briefs))
        if wrong := failing(seen.glance):
            made.add_row(Text("wrong", "bold red"), Text(wrong, "red", no_wrap=True, overflow="ellipsis"))
    return made


def _colour(good: bool) -> str:  # noqa: FBT001 - of a truth
    return "green" if good else "bold red"


def _projects(seen: Glance) -> str:
    paused = {0: "", EVERYTHING: "; everything is paused"}.get(seen.paused, "; the sweep is paused")
    return f"{seen.dirty} dirty, {seen.building} being built, {seen.parked} parked{paused}"


def _placed(places: Mapping[str, str]) -> Table:
    made = Table.grid(padding=(0, 2))
    made.add_column()
    made.add_column(overflow="fold")
    for name, place in places.items():
        made.add_row(Text(name, "dim"), Text(place, "dim"))
    return made


def last_word(kept: Kept, now: float) -> tuple[str, float]:
    """The last event in its log since it started, and how long ago that was. What is no event was said by a
    library, or is a banner.
    """
    for line in reversed(crew.tail(kept.log, lines=20, since=kept.log_begun).splitlines()):
        with suppress(ValueError, KeyError, TypeError):
            said = orjson.loads(line)
            if isinstance(said, dict) and "event" in said and said.get("logger") != "py.warnings":
                told = [str(said[name]) for name in LAST if name in said]
                at = datetime.fromisoformat(said["timestamp"]).timestamp()
                return " ".join(" ".join(told).split()), max(now - at, 0.0)
    return "", 0.0


def duration(seconds: float) -> str:
    """Such as 42s, 7m05s, 3h10m, 2d04h."""
    whole = int(seconds)
    for unit, smaller, size, of in (("d", "h", 86_400, 3600), ("h", "m", 3600, 60), ("m", "s", 60, 1)):
        if whole >= size:
            return f"{whole // size}{unit}{whole % size // of:02}{smaller}"
    return f"{whole}s"
