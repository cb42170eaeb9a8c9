"""Clients that leave, at every stage; the arena is empty after each."""

import gzip
import json
import socket
import struct
import threading
import time

import pytest

from lib import arena, models
from lib.server import SLOW, Server, nap
from lib.wire import chunked, request_bytes, tensor

ARENA = 48 << 20
RAW = {"Inference-Header-Content-Length": "0"}
SIZE = 4 << 20
HEAD = json.dumps({
    "inputs": [tensor("IN", "UINT8", [SIZE], binary_data_size=SIZE)],
    "parameters": {"binary_data_output": True}}).encode()
BINARY = request_bytes(
    "POST", "/v2/models/id_uint8/infer", HEAD + b"b" * SIZE,
    {"Inference-Header-Content-Length": str(len(HEAD))})
BODY_AT = BINARY.index(b"\r\n\r\n") + 4
NUMBERS = json.dumps({"inputs": [tensor(
    "IN", "FP32", [300_000], [1.5] * 300_000)]}).encode()
JSON = request_bytes("POST", "/v2/models/id_fp32/infer", NUMBERS)
CHUNKED = request_bytes("POST", "/v2/models/id_uint8/infer", headers={
    **RAW, "Transfer-Encoding": "chunked"}) + chunked(b"c" * SIZE, 50_000)
PACKED = request_bytes(
    "POST", "/v2/models/id_uint8/infer", gzip.compress(b"g" * SIZE, 0),
    {**RAW, "Content-Encoding": "gzip"})
SLOW_ONE = request_bytes("POST", "/v2/models/slow/infer", b"s" * 100_000, RAW)

STAGES = {
    "in the request line": (BINARY, 20),
    "before the body": (BINARY, BODY_AT),
    "in the header": (BINARY, BODY_AT + 30),
    "after the header": (BINARY, BODY_AT + len(HEAD)),
    "early in the tensor": (BINARY, BODY_AT + len(HEAD) + 1),
    "in the tensor": (BINARY, len(BINARY) // 2),
    "before the last byte": (BINARY, len(BINARY) - 1),
    "in a number": (JSON, len(JSON) // 2),
    "before the last brace": (JSON, len(JSON) - 1),
    "in a chunk": (CHUNKED, len(CHUNKED) // 2),
    "before the last chunk": (CHUNKED, len(CHUNKED) - 5),
    "in a compressed body": (PACKED, len(PACKED) // 2),
    "before its checksum": (PACKED, len(PACKED) - 8),
}

ANSWERED = {"binary": BINARY, "JSON": JSON, "chunked": CHUNKED,
            "compressed": PACKED}


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "UINT8", [-1])],
                    parameters={"execute_delay_ms": "200"})


@pytest.fixture(scope="module")
def server():
    with Server(fill, log_level="debug",
                http=f"    inference_memory {ARENA};\n"
                "    inference_log info verbose=1;\n") as s:
        yield s


def leave(connection, how):
    """close: as most programs; reset: as a machine that goes away."""
    if how == "reset":
        connection.socket.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("stage", STAGES)
def test_abort_of_an_upload(server, stage, how):
    data, size = STAGES[stage]
    for _ in range(5):
        connection = server.wire()
        connection.send(data[:size])
        leave(connection, how)
    for _ in range(3):
        connection = server.wire()
        connection.send(data[:size])
        nap(0.05)                   # this one has been received
        leave(connection, how)
    arena.assert_empty(server, ARENA)


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("kind", ANSWERED)
@pytest.mark.parametrize("taken", [0, 1, 1000, 100_000, 1_000_000])
def test_abort_of_an_answer(server, kind, taken, how):
    for _ in range(3):
        connection = server.wire(60)
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF,
                                     65536)
        connection.send(ANSWERED[kind])
        left = taken
        while left > 0:
            left -= len(connection.socket.recv(min(left, 1 << 16)))
        leave(connection, how)
    arena.assert_empty(server, ARENA)


@pytest.mark.parametrize("how", ["close", "reset"])
def test_abort_of_queued_and_executing_requests(server, how):
    connections = [server.wire() for _ in range(30)]
    for connection in connections:
        connection.send(SLOW_ONE)
    nap(0.1)                        # one executes, the others are queued
    for connection in connections:
        leave(connection, how)
    began = time.monotonic()
    assert server.post("/v2/models/slow/infer", b"last", RAW).status == 200
    assert time.monotonic() - began < 3 * SLOW      # 30 would take 6 s
    server.wait_log("Cancellation notification received for model=slow"
                    " version=1")
    arena.assert_empty(server, ARENA)


def test_abort_of_pipelined_requests(server):
    for _ in range(5):
        connection = server.wire()
        connection.send(BINARY + SLOW_ONE + JSON[:-5])
        connection.socket.recv(100)
        leave(connection, "reset")
    arena.assert_empty(server, ARENA, 20)


def test_abort_with_half_closed_connections(server):
    """shutdown() after the request: some clients still want the answer."""
    for _ in range(3):
        connection = server.wire()
        connection.send(BINARY)
        connection.socket.shutdown(socket.SHUT_WR)
        try:
            assert connection.read().status in (200, 499)
        except OSError:
            pass                    # nginx takes it for a leave
        connection.close()
    arena.assert_empty(server, ARENA)


def test_aborts_beside_requests_that_stay(server):
    """No answer of those who stay is touched by those who leave."""
    going, wrong, answers = True, [], [0]

    def stay(byte):
        body = bytes([byte]) * 300_000
        with server.wire(60) as connection:
            while going:
                answer = connection.post("/v2/models/id_uint8/infer", body,
                                         RAW)
                answers[0] += 1
                if answer.status != 200 or answer.split()[1] != body:
                    wrong.append(answer)

    threads = [threading.Thread(target=stay, args=(i + 1,))
               for i in range(3)]
    for t in threads:
        t.start()
    for i in range(60):
        connection = server.wire()
        data = [BINARY, JSON, CHUNKED, PACKED][i % 4]
        connection.send(data[:len(data) * (i % 7 + 1) // 7])
        leave(connection, "reset" if i % 2 else "close")
    going = False
    for t in threads:
        t.join()
    assert not wrong, wrong[:3]
    assert answers[0] > 3
    arena.assert_empty(server, ARENA, 20)
