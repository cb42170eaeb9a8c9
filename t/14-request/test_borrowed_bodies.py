"""A subrequest to a model ends before its main request's body has come."""

import pytest

from lib import arena, h2, models, process
from lib.server import SLOW, Server, nap
from lib.upstream import Upstream
from lib.wire import chunked, request_bytes

ARENA = 64 << 20
BODY = (b'{"inputs": [{"name": "IN", "datatype": "UINT8", "shape": [40], '
        b'"data": [' + b"1, " * 39 + b"1]}]}")


@pytest.fixture(scope="module")
def server():
    with Upstream() as upstream, Server(
            models.standard_repository, http2=True,
            http=f"    inference_memory {ARENA};", server=f"""
        location /guarded {{
            client_max_body_size 4k;
            auth_request /ask;
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
        location /timed {{
            auth_request /ask-soon;
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
        location /pages {{
            auth_request /ask-soon;
            proxy_pass http://127.0.0.1:{upstream.port};
            inference_intercept_errors on;
            error_page 500 503 = @upstream;
        }}
        location /anyway {{
            client_max_body_size 4k;
            auth_request /ask-anyway;
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
        location /little {{
            auth_request /ask-little;
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
        location /mirrored {{
            mirror /ask;
            mirror_request_body off;
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
        location = /ask {{ internal; inference_model id_uint8; }}
        location = /ask-soon {{
            internal; inference_timeout 300ms; inference_model id_uint8;
        }}
        location = /ask-anyway {{
            internal; inference_timeout 300ms; inference_model id_uint8;
            inference_intercept_errors on;
            error_page 400 413 500 503 = /yes;
        }}
        location = /ask-little {{
            internal; inference_max_body 100; inference_model id_uint8;
        }}
        location = /yes {{ internal; return 204; }}
        location @upstream {{
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
    """) as s:
        s.upstream = upstream
        yield s


@pytest.fixture(autouse=True)
def nothing_is_left(server):
    """No connection is kept by a request that nobody ends: a reload ends."""
    server.upstream.requests.clear()
    yield
    server.reload()
    assert server.wait_for("/v2/health/ready")
    arena.assert_empty(server, ARENA)


def begin(path, coding):
    """A request of which the second half of the body is missing."""
    half = len(BODY) // 2
    if coding == "length":
        return request_bytes("POST", path, headers={
            "Content-Length": str(len(BODY))}) + BODY[:half]
    return request_bytes("POST", path, headers={
        "Transfer-Encoding": "chunked"}) + chunked(BODY[:half], half)[:-5]


def answer_of(connection):
    """The status; no byte follows and the connection is closed."""
    answer = connection.read()
    with pytest.raises(ConnectionError):
        connection.read()
    return answer.status


@pytest.mark.parametrize("coding", ["length", "chunked"])
@pytest.mark.parametrize("path", ["/timed", "/pages", "/anyway"])
def test_its_time_is_over(server, path, coding):
    with server.wire() as connection:
        connection.send(begin(path, coding))
        assert answer_of(connection) == 503
    # neither an error_page of its own nor one of main sends half a body on
    assert server.upstream.requests == []


@pytest.mark.parametrize("path", ["/guarded", "/timed", "/anyway"])
def test_body_that_comes_in_time_is_passed_on(server, path):
    with server.wire() as connection:
        for _ in range(2):
            connection.send(begin(path, "length"))
            nap(0.05)
            connection.send(BODY[len(BODY) // 2:])
            assert connection.read().status == 200
    assert [r["size"] for r in server.upstream.requests] == [len(BODY)] * 2


@pytest.mark.parametrize("path", ["/guarded", "/anyway"])
@pytest.mark.parametrize("at_once", [True, False])
def test_broken_chunk(server, path, at_once):
    with server.wire() as connection:
        # beyond what is read with the headers
        connection.send(request_bytes("POST", path, headers={
            "Transfer-Encoding": "chunked"}) + b"7d0\r\n"
            + b" " * 2000 + b"\r\n" + (b"zz\r\n" if at_once else b""))
        if not at_once:
            nap(0.05)
            connection.send(b"zz\r\n")
        assert connection.read().status == 400
    assert server.upstream.requests == []


@pytest.mark.parametrize("path", ["/guarded", "/anyway"])
def test_chunks_beyond_client_max_body_size(server, path):
    with server.wire() as connection:
        connection.send(begin(path, "chunked"))
        nap(0.05)
        connection.send(b"1000\r\n" + b" " * 0x1000)
        assert connection.read().status == 413
    assert server.upstream.requests == []


@pytest.mark.parametrize("coding", ["length", "chunked"])
def test_client_leaves(server, coding):
    for pause in (0, 0.05):
        connection = server.wire()
        connection.send(begin("/guarded", coding))
        nap(pause)
        connection.close()


@pytest.mark.parametrize("coding", ["length", "chunked"])
def test_body_is_too_long_for_the_model(server, coding):
    with server.wire() as connection:
        connection.send(begin("/little", coding))
        nap(0.05)
        connection.send(BODY[len(BODY) // 2:] if coding == "length" else
                        chunked(BODY[len(BODY) // 2:], 1000))
        assert connection.read().status == 500
    assert server.upstream.requests == []


def test_mirror_without_the_body(server):
    with server.wire() as connection:
        for _ in range(3):
            connection.send(begin("/mirrored", "length"))
            nap(0.05)
            connection.send(BODY[len(BODY) // 2:])
            assert connection.read().status == 200
    assert [r["size"] for r in server.upstream.requests] == [len(BODY)] * 3


@pytest.mark.parametrize("path", ["/guarded", "/anyway"])
@pytest.mark.parametrize("first", [0, 5])
def test_more_than_declared_over_http2(server, path, first):
    with h2.H2(server.port2) as connection:
        stream = connection.post(path, {"content-length": "10"})
        connection.data(stream, BODY[:first])
        connection.sync()
        connection.data(stream, BODY, True)
        assert connection.read(stream).status == 400
    assert server.upstream.requests == []


@pytest.mark.parametrize("path", ["/timed", "/pages", "/anyway"])
def test_its_time_is_over_over_http2(server, path):
    with h2.H2(server.port2) as connection:
        stream = connection.post(path, {"content-length": str(len(BODY))})
        connection.data(stream, BODY[:50])
        assert connection.read(stream).status == 503
        whole = connection.post("/guarded", body=BODY)
        assert connection.read(whole).status == 200
    assert [r["size"] for r in server.upstream.requests] == [len(BODY)]


def test_client_resets_the_stream(server):
    with h2.H2(server.port2) as connection:
        for _ in range(3):
            stream = connection.post("/guarded")
            connection.data(stream, BODY[:50])
            connection.sync()
            connection.reset(stream)
        connection.sync()
