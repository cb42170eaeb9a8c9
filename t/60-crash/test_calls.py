"""The core dies while it has calls that are no inferences: the next one
answers them."""

import json

import pytest

from lib import backends, models, process
from lib.grpc_client import Client
from lib.regions import Object
from lib.server import SLOW, nap
from lib.wire import fetch, request_bytes

KILLED = r"exited on signal"
PARTS = "health metadata config infer statistics repository trace logging" \
    " shared_memory metrics"
EXPLICIT = "    inference_model_control explicit;\n" \
    "    inference_load_model one;\n    inference_load_model two;\n" \
    f"    inference_backends {backends.build('failing')};\n"


def fill(repository):
    models.identity(repository, "one", [("IN", "INT32", [-1])])
    models.identity(repository, "two", [("IN", "INT32", [-1])])
    path = models.identity(repository, "kept", [("IN", "INT32", [-1])],
                           backend="failing",
                           parameters={"fail": "initialize-hold"})
    path.chmod(0o777)


@pytest.fixture
def server(make_server):
    return make_server(fill, parts=PARTS, http2=True, http=EXPLICIT,
                       allow_alarms=[KILLED])


@pytest.fixture
def memory():
    made = Object(8192)
    yield made
    made.close()


def send(server, method, path, body=None):
    connection = server.wire(60)
    connection.send(request_bytes(
        method, path, None if body is None else json.dumps(body).encode()))
    return connection


def read(connection):
    answer = connection.read()
    connection.close()
    return answer


def find(answer, text):
    assert answer.status == 200, answer
    assert text.encode() in answer.body, answer


@pytest.mark.parametrize("method,path,body,text", [
    ("GET", "/v2", None, '"name":"triton"'),
    ("GET", "/v2/models/one", None, '"name":"one"'),
    ("GET", "/v2/models/one/config", None, '"name":"one"'),
    ("GET", "/v2/models/one/stats", None, '"name":"one"'),
    ("GET", "/v2/models/stats", None, '"model_stats":['),
    ("GET", "/v2/logging", None, '"log_info":'),
    ("POST", "/v2/logging", {"log_verbose_level": 2},
     '"log_verbose_level":2'),
    ("GET", "/v2/trace/setting", None, '"trace_rate":'),
    ("POST", "/v2/trace/setting", {"trace_rate": "17"}, '"trace_rate":"17"'),
    ("GET", "/v2/systemsharedmemory/status", None, "[]"),
    ("POST", "/v2/systemsharedmemory/unregister", {}, ""),
    ("POST", "/v2/repository/index", {}, "["),
    ("POST", "/v2/repository/models/two/load", {}, ""),
    ("POST", "/v2/repository/models/two/unload", {}, ""),
    ("GET", "/metrics", None, "nv_pinned_memory_pool_total_bytes")])
def test_a_call_is_answered_by_the_next_core(server, method, path, body,
                                             text):
    process.stop(server.core())
    sent = send(server, method, path, body)
    nap(0.2)
    server.end_core()
    find(read(sent), text)


def test_readiness_is_what_the_next_core_says(server):
    """It may not have loaded the model yet."""
    process.stop(server.core())
    sent = [send(server, "GET", path) for path in
            ("/v2/health/ready", "/v2/models/one/ready")]
    nap(0.2)
    server.end_core()
    answers = [read(s) for s in sent]
    assert not [a for a in answers if b"core" in a.body], answers
    assert server.wait_for("/v2/health/ready")


def test_calls_of_grpc(server):
    with Client(server.port2) as client:
        process.stop(server.core())
        calls = [client.channel.unary_unary(
            f"/inference.GRPCInferenceService/{name}",
            response_deserializer=lambda m: m).future(
                message, timeout=60 * SLOW)
            for name, message in [
                ("ModelMetadata", b"\x0a\x03one"),
                ("RepositoryIndex", b""), ("ServerMetadata", b""),
                ("RepositoryModelUnload", b"\x12\x03two")]]
        nap(0.3)
        server.end_core()
        assert b"one" in calls[0].result()
        calls[1].result()               # it may not list all yet
        assert b"triton" in calls[2].result()
        assert calls[3].result() == b""


def test_a_region_that_the_core_has_not_taken_is_registered(server, memory):
    process.stop(server.core())
    sent = send(server, "POST", "/v2/systemsharedmemory/region/r/register",
                {"key": memory.key, "byte_size": 64})
    nap(0.2)
    server.end_core()
    assert read(sent).status == 200
    find(server.get("/v2/systemsharedmemory/status"), '"name":"r"')


def test_a_load_in_its_midst_is_done_again(server):
    place = server.models / "kept"
    (place / "hold").write_text("")
    sent = send(server, "POST", "/v2/repository/models/kept/load", {})
    assert process.wait_until((place / "held").exists, 20 * SLOW)
    (place / "held").unlink()
    server.end_core()
    assert process.wait_until((place / "held").exists, 20 * SLOW)
    (place / "hold").unlink()
    assert read(sent).status == 200
    assert fetch(server.port, "GET", "/v2/models/kept/ready").status == 200


def test_a_load_that_ends_its_core_fails(make_server):
    """After its tries, or when its model is quarantined; others are there."""
    def with_crash(repository):
        fill(repository)
        models.identity(repository, "bad", [("IN", "INT32", [-1])],
                        backend="failing",
                        parameters={"fail": "initialize-crash"})

    server = make_server(with_crash, parts=PARTS, http=EXPLICIT,
                         allow_alarms=[KILLED])
    answer = read(send(server, "POST", "/v2/repository/models/bad/load", {}))
    assert answer.status in (400, 503), answer
    assert server.wait_for("/v2/models/one/ready")
    assert server.get("/v2/models/bad/ready").status != 200


def test_a_model_that_the_next_core_still_loads_is_waited_for(server):
    place = server.models / "kept"
    assert server.post("/v2/repository/models/kept/load", b"").status == 200
    (place / "held").unlink()
    (place / "hold").write_text("")
    server.end_core()
    assert process.wait_until((place / "held").exists, 20 * SLOW)
    sent = [send(server, "GET", "/v2/models/kept" + what)
            for what in ("", "/config", "/stats")]
    unknown = server.get("/v2/models/unknown")
    (place / "hold").unlink()
    assert unknown.status == 404, unknown
    for connection in sent:
        find(read(connection), '"name":"kept"')
