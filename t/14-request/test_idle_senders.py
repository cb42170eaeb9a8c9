"""Clients that announce large bodies and then say nothing: issue 14."""

import contextlib
import os
import signal

import pytest

from lib import arena, models
from lib.exposition import figure
from lib.process import wait_until
from lib.server import SLOW, Server
from lib.wire import Wire, chunked, request_bytes, tensor

ARENA = 64 << 20
CONNECTIONS = 1200                  # worker_connections
IDLE = CONNECTIONS * 3 // 4
LARGEST = ARENA // 2
UINT8 = "/v2/models/id_uint8/infer"
RAW = {"Inference-Header-Content-Length": "0"}


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository, connections=CONNECTIONS,
                http=f"    inference_memory {ARENA};", server="""
        location = /scrape { inference metrics; }
        location /v2/repository/ { inference repository; }
    """) as s:
        yield s
        arena.assert_empty(s, ARENA)


def gauge(server, name):
    return int(figure(server, f"request_arena_{name}_bytes", "/scrape"))


def announce(server, form, size):
    """A connection that is to bring size bytes, and brings one."""
    connection = Wire(server.port, 60)
    if form == "length":
        connection.send(request_bytes("POST", UINT8, headers={
            **RAW, "Content-Length": str(size)}) + b"x")
    else:
        text = (b'{"inputs":[{"name":"IN","datatype":"UINT8","shape":[%d],'
                b'"parameters":{"binary_data_size":%d}}]}' % (size, size))
        connection.send(request_bytes("POST", UINT8, headers={
            "Transfer-Encoding": "chunked",
            "Inference-Header-Content-Length": str(len(text))})
            + chunked(text + b"x", 1 << 20)[:-5])
    return connection


def answers(server, size):
    body = os.urandom(size)
    for headers, data in (
            ({"Content-Length": str(size)}, body),
            ({"Transfer-Encoding": "chunked"}, chunked(body, 70_000))):
        with server.wire(60) as connection:
            connection.send(request_bytes("POST", UINT8, headers={
                **RAW, **headers}) + data)
            answer = connection.read()
            assert answer.status == 200, answer
            assert answer.split()[1] == body
    if size < 1 << 20:
        answer = server.infer("id_uint8", {"inputs": [tensor(
            "IN", "UINT8", [size], [7] * size)]})
        assert answer.status == 200, answer


@pytest.mark.parametrize("form", ["length", "chunked"])
def test_idle_announcements_leave_room_for_others(server, form):
    """From the largest size down, each until no place for it is left."""
    sizes = []
    size = LARGEST
    while size >= 1 << 16:
        sizes.append(size)
        size //= 4
    with contextlib.ExitStack() as idle:
        for size in sizes:
            for _ in range(IDLE // len(sizes)):
                idle.enter_context(announce(server, form, size))
        assert wait_until(lambda: gauge(server, "reserved") >= ARENA,
                          20 * SLOW)
        assert gauge(server, "used") < ARENA // 2
        for size in (1, 1000, 100_000, 1 << 20, LARGEST - 1000):
            answers(server, size)
    assert wait_until(lambda: gauge(server, "reserved") == 0
                      and gauge(server, "used") == 0, 20 * SLOW)


@pytest.mark.parametrize("size", [10, 5000, 20_000])
@pytest.mark.parametrize("how", ["length", "chunked"])
def test_call_with_a_body_leaves_nothing_reserved(server, how, size):
    body = b"{}" + b" " * (size - 2)
    chunks = how == "chunked"
    with server.wire(60) as connection:
        connection.send(request_bytes("POST", "/v2/repository/index", headers={
            "Transfer-Encoding": "chunked"} if chunks else {
            "Content-Length": str(size)})
            + (chunked(body, 3000) if chunks else body))
        answer = connection.read()
        assert answer.status == 200, answer
    with announce(server, "length", LARGEST):   # for figures that are new
        assert wait_until(lambda: gauge(server, "reserved") > LARGEST // 2,
                          20 * SLOW)
    assert wait_until(lambda: gauge(server, "reserved") == 0
                      and gauge(server, "used") == 0, 20 * SLOW)


def test_worker_that_is_killed_leaves_nothing_in_the_gauges(make_server):
    server = make_server(
        models.standard_repository, http=f"    inference_memory {ARENA};",
        server="location = /scrape { inference metrics; }",
        allow_alarms=["worker process .* exited on signal 9"])
    with announce(server, "length", LARGEST):
        assert wait_until(lambda: gauge(server, "reserved") > LARGEST // 2,
                          10 * SLOW)
        worker, = server.workers()
        os.kill(worker, signal.SIGKILL)
        assert server.wait_for("/v2/health/ready")
        assert wait_until(lambda: gauge(server, "reserved") == 0, 10 * SLOW)
