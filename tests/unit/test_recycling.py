"""A worker looks after its pool many times a second: what Celery misses is seen by the next look."""

from types import SimpleNamespace

from celery import Celery

from worker.recycling import LOOK_SECONDS, Replacing, replace_soon


def test_a_worker_looks_after_its_children_far_more_often_than_every_five_seconds() -> None:
    app = Celery("foreword", set_as_current=False)
    asked: list[tuple[float, object]] = []
    timer = SimpleNamespace(call_repeatedly=lambda *what: asked.append(what))

    replace_soon(app)
    (step,) = (each for each in app.steps["worker"] if each is Replacing)
    step(None).start(SimpleNamespace(timer=timer, pool=SimpleNamespace(maintain_pool="maintain")))

    assert asked == [(LOOK_SECONDS, "maintain")]
    assert LOOK_SECONDS <= 0.5
