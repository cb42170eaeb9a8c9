"""Readers that pause: the answer waits for them and nobody else does."""

import gzip
import json
import socket
import time

import pytest

from lib import arena, models, process
from lib.h2 import H2
from lib.server import SLOW, Server, nap
from lib.wire import request_bytes, tensor

ARENA = 64 << 20
COUNT = 1_000_000
UINT8 = "/v2/models/id_uint8/infer"
RAW = {"inference-header-content-length": "0"}
JSON = json.dumps({"inputs": [
    tensor("IN", "FP32", [COUNT], [1.5] * COUNT)]}).encode()


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository, http2=True,
                http=f"    inference_memory {ARENA};", server="""
        http2_body_preread_size 1m;
        location /gz/ { inference infer; gzip on; gzip_min_length 1;
                        gzip_types application/json; }
        location /brief/ { inference infer; inference_timeout %ds; }
        location /hasty/ { inference infer; send_timeout 1s;
                           access_log hasty.log; }
    """ % (2 * SLOW)) as s:
        yield s
        arena.assert_empty(s, ARENA)


def slow_wire(server):
    """A connection whose receive buffer is small."""
    connection = server.wire(60)
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    return connection


def dribble(connection, size, pause):
    """Takes size bytes in small pieces, with a pause after each."""
    while len(connection.buffer) < size:
        connection.buffer += connection.socket.recv(1 << 16)
        time.sleep(pause)
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)


def others_are_served(server):
    began = time.monotonic()
    for i in range(5):
        answer = server.infer("id_int32", {"inputs": [
            tensor("IN", "INT32", [1], [i])]})
        assert answer.json()["outputs"][0]["data"] == [i]
    assert time.monotonic() - began < 2 * SLOW


def test_slow_reader_of_json(server):
    with slow_wire(server) as connection:
        connection.send(b"POST /v2/models/id_fp32/infer HTTP/1.1\r\n"
                        b"Host: x\r\nContent-Length: %d\r\n\r\n" % len(JSON))
        connection.send(JSON)
        nap(0.3)
        others_are_served(server)
        dribble(connection, 400_000, 0.01)
        answer = connection.read()
        assert answer.status == 200, answer
        assert answer.json()["outputs"][0]["data"] == [1.5] * COUNT
        assert connection.get("/v2/health/live").status == 200


def test_slow_reader_of_a_binary_tensor(server):
    body = bytes(range(256)) * (32 << 12)           # 32 MiB
    with slow_wire(server) as connection:
        connection.send(b"POST " + UINT8.encode() + b" HTTP/1.1\r\nHost: x"
                        b"\r\nInference-Header-Content-Length: 0\r\n"
                        b"Content-Length: %d\r\n\r\n" % len(body))
        connection.send(body)
        nap(0.3)
        others_are_served(server)
        dribble(connection, 1_000_000, 0.01)
        answer = connection.read()
        assert answer.status == 200, answer
        assert answer.split()[1] == body
        assert connection.get("/v2/health/live").status == 200


def test_reader_that_pauses_while_others_fill_and_free_the_arenas(server):
    """Bytes that it has not yet read are not given to another client."""
    body = bytes(range(256)) * (8 << 12)            # 8 MiB
    with slow_wire(server) as connection:
        connection.send(b"POST " + UINT8.encode() + b" HTTP/1.1\r\nHost: x"
                        b"\r\nInference-Header-Content-Length: 0\r\n"
                        b"Content-Length: %d\r\n\r\n" % len(body))
        connection.send(body)
        for i in range(10):
            other = bytes([i + 1]) * (8 << 20)
            answer = server.post(UINT8, other, RAW)
            assert answer.split()[1] == other
        assert connection.read().split()[1] == body


def long_numbers(count):
    return json.dumps({"inputs": [
        tensor("IN", "FP32", [count], [-1.2345678e-30] * count)]}).encode()


def test_reader_that_takes_longer_than_inference_timeout(server):
    """The time ends with the core's answer."""
    body = long_numbers(COUNT)
    with slow_wire(server) as connection:
        connection.send(b"POST /brief/v2/models/id_fp32/infer HTTP/1.1\r\n"
                        b"Host: x\r\nContent-Length: %d\r\n\r\n" % len(body))
        connection.send(body)
        time.sleep(2 * SLOW + 1)
        answer = connection.read()
        assert answer.status == 200, answer
        assert len(answer.json()["outputs"][0]["data"]) == COUNT


def test_reader_of_json_that_stops_for_send_timeout_is_let_go(server):
    """Its connection is closed and nothing of its answer is kept."""
    log = server.prefix / "hasty.log"
    with slow_wire(server) as connection:
        connection.send(request_bytes(      # more than any socket buffers
            "POST", "/hasty/v2/models/id_fp32/infer", long_numbers(COUNT)))
        assert process.wait_until(log.read_text, 20 * SLOW), \
            "the request of a reader that reads nothing never ends"
        server.wait_log("client timed out")
        arena.assert_empty(server, ARENA)
        with pytest.raises(ConnectionError):
            connection.read()


def test_http2_stream_that_stops_for_send_timeout_is_reset(server):
    """The connection's other streams go on."""
    with H2(server.port2, 2000, 20 * SLOW) as connection:
        stopped = connection.post("/hasty/v2/models/id_fp32/infer",
                                  body=long_numbers(50_000))
        stream = connection.read(stopped)
        assert stream.status == 200
        assert stream.reset is not None
        assert len(stream.body) == 2000
        small = connection.read(connection.post(UINT8, RAW, b"123"))
        assert small.status == 200
        assert small.body.endswith(b"123")


def test_json_answer_through_the_gzip_filter(server):
    answer = server.post("/gz/v2/models/id_fp32/infer", JSON,
                         {"Accept-Encoding": "gzip"})
    assert answer.status == 200, answer
    assert answer.headers["content-encoding"] == "gzip"
    data = json.loads(gzip.decompress(answer.body))
    assert data["outputs"][0]["data"] == [1.5] * COUNT


@pytest.mark.parametrize("window", [1, 100, 16_384, 1 << 20])
def test_http2_windows_of_any_size(server, window):
    body = bytes(range(250)) * 200                  # 50 kB
    with H2(server.port2, window, 60 * SLOW) as connection:
        number = connection.post(UINT8, RAW, body)
        stream = connection.streams[number]
        while not stream.ended:
            had = len(stream.body)
            connection.step()
            if len(stream.body) > had and window > 1:
                connection.give(number, len(stream.body) - had)
            elif len(stream.body) > had:
                connection.give(number, 4000)
        assert (stream.status, stream.reset) == (200, None)
        assert stream.body.endswith(body)


def test_http2_stream_that_pauses_lets_the_others_pass(server):
    body = bytes(range(250)) * 200
    with H2(server.port2, 2000, 60 * SLOW) as connection:
        paused = connection.post(UINT8, RAW, body)
        for i in range(20):
            small = bytes([i]) * 500
            stream = connection.read(connection.post(UINT8, RAW, small))
            assert stream.status == 200
            assert stream.body.endswith(small)
        assert not connection.streams[paused].ended
        assert len(connection.streams[paused].body) <= 2000
        connection.give(paused, 1 << 20)
        assert connection.read(paused).body.endswith(body)
