"""One server for a file, and requests to it."""

import pytest

from lib import decoupled, events, models
from lib.server import Server

PARTS = "health metadata config infer generate statistics repository"


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "told", [("IN", "INT32", [-1])],
                    parameters={"echo_parameters": "true"})
    models.identity(repository, "many", [
        ("IN_STATIC", "INT32", [2, 2]), ("IN_LAST", "FP32", [2, -1, 3]),
        ("IN_FIRST", "UINT8", [-1, 2]), ("IN_BOTH", "INT64", [-1, -1]),
        ("IN_WORD", "BYTES", [1])])
    models.identity(repository, "rows", [("IN", "INT32", [2])], max_batch=8)
    models.identity(repository, "row", [("IN", "BYTES", [-1])], max_batch=8)
    models.identity(repository, "named", [("parameters", "INT32", [1])])
    models.identity(repository, "ided", [("id", "BYTES", [1])])
    models.identity(repository, "slow", [("IN", "INT32", [-1])],
                    parameters={"execute_delay_ms": "300"})
    decoupled.repeat(repository)
    decoupled.square(repository)
    models.write_model(
        repository, "squares", 'platform: "ensemble"\n'
        'input { name: "N" data_type: TYPE_INT32 dims: [ 1 ] }\n'
        'output { name: "M" data_type: TYPE_INT32 dims: [ 1 ] }\n'
        'ensemble_scheduling { step { model_name: "square" model_version: -1\n'
        '  input_map { key: "IN" value: "N" }\n'
        '  output_map { key: "OUT" value: "M" } } }\n')


@pytest.fixture(scope="module")
def server():
    with Server(fill, workers=2, parts=PARTS, http2=True) as s:
        yield s


@pytest.fixture
def ask(server):
    """generate; ask(model, body, "generate_stream") the other."""
    def make(model, body, verb="generate", version=None, **kw):
        return events.post(server.port, events.path(model, verb, version),
                           body, **kw)
    return make


@pytest.fixture
def start(make_server):
    """A server of the test's own."""
    def make(fill_=fill, **kw):
        return make_server(fill_, **{"parts": PARTS, **kw})
    return make
