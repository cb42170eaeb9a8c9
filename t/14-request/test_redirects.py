"""nginx redirects a request whose inference isn't over: it has one answer."""

import os
import signal

import pytest

from lib import h2, models, process
from lib.server import SLOW, Server, nap
from lib.upstream import Upstream
from lib.wire import request_bytes

MIB = 1 << 20
BODY = (b'{"inputs": [{"name": "IN", "datatype": "UINT8", "shape": [2], '
        b'"data": [1, 2]}]}')


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "UINT8", [-1])],
                    parameters={"execute_delay_ms": "300"})


@pytest.fixture(scope="module")
def server():
    with Upstream() as upstream, Server(fill, http2=True, server=f"""
        location /bounded {{
            inference_model id_uint8;
            client_max_body_size 4m;
            error_page 413 = @upstream;
        }}
        location /again {{
            inference_model id_uint8;
            client_max_body_size 4m;
            error_page 413 = /ask-slow;
        }}
        location = /ask-slow {{
            inference_model slow;
            inference_timeout 1s;
        }}
        location /left {{
            inference_model slow;
            inference_timeout 200ms;
            post_action /after;
        }}
        location /left-early {{
            inference_model slow;
            post_action /after;
        }}
        location /left-again {{
            inference_model slow;
            post_action /ask-slow;
        }}
        location = /after {{
            internal;
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
        location @upstream {{
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
    """) as s:
        s.upstream = upstream
        yield s


@pytest.fixture(autouse=True)
def alive_after(server):
    workers = server.workers()
    server.upstream.requests.clear()
    yield
    with server.wire() as connection:
        for _ in range(3):
            answer = connection.post("/v2/models/id_uint8/infer", BODY)
            assert answer.status == 200, answer
    assert server.workers() == workers
    server.check_log()


# the JSON is wrong from its first byte; when more than 1 MiB of such a body
# has come its answer is due in the next turn, but the chunk's head that nginx
# rejects comes in the same

def rejected_twice(path, before):
    return request_bytes("POST", path, headers={
        "Transfer-Encoding": "chunked"}) + b"%x\r\n" % (before + 20000) \
        + b"?" * before, b"?" * 20000 + b"\r\nfffffff\r\n?"


@pytest.mark.parametrize("before", [MIB - 16, MIB - 4096, MIB - 12000])
def test_413_while_an_answer_is_due(server, before):
    for _ in range(3):
        with server.wire() as connection:
            first, second = rejected_twice("/bounded", before)
            connection.send(first)
            nap(0.1)
            connection.send(second)
            assert connection.read().status == 200
    assert [r["size"] for r in server.upstream.requests] == [0, 0, 0]


@pytest.mark.parametrize("before", [MIB - 16, MIB - 12000])
def test_413_on_the_way_to_another_inference(server, before):
    with server.wire() as connection:
        first, second = rejected_twice("/again", before)
        connection.send(first)
        nap(0.1)
        connection.send(second)
        assert connection.read().status in (400, 413)


@pytest.mark.parametrize("path", ["/left", "/left-early", "/left-again"])
@pytest.mark.parametrize("pause", [0.05, 0.15])
def test_client_leaves_and_a_post_action_follows(server, path, pause):
    for _ in range(3):
        connection = server.wire()
        connection.send(request_bytes("POST", path, BODY))
        nap(pause)
        connection.close()
    nap(0.5)                        # the model answers, or the time is over
    if path != "/left-again":
        assert process.wait_until(
            lambda: len(server.upstream.requests) == 3, 10 * SLOW)


@pytest.mark.parametrize("path", ["/left", "/left-early", "/left-again"])
def test_stream_is_reset_and_a_post_action_follows(server, path):
    with h2.H2(server.port2) as connection:
        for whole in (True, False):
            stream = connection.post(path)
            connection.data(stream, BODY if whole else BODY[:20], whole)
            connection.sync()
            nap(0.05)
            connection.reset(stream)
        connection.sync()
        nap(0.5)
        stream = connection.post("/v2/models/id_uint8/infer", body=BODY)
        assert connection.read(stream).status == 200


def test_core_ends_after_a_post_action_has_begun(make_server, upstream):
    server = make_server(fill, server=f"""
        location /left {{ inference_model slow; post_action /after; }}
        location = /after {{
            internal;
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
            proxy_pass http://127.0.0.1:{upstream.port};
        }}""")
    core = server.core()
    connection = server.wire()
    connection.send(request_bytes("POST", "/left", BODY))
    nap(0.1)
    connection.close()
    assert process.wait_until(lambda: upstream.requests, 10 * SLOW)
    os.kill(core, signal.SIGKILL)
    assert server.wait_for("/v2/models/slow/ready")
