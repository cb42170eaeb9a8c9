"""Liveness is the worker's word; calls get through when inference fills up."""

import os
import signal

import pytest

from lib import arena, h2, models, process
from lib.server import SLOW, Server
from lib.wire import Wire, request_bytes

ARENA = 1 << 20
RAW = {"Inference-Header-Content-Length": "0"}
PARTS = "health metadata config infer statistics repository metrics"
GETS = ["/v2/health/live", "/v2/health/ready", "/v2",
        "/v2/models/id_uint8", "/v2/models/id_uint8/ready",
        "/v2/models/id_uint8/config", "/v2/models/stats", "/metrics"]
POSTS = [("/v2/repository/index", b""),
         ("/v2/repository/index", b'{"ready": true}'),
         ("/v2/repository/models/id_uint8/load", b"{}"),
         ("/v2/repository/models/" + "x" * 3000 + "/unload", b"")]


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "UINT8", [-1])],
                    parameters={"execute_delay_ms": "1000"})


EXPLICIT = """
    inference_model_control explicit;
    inference_load_model *;
"""


@pytest.fixture(scope="module")
def server():
    with Server(fill, parts=PARTS,
                http=EXPLICIT + f"    inference_memory {ARENA};") as s:
        yield s


def every_call_is_answered(server):
    for path in GETS:
        answer = server.get(path)
        assert answer.status == 200, (path, answer)
    for path, body in POSTS:
        answer = server.post(path, body)
        assert answer.status in (200, 400), (path, answer)
        assert "inference_memory" not in str(answer)


def holder(server, size):
    """A client whose last byte is missing."""
    connection = server.wire(60)
    connection.send(request_bytes(
        "POST", "/v2/models/id_uint8/infer", headers={
            **RAW, "Content-Length": str(size)}) + bytes(size - 1))
    return connection


def test_arena_is_full_of_bodies(server):
    holders = [holder(server, ARENA // 2 - 65536) for _ in range(2)]
    while arena.asks_to_continue(server, 1) != 503:
        holders.append(holder(server, 4096))
        assert len(holders) < 1000
    every_call_is_answered(server)
    # and many at once
    connections = [server.wire() for _ in range(100)]
    for connection in connections:
        connection.send(request_bytes("GET", "/v2/models/id_uint8"))
    assert {c.read().status for c in connections} == {200}
    for connection in holders:
        connection.send(b"\0")
        assert connection.read().status in (200, 503)
        connection.close()
    arena.assert_empty(server, ARENA // 2)


def test_all_slots_are_taken_by_inferences(make_server):
    server = make_server(
        fill, parts=PARTS, http=EXPLICIT, http2=True,
        server="        http2_max_concurrent_streams 1000;")
    connections = [h2.H2(server.port2, timeout=60 * SLOW) for _ in range(5)]
    streams = [(c, c.post("/v2/models/slow/infer", {
        name.lower(): value for name, value in RAW.items()}, b"1"))
               for c in connections for _ in range(900)]
    for connection in connections:
        connection.sync()

    def one_more():
        return server.post("/v2/models/id_uint8/infer", b"1", RAW)

    # a request may be submitted behind the pong, too
    assert process.wait_until(lambda: one_more().status == 503, 20 * SLOW)
    assert "too many requests are in flight" in one_more().error
    every_call_is_answered(server)

    def rejected():
        # an answer may come behind the pong that it was made before
        for connection in connections:
            connection.sync()
        return sum(c.streams[s].ended and c.streams[s].status == 503
                   for c, s in streams)

    assert process.wait_until(lambda: rejected() >= 4500 - 4096, 20 * SLOW)
    for connection in connections:
        connection.close()
    # what waited for the model is forgotten
    assert process.wait_until(lambda: one_more().status == 200, 20 * SLOW)


@pytest.mark.parametrize("method,status", [("GET", 200), ("HEAD", 405)])
def test_live_while_the_core_hangs(server, method, status):
    core = server.core()
    process.stop(core)
    try:
        with server.wire() as connection:
            for _ in range(3):
                answer = connection.request(method, "/v2/health/live")
                assert (answer.status, answer.body) == (status, b"") \
                    or method == "HEAD" and answer.status == status
            connection.send(request_bytes("GET", "/v2/health/ready"))
            # nobody knows
            connection.socket.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.read()
    finally:
        os.kill(core, signal.SIGCONT)
    assert server.wait_for("/v2/health/ready")


def test_live_without_a_core(make_server):
    server = make_server(fill, core="/bin/false", wait="", parts=PARTS,
                         allow_alarms=["inference"], server="""
        location /precise/ { inference all; inference_errors precise; }
        location = /alone { inference health;
                            rewrite ^ /v2/health/live break; }
    """)
    assert server.wait_for("/v2/health/live")
    for path in ("/v2/health/live", "/v2/health/live?any=1", "/alone",
                 "/precise/v2/health/live"):
        answer = server.get(path)
        assert (answer.status, answer.body) == (200, b""), answer
        assert answer.headers["content-type"] == "text/plain"
    with Wire(server.port) as connection:
        # its body is not taken for a next request
        answer = connection.request("GET", "/v2/health/live", b"x" * 70000)
        assert answer.status == 200
        assert connection.get("/v2/health/live").status == 200
    for path in ("/v2/health/ready", "/precise/v2/health/ready"):
        answer = server.get(path)
        assert answer.status == 503, answer
        assert answer.error.startswith("the inference core is not running")
        assert answer.headers["retry-after"] == "1"
