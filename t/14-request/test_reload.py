"""Bodies and answers that are on their way while nginx is reloaded."""

import json
import os

import pytest

from lib import models, process
from lib.load import Load
from lib.server import SLOW
from lib.wire import request_bytes, tensor

UINT8 = "/v2/models/id_uint8/infer"
INT32 = "/v2/models/id_int32/infer"
RAW = {"Inference-Header-Content-Length": "0"}


def reload(server):
    old = set(server.workers())
    server.signal("HUP")
    assert process.wait_until(lambda: set(server.workers()) - old, 20 * SLOW)
    return old


def test_large_bodies_under_load(make_server):
    server = make_server(models.standard_repository)
    body = os.urandom(70_000)

    def once(connection):
        answer = connection.post(UINT8, body, RAW)
        if answer.status == 200:
            assert answer.split()[1] == body
        return answer.status

    with Load(server.port, once, keep=False) as load:
        for _ in range(10):
            load.wait_for_more(10, 30 * SLOW)
            reload(server)
        load.wait_for_more(30, 30 * SLOW)
    assert set(load.results) == {200}, load.results


@pytest.mark.parametrize("size", [1000, 8 << 20])
def test_body_that_began_before_a_reload(make_server, size):
    server = make_server(models.standard_repository)
    body = os.urandom(size)
    with server.wire(60) as connection:
        whole = request_bytes("POST", UINT8, body, RAW)
        connection.send(whole[:-size // 2])
        for _ in range(3):
            old = reload(server)
        connection.send(whole[-size // 2:])
        answer = connection.read()
        assert answer.status == 200, answer
        assert answer.split()[1] == body
    assert process.wait_until(
        lambda: not old & set(server.workers()), 20 * SLOW)


def test_answer_that_is_read_after_a_reload(make_server):
    server = make_server(models.standard_repository)
    body = os.urandom(8 << 20)
    with server.wire(60) as connection:
        connection.send(request_bytes("POST", UINT8, body, RAW))
        connection.buffer = connection.socket.recv(100)
        reload(server)
        assert server.post(UINT8, b"new", RAW).status == 200
        answer = connection.read()
        assert answer.status == 200, answer
        assert answer.split()[1] == body


def test_answer_that_is_printed_during_a_reload(make_server):
    """The worker that leaves has nothing else to do, and no timer."""
    server = make_server(models.standard_repository)
    data = list(range(2_000_000))
    body = json.dumps({"inputs": [
        tensor("IN", "INT32", [len(data)], data)]}).encode()
    for _ in range(5):
        with server.wire(60) as connection:
            connection.send(request_bytes("POST", INT32, body))
            connection.buffer = connection.socket.recv(100)
            server.signal("HUP")
            answer = connection.read()
            assert answer.status == 200, answer
            assert answer.json()["outputs"][0]["data"] == data
