"""The body is handed on as it came, at every stage of its reading."""

import gzip
import hashlib
import json
import os

import pytest

from lib import arena, models
from lib.server import Server
from lib.upstream import Upstream
from lib.wire import chunked, request_bytes, tensor

ARENA = 96 << 20
RAW = {"Inference-Header-Content-Length": "0"}


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "UINT8", [-1])],
                    parameters={"execute_delay_ms": "1000"})


@pytest.fixture(scope="module")
def server():
    with Upstream() as upstream, Server(
            fill, http=f"    inference_memory {ARENA};", server=f"""
        client_max_body_size 0;
        location /try/ {{
            inference infer; inference_timeout 200ms;
            inference_intercept_errors on;
            error_page 404 503 504 = @upstream;
        }}
        location /mirrored/ {{ inference infer; mirror /nothing;
                               inference_intercept_errors on;
                               error_page 404 503 504 = @upstream; }}
        location /tiny/ {{
            inference infer; inference_max_body 1000;
            inference_intercept_errors on;
            error_page 413 = @upstream;
        }}
        location = /nothing {{ internal; return 204; }}
        location @upstream {{ proxy_pass http://127.0.0.1:{upstream.port}; }}
    """) as s:
        s.upstream = upstream
        yield s
        arena.assert_empty(s, ARENA)


@pytest.fixture(autouse=True)
def forget(server):
    server.upstream.requests.clear()


def handed_on(server, path, body, headers, piece=None):
    """The record of what the upstream got."""
    with server.wire(60) as connection:
        if piece:
            connection.send(request_bytes("POST", path, headers={
                **headers, "Transfer-Encoding": "chunked"}))
            connection.send(chunked(body, piece))
            answer = connection.read()
        else:
            answer = connection.post(path, body, headers)
        assert answer.status == 200, answer
        assert connection.next().get("/v2/health/live").status == 200
    record = answer.json()
    assert record["size"] == len(body)
    assert record["sha256"] == hashlib.sha256(body).hexdigest()
    return record


@pytest.mark.parametrize("size", [64, 300_000, 8 << 20])
@pytest.mark.parametrize("where", ["try", "mirrored"])
def test_compressed_body_goes_on_compressed(server, size, where):
    body = gzip.compress(os.urandom(size), 1)
    record = handed_on(server, f"/{where}/v2/models/ghost/infer", body,
                       {**RAW, "Content-Encoding": "gzip"})
    assert record["headers"]["content-encoding"] == "gzip"


@pytest.mark.parametrize("size", [64, 300_000])
@pytest.mark.parametrize("piece", [None, 5000], ids=["length", "chunked"])
@pytest.mark.parametrize("kind", ["raw", "JSON", "compressed"])
def test_request_that_takes_too_long_goes_on_elsewhere(server, size, piece,
                                                       kind):
    """Its tensors were given to the core; the body still is what it was."""
    body, headers = os.urandom(size), RAW
    if kind == "JSON":
        body, headers = json.dumps({"inputs": [tensor(
            "IN", "UINT8", [size // 3], [1] * (size // 3))]}).encode(), {}
    elif kind == "compressed":
        body = gzip.compress(body)
        headers = {**RAW, "Content-Encoding": "gzip"}
    handed_on(server, "/try/v2/models/slow/infer", body, headers, piece)


def test_several_binary_tensors_go_on_as_one_body(server):
    """They lie apart in the arena, each aligned, with its own end."""
    sizes = [3, 100_001, 1, 64, 77]
    head = json.dumps({"inputs": [
        tensor(f"I{i}", "UINT8", [n], binary_data_size=n)
        for i, n in enumerate(sizes)]}).encode()
    body = head + os.urandom(sum(sizes))
    for piece in (None, 999):
        handed_on(server, "/try/v2/models/ghost/infer", body,
                  {"Inference-Header-Content-Length": str(len(head))}, piece)


@pytest.mark.parametrize("size", [1001, 8 << 20])
def test_body_beyond_inference_max_body_goes_on_whole(server, size):
    handed_on(server, "/tiny/v2/models/id_uint8/infer", os.urandom(size), RAW)


@pytest.mark.parametrize("size", [1001, 8 << 20])
def test_body_of_which_a_part_was_dropped_goes_nowhere(server, size):
    """In chunks it gets too large when its start is gone already."""
    with server.wire(60) as connection:
        connection.send(request_bytes(
            "POST", "/tiny/v2/models/id_uint8/infer",
            headers={**RAW, "Transfer-Encoding": "chunked"}))
        try:
            connection.send(chunked(bytes(size), 5000))
        except OSError:
            pass                # the answer is there already
        answer = connection.read()
        assert answer.status == 413, answer
        assert "inference_max_body" in answer.error
    assert not server.upstream.requests


def test_expect_reaches_the_fallback(server):
    """Rejected before the body came: the fallback asks for it."""
    body = b"e" * 5000
    with server.wire() as connection:
        connection.send(request_bytes(
            "POST", "/tiny/v2/models/id_uint8/infer", headers={
                **RAW, "Expect": "100-continue",
                "Content-Length": str(len(body))}))
        assert connection.read().status == 100
        connection.send(body)
        answer = connection.read()
        assert answer.status == 200, answer
        assert answer.json()["size"] == len(body)
