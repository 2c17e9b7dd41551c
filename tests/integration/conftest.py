"""Databases for modules whose tests share one, but for those that alter it."""

import itertools
from collections.abc import Callable

import pytest

from loaders.connection import connect
from worker.servers import Addresses

_number = itertools.count(1)


@pytest.fixture(scope="module")
def template(migrated: str, encoding: None) -> str:
    """The name of the database that a module's are copies of."""
    return migrated


@pytest.fixture(scope="module")
def new_url(servers: Addresses, template: str) -> Callable[[], str]:
    """Makes one more copy."""

    def create() -> str:
        name = f"fw_copy_{next(_number)}"
        with connect(servers.database_url) as admin:
            admin.execute(f"create database {name} template {template}".encode())
        return servers.database_url.replace("/foreword?", f"/{name}?")

    return create


@pytest.fixture(scope="module")
def shared_url(new_url: Callable[[], str]) -> str:
    return new_url()


@pytest.fixture
def alters() -> None:
    """Used by a test that would spoil the shared database for others."""
