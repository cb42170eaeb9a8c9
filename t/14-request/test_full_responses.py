"""The response arena is in use by clients that do not read: others go on, and
what finds no room is rejected alone."""

import contextlib
import json
import socket
import struct

import pytest

from lib import models, process
from lib.exposition import figure
from lib.grpc_client import Client, Failure, infer, tensor
from lib.server import SLOW, Server
from lib.wire import infer_path, request_bytes

LARGE = 12 << 20            # beyond what sockets take
UINT8 = infer_path("id_uint8")
HEAD = json.dumps({"inputs": [{
    "name": "IN", "datatype": "UINT8", "shape": [LARGE],
    "parameters": {"binary_data_size": LARGE}}],
    "parameters": {"binary_data_output": True}}).encode()
HEADERS = {"Inference-Header-Content-Length": str(len(HEAD))}
FULL = "the response arena is full"


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository, http2=True, server="""
        location /precise/ { inference all; inference_errors precise; }
        location = /metrics { inference metrics; }
    """, parts="all",
                http="    inference_memory 256m responses=32m;") as s:
        yield s


def ask(server, place=""):
    return server.post(place + UINT8, HEAD + bytes(LARGE), HEADERS)


@contextlib.contextmanager
def silent_readers(server, count):
    """Clients whose answers stay where they are."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            s = stack.enter_context(socket.socket())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", server.port))
            s.settimeout(30 * SLOW)
            s.sendall(request_bytes("POST", UINT8, HEAD + bytes(LARGE),
                                    HEADERS))
            assert s.recv(15) == b"HTTP/1.1 200 OK"
        yield


def test_what_finds_no_room_is_rejected_alone(server):
    def used():
        return figure(server, "response_arena_used_bytes")

    assert ask(server).status == 200
    assert figure(server, "response_arena_bound_bytes") == 32 << 20
    assert process.wait_until(lambda: used() == 0, 20 * SLOW)
    with silent_readers(server, 2):
        assert 2 * LARGE <= used() <= 32 << 20
        for place, status in (("", 503), ("/precise", 429)):
            answer = ask(server, place)
            assert answer.status == status, answer
            assert FULL in answer.error
            assert answer.headers["retry-after"] == "1"
        small = server.post(UINT8, b"abc",
                            {"Inference-Header-Content-Length": "0"})
        assert small.status == 200, small
        assert server.status("/v2/health/ready") == 200
        for prefix, code in (("", 14), ("/precise", 8)):
            with Client(server.port2, prefix) as client:
                with pytest.raises(Failure) as e:
                    client.call("ModelInfer", infer("id_uint8", tensor(
                        "IN", "UINT8", [LARGE], bytes(LARGE))))
                assert e.value.code.value[0] == code
                assert FULL in e.value.text
                small = client.call("ModelInfer", infer("id_int32", tensor(
                    "IN", "INT32", [1], struct.pack("<i", 7))))
                assert small.raw_output_contents == [struct.pack("<i", 7)]
    assert process.wait_until(lambda: ask(server).status == 200, 20 * SLOW)
    assert process.wait_until(lambda: used() == 0, 20 * SLOW)
