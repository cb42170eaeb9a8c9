"""One server for a file, and clients of it."""

import pytest

from lib import decoupled, models
from lib.grpc_client import Client
from lib.server import Server

PARTS = "health metadata config infer statistics repository"


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "INT32", [-1])],
                    parameters={"execute_delay_ms": "300"})
    decoupled.repeat(repository)
    decoupled.square(repository)


@pytest.fixture(scope="module")
def server():
    with Server(fill, workers=2, http2=True, parts=PARTS,
                http="    underscores_in_headers on;") as s:
        yield s


@pytest.fixture
def client(server):
    with Client(server.port2) as c:
        yield c


@pytest.fixture
def start(make_server):
    """A server of the test's own, with HTTP/2."""
    def make(fill_=fill, **kw):
        return make_server(fill_, http2=True, **{"parts": PARTS, **kw})
    return make
