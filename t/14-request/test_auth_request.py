"""auth_request to a model: it sees the body, and so does what follows."""

import json

import pytest

from lib import arena, models, process
from lib.curl import curl_http2
from lib.grpc_client import Client, Failure
from lib.server import SLOW, Server, nap
from lib.upstream import Upstream
from lib.wire import chunked, request_bytes, tensor

ARENA = 64 << 20


def body_of(count):
    return json.dumps({"inputs": [
        tensor("IN", "UINT8", [count], [1] * count)]}).encode()


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "UINT8", [-1])],
                    parameters={"execute_delay_ms": "200"})


@pytest.fixture(scope="module")
def server():
    with Upstream() as upstream, Server(
            fill, http2=True, http=f"    inference_memory {ARENA};",
            server=f"""
        location /guarded {{
            auth_request /ask;
            client_max_body_size 0;
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
        location /small {{
            auth_request /ask;
            client_max_body_size 1k;
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
        location /slow {{
            auth_request /ask-slow;
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
        location /ready {{
            auth_request /v2/health/ready;
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
        location /model/ {{
            auth_request /v2/models/id_uint8/ready;
            inference infer;
        }}
        location /nobody/ {{
            auth_request /v2/models/nobody/ready;
            inference infer;
        }}
        location = /ask {{ internal; inference_model id_uint8; }}
        location = /ask-slow {{ internal; inference_model slow; }}
    """) as s:
        s.upstream = upstream
        yield s


@pytest.fixture(autouse=True)
def empty_after(server):
    server.upstream.requests.clear()
    yield
    arena.assert_empty(server, ARENA)


def passed(server, *bodies):
    import hashlib
    assert [r["sha256"] for r in server.upstream.requests] \
        == [hashlib.sha256(b).hexdigest() for b in bodies]


@pytest.mark.parametrize("count", [1, 200_000])
@pytest.mark.parametrize("piece", [None, 1000], ids=["length", "chunked"])
def test_model_judges_the_body_and_the_upstream_gets_it(server, count, piece):
    good = body_of(count)
    with server.wire() as connection:
        for body, status in [(good, 200), (good[:-2], 500), (good, 200)]:
            if piece:
                connection.next().send(request_bytes(
                    "POST", "/guarded",
                    headers={"Transfer-Encoding": "chunked"})
                    + chunked(body, piece))
                answer = connection.read()
            else:
                answer = connection.post("/guarded", body)
            assert answer.status == status, answer
            assert connection.next().get("/v2/health/live").status == 200
    passed(server, good, good)


@pytest.mark.parametrize("size", [70, 7_000_000])
def test_raw_body_is_judged_and_handed_on(server, size):
    body = bytes(range(70)) * (size // 70)
    answer = server.post("/guarded", body,
                         {"Inference-Header-Content-Length": "0"})
    assert answer.status == 200, answer
    passed(server, body)


def test_request_without_a_body_is_rejected(server):
    with server.wire() as connection:
        assert connection.get("/guarded").status == 500
        assert connection.next().post("/guarded", b"").status == 500
        assert connection.next().get("/v2/health/live").status == 200
    passed(server)


@pytest.mark.parametrize("body", [b"", body_of(5), body_of(200_000)])
def test_readiness_decides_whatever_the_body_is(server, body):
    with server.wire() as connection:
        for _ in range(2):
            answer = connection.next().post("/ready", body)
            assert answer.status == 200, answer
    passed(server, body, body)


def test_readiness_of_a_model_decides_about_inferences(server):
    path = "/v2/models/id_uint8/infer"
    with server.wire() as connection:
        assert connection.post("/model" + path, body_of(5)).status == 200
        # what auth_request makes of a 404
        answer = connection.next().post("/nobody" + path, body_of(5))
        assert answer.status == 500
    server.wait_log("auth request unexpected status: 404")
    with Client(server.port2, "/model") as c:
        assert c.numbers("id_int32", [5]) == [5]
    with Client(server.port2, "/nobody") as c, pytest.raises(Failure):
        c.numbers("id_int32", [5])


def test_body_that_comes_slowly(server):
    body = body_of(50)
    with server.wire() as connection:
        connection.send(request_bytes("POST", "/guarded", headers={
            "Content-Length": str(len(body))}))
        for i in range(0, len(body), 10):
            connection.send(body[i:i + 10])
            nap(0.005)
        assert connection.read().status == 200
    passed(server, body)


def test_client_that_leaves_in_its_body(server):
    body = body_of(50)
    for pause in (0, 0, 0.05, 0.05):
        connection = server.wire()
        connection.send(request_bytes("POST", "/guarded", headers={
            "Content-Length": str(len(body))}) + body[:20])
        nap(pause)
        connection.close()
    assert server.get("/v2/health/live").status == 200
    passed(server)


def test_client_that_leaves_while_the_model_thinks(server):
    body = body_of(50)
    for pause in (0, 0.05, 0.05):
        connection = server.wire()
        connection.send(request_bytes("POST", "/slow", body))
        nap(pause)
        connection.close()
    with server.wire() as connection:
        assert connection.post("/slow", body).status == 200
    assert server.upstream.requests


def test_body_beyond_client_max_body_size(server):
    with server.wire() as connection:
        assert connection.post("/small", body_of(2000)).status == 413
    with server.wire() as connection:
        connection.send(request_bytes("POST", "/small", headers={
            "Transfer-Encoding": "chunked"}) + b"3\r\nabc\r\n")
        nap(0.1)
        try:
            connection.send(b"2000\r\n" + b"x" * 0x2000 + b"\r\n0\r\n\r\n")
            assert connection.read().status in (413, 500)
        except OSError:
            pass                    # closed in the midst of the body
    assert server.post("/small", body_of(10)).status == 200
    passed(server, body_of(10))


def test_broken_chunks(server):
    with server.wire() as connection:
        connection.send(request_bytes("POST", "/guarded", headers={
            "Transfer-Encoding": "chunked"}) + b"3\r\nabc\r\nzz\r\n")
        try:
            assert connection.read().status >= 400
        except OSError:
            pass
    assert server.get("/v2/health/live").status == 200
    passed(server)


def test_http2(server):
    good = body_of(100_000)
    url = f"http://127.0.0.1:{server.port2}/guarded"
    assert curl_http2(url, "--data-binary", "@-", data=good)[0] == 200
    assert curl_http2(url, "--data-binary", "@-", data=good[:-3])[0] == 500
    assert curl_http2(url, "-H", "Transfer-Encoding: chunked",
                      "--data-binary", "@-", data=good)[0] == 200
    passed(server, good, good)


def test_several_at_once_on_several_connections(server):
    bodies = [body_of(n) for n in (1, 3000, 90_000, 5)]
    connections = [server.wire() for _ in bodies]
    for connection, body in zip(connections, bodies):
        connection.send(request_bytes("POST", "/slow", body)[:-1])
    for connection in connections:
        connection.send(b"}")
    for connection in connections:
        assert connection.read().status == 200
        connection.close()
    assert process.wait_until(
        lambda: len(server.upstream.requests) == len(bodies), 10 * SLOW)
