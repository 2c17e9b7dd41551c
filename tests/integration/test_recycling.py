"""A real worker replaces a real child that ended, where Celery's look at it came too soon and no other comes.

What makes this rare and slow in production is made certain here: a child that is to end closes what it has open,
which has the worker look, and dies only when that look is over; and the next one, five seconds later, is taken
away from Celery. Whoever takes the place of the child then was seen by a look of ours.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from celery import Celery
from processes import CHECKOUT, Running, eventually

from worker.wiring import kombu_url

SCRIPT = """
import os, sys
from celery import Celery
from celery.concurrency.asynpool import AsynPool
from celery.signals import worker_process_shutdown
from worker.recycling import replace_soon

app = Celery("recycled", broker=sys.argv[1], set_as_current=False)
app.conf.update(worker_max_tasks_per_child=1, worker_redirect_stdouts=False)
replace_soon(app)

over, tell = os.pipe()  # the look is over
look = AsynPool._event_process_exit
AsynPool.timers = property(lambda pool: {})  # Celery's next look

def look_and_tell(pool, hub, child):
    look(pool, hub, child)
    print("missed" if child in pool._pool else "seen", child.pid, flush=True)
    os.write(tell, b".")

AsynPool._event_process_exit = look_and_tell

@worker_process_shutdown.connect
def die(**_):
    os.closerange(3, over)
    os.closerange(over + 1, 1024)
    os.read(over, 1)
    os._exit(0)

@app.task(name="say")
def say():
    print("child", os.getpid(), flush=True)

options = "--concurrency=1 --loglevel=ERROR --without-gossip --without-mingle"
app.worker_main(["--quiet", "worker", *options.split()])
"""


@contextmanager
def worker(broker: str) -> Iterator[Running]:
    """Ended by force: its child would wait for a look."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, broker],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    running = Running(process)
    try:
        yield running
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        running.ended()


def test_a_child_that_ends_after_the_only_look_at_it_is_replaced_all_the_same(redis_url: str) -> None:
    broker = kombu_url(redis_url)

    with worker(broker) as running, Celery("recycled", broker=broker, set_as_current=False) as app:
        for _ in range(2):
            app.send_task("say")
        assert eventually(lambda: len(running.out) >= 3), "".join(running.out + running.err)

    first, missed, second = (line.split() for line in running.out[:3])
    assert first[0] == second[0] == "child"
    assert missed == ["missed", first[1]]
    assert first[1] != second[1]
