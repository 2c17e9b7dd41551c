import pytest
from kombu import Connection as Kombu

from worker.app import create_app
from worker.settings import Settings
from worker.wiring import Services, kombu_url


@pytest.mark.parametrize(
    ("ours", "kombus"),
    [
        ("redis://host:6380", "redis://host:6380/0"),
        ("redis://host:6380/3", "redis://host:6380/3"),
        ("redis://user:p%40ss@host:6380/3", "redis://user:p%40ss@host:6380/3"),
        ("redis://host?db=2&socket_timeout=5", "redis://host/2"),
        ("rediss://:secret@host:6380/1", "rediss://:secret@host:6380/1"),
        ("unix:///run/redis.sock?db=1", "redis+socket:///run/redis.sock?virtual_host=1"),
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock?virtual_host=0"),
        ("unix://:secret@/run/redis.sock?db=4", "redis+socket://:secret@/run/redis.sock?virtual_host=4"),
    ],
)
def test_a_url_for_redis_py_becomes_one_for_kombu(ours: str, kombus: str) -> None:
    assert kombu_url(ours) == kombus


@pytest.mark.parametrize("url", ["redis://host:6380?db=2", "redis://:a%2Fb@host/1"])
def test_kombu_can_read_what_it_is_given(url: str) -> None:
    connection = Kombu(kombu_url(url))

    assert int(connection.virtual_host or 0) in {1, 2}


@pytest.mark.promise("secure.tls")
@pytest.mark.parametrize(
    ("url", "tls"),
    [
        ("redis://host", None),
        ("rediss://host:6380/0", {}),
        ("rediss://host?ssl_ca_certs=/ca.pem&db=1", {"ssl_ca_certs": "/ca.pem"}),
        (
            "rediss://host?ssl_certfile=/a%20b&ssl_keyfile=/k&ssl_min_version=771&ssl_cert_reqs=none",
            {"ssl_certfile": "/a b", "ssl_keyfile": "/k", "ssl_min_version": 771},
        ),
    ],
)
def test_a_broker_behind_tls_is_verified(url: str, tls: dict[str, object] | None) -> None:
    services = Services(database_url="", redis_url="redis://host", broker_url=url)

    app = create_app(Settings(), services)

    verified = {"ssl_cert_reqs": "required", "ssl_check_hostname": True}
    assert app.conf.broker_use_ssl == (None if tls is None else tls | verified)


def test_every_queue_has_an_exchange_of_its_own() -> None:
    services = Services(database_url="", redis_url="redis://host", broker_url="redis://host")

    queues = create_app(Settings(), services).conf.task_queues

    assert len({(queue.exchange.name, queue.routing_key) for queue in queues}) == len(queues) == 3
