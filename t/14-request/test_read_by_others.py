"""Another module reads the body before the location's handler does: nginx's own
limit is off there, so inference_max_body has to be one for it, too."""

import pytest

from lib import arena, h2, models
from lib.server import Server
from lib.upstream import Upstream
from lib.wire import chunked, request_bytes

ARENA = 64 << 20
BODY = (b'{"inputs": [{"name": "IN", "datatype": "UINT8", "shape": [40], '
        b'"data": [' + b"1, " * 39 + b"1]}]}")
MANY = 60_000
PATHS = [f"/{where}/v2/models/id_uint8/infer"
         for where in ("mirrored", "asked", "half")]


@pytest.fixture(scope="module")
def server():
    with Upstream() as upstream, Server(
            models.standard_repository, http2=True,
            http=f"    inference_memory {ARENA};", server=f"""
        inference_max_body 1k;
        location /mirrored/ {{ inference all; mirror /drop; }}
        location /asked/ {{ inference all; auth_request /ask; }}
        location /half/ {{
            inference all;
            mirror /drop;
            error_page 413 = @upstream;
        }}
        location = /drop {{ internal; return 204; }}
        location = /ask {{ internal; inference_model id_uint8; }}
        location @upstream {{
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
    """) as s:
        s.upstream = upstream
        yield s


@pytest.fixture(autouse=True)
def empty_after(server):
    yield
    arena.assert_empty(server, ARENA)
    assert server.upstream.requests == []


@pytest.mark.parametrize("path", PATHS)
def test_a_length_that_is_too_large(server, path):
    with server.wire() as connection:
        connection.next().send(request_bytes(
            "POST", path, headers={"Content-Length": str(1 << 40)})
            + b"x" * 10)
        assert connection.read().status == 413


@pytest.mark.parametrize("path", PATHS)
def test_chunks_that_do_not_end(server, path):
    with server.wire() as connection:
        connection.next().send(request_bytes(
            "POST", path, headers={"Transfer-Encoding": "chunked"})
            + chunked(b"x" * MANY, 1000)[:-len(b"0\r\n\r\n")])
        assert connection.read().status == 413


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("length", [None, 1 << 40])
def test_frames_that_do_not_end(server, path, length):
    with h2.H2(server.port2) as connection:
        stream = connection.post(path, {"content-length": str(length)}
                                 if length else {})
        connection.data(stream, b"x" * MANY)
        assert connection.read(stream).status == 413


@pytest.mark.parametrize("path", PATHS)
def test_what_is_permitted(server, path):
    with server.wire() as connection:
        assert connection.post(path, BODY).status == 200
        connection.next().send(request_bytes(
            "POST", path, headers={"Transfer-Encoding": "chunked"})
            + chunked(BODY, 7))
        assert connection.read().status == 200
    with h2.H2(server.port2) as connection:
        assert connection.read(connection.post(path, {}, BODY)).status == 200
