"""Where Celery's own main loops leave signs of life: the worker's by a timer in its event loop, the beat's by what
it has sent. A worker that lost its broker is not in its loop, and leaves none until it is back.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import redis
from celery import Celery, bootsteps
from celery.beat import ScheduleEntry, Scheduler
from celery.worker import state

from worker.events import emit
from worker.outage import Outage
from worker.pulse import Deaf, Pulse, teller
from worker.settings import Settings
from worker.watchdog import watch
from worker.wiring import Services

PATIENCE_SECONDS = 120.0
"""Twice the hard time limit of a task: by then a process is free and takes what waits."""

LOOK_SECONDS = 5.0


def beat_in_worker(app: Celery, settings: Settings, services: Services, queues: Sequence[str]) -> None:
    """Have the worker of ``app`` leave signs of life."""
    client, broker = teller(services.redis_url), teller(services.broker_url)
    deaf = Deaf(_Waiting(broker, queues), lambda: int(state.all_total_count[0]), PATIENCE_SECONDS)
    pulse = Pulse("worker", settings.health, stalled=deaf, queues=list(queues))

    def turned() -> None:
        pulse.beat()
        pulse.tell(client)

    class Beating(bootsteps.StartStopStep):
        """Of the worker and not of its consumer, so that it beats on while the last tasks are finished."""

        requires = ("celery.worker.components:Timer", "celery.worker.components:Pool")

        def start(self, parent: Any) -> None:
            watch(pulse, [services.database_url, services.redis_url, services.broker_url])
            parent.timer.call_repeatedly(1.0, turned)

        def terminate(self, parent: Any) -> None:
            del parent
            pulse.end()

        stop = terminate

    app.steps["worker"].add(Beating)


class _Waiting:
    """How many messages wait in queues, looked up now and then; none where the broker does not say."""

    def __init__(self, client: "redis.Redis", queues: Sequence[str]) -> None:
        self._client, self._queues = client, queues
        self._looked, self._found = -LOOK_SECONDS, 0

    def __call__(self) -> int:
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            try:
                with self._client.pipeline(transaction=False) as pipe:
                    for queue in self._queues:
                        pipe.llen(queue)
                    self._found = sum(pipe.execute())
            except (redis.RedisError, OSError):
                self._found = 0
        return self._found


def beating_scheduler(
    settings: Settings, services: Services, ticked: Callable[[], object]
) -> tuple[type[Scheduler], Pulse]:
    """A scheduler for a beat that leaves a sign of life whenever the broker took a tick, and its pulse. ``ticked``
    is called after each round.
    """
    client, pulse = teller(services.redis_url), Pulse("beat", settings.health)
    outage = Outage("beat")

    class Beating(Scheduler):
        def tick(self, *arguments: Any, **more: Any) -> Any:
            try:
                return super().tick(*arguments, **more)
            finally:
                ticked()

        def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
            """Celery's own says 11 KB of traceback each time, every five seconds."""
            try:
                self.apply_async(entry, producer=producer, advance=False)
            except Exception as error:  # noqa: BLE001 - whatever the broker's client raises: the tick comes again
                pulse.wait()
                if times := outage.failed(error):
                    emit("message_not_sent", job=entry.task, error=str(error), times=times)

        def apply_async(self, entry: ScheduleEntry, *arguments: Any, **more: Any) -> Any:
            sent = super().apply_async(entry, *arguments, **more)
            pulse.beat()
            pulse.tell(client)
            outage.went()
            return sent

    return Beating, pulse
