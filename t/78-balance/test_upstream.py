"""inference_upstream: another server's models beside ours, a real tritonserver
and servers that lie."""

import concurrent.futures
import contextlib
import json
import socket

import pytest

from bench.peer import Peer
from lib import models, process
from lib.server import SANITIZER, SLOW, free_port

LOCATION = """\
        location /both/ {{
            inference health repository infer metadata;
            inference_upstream {name};
        }}
"""


def ours(repository):
    models.identity(repository, "mine", [("IN", "INT32", [-1])])
    models.identity(repository, "both", [("IN", "INT32", [-1])],
                    versions=(1,))


def start(make_server, ports, http="", **kw):
    servers = "".join(f" server 127.0.0.1:{p};" for p in ports)
    return make_server(
        ours, parts="health repository", server=LOCATION.format(name="triton"),
        http=f"{http}    upstream triton {{{servers} }}\n", **kw)


def index(server, body=b"{}"):
    answer = server.post("/both/v2/repository/index", body)
    assert answer.status == 200, answer
    assert answer.headers["content-type"] == "application/json"
    return [(r["name"], r.get("version"), r.get("state"))
            for r in answer.json()]


OURS = [("both", "1", "READY"), ("mine", "1", "READY")]


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("peer")
    repository = folder / "models"
    repository.mkdir()
    for name in ("both", "theirs"):
        models.identity(repository, name, [("IN", "INT32", [-1])],
                        versions=(1, 7))
    it = Peer(repository, folder)
    yield it
    it.stop()


@pytest.mark.skipif(bool(SANITIZER), reason="the peer is not instrumented")
def test_a_tritonserver_s_models_are_listed(make_server, peer):
    server = start(make_server, [peer.port])
    found = [*OURS, ("theirs", "7", "READY")]       # "both" is ours
    assert index(server) == found
    assert index(server, b'{"ready":true}') == found
    assert index(server, b"") == found
    plain = server.post("/v2/repository/index", b"{}")
    assert len(plain.json()) == 2
    assert server.status("/both/v2/health/ready") == 200


@pytest.fixture
def node(make_nodes):
    (it,) = make_nodes(None)
    it.answer = b'[{"name":"theirs","version":"1","state":"READY"}]'
    return it


THEIRS = ("theirs", "1", "READY")


def test_both_are_ready_or_none(make_server, node):
    server = start(make_server, [node.port])
    assert server.status("/both/v2/health/ready") == 200
    assert server.status("/both/v2/health/live") == 200
    node.ready = False
    answer = server.get("/both/v2/health/ready")
    assert answer.status == 503
    assert answer.error == 'upstream "triton" is not ready'
    assert server.status("/v2/health/ready") == 200
    node.ready = True
    assert server.status("/both/v2/health/ready") == 200


def test_it_is_asked_the_same(make_server, node):
    server = start(make_server, [node.port])
    assert index(server, b'{"ready": true}') == [*OURS, THEIRS]
    assert index(server, b"") == [*OURS, THEIRS]
    assert index(server, b'{"ready":false' + b" " * 8192 + b"}") \
        == [*OURS, THEIRS]
    assert node.received == [b'{"ready": true}', b"{}", b"{}"]


def test_an_upstream_that_is_down(make_server):
    port = free_port()
    server = start(make_server, [port])
    assert index(server) == OURS
    assert (f'server 127.0.0.1:{port} of upstream "triton" cannot be connected'
            ' to: the answer lacks its models') in server.log_text()
    assert server.status("/both/v2/health/ready") == 503


def test_the_next_server_is_asked(make_server, node):
    server = start(make_server, [free_port(), node.port])
    assert index(server) == [*OURS, THEIRS]
    assert server.status("/both/v2/health/ready") == 200


def test_one_that_says_nothing(make_server):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = start(make_server, [silent.getsockname()[1]])
        assert index(server) == OURS
        assert '" does not answer: the answer lacks its models' \
            in server.log_text()


@contextlib.contextmanager
def silent_servers(count):
    """They accept and say nothing."""
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(socket.create_server(
            ("127.0.0.1", 0), backlog=64)) for _ in range(count)]
        for it in made:
            it.setblocking(False)
        yield made


def accepted(server):
    """How many have connected since the last call."""
    found = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            server.accept()[0].close()
            found += 1
    return found


def ports(servers):
    return [s.getsockname()[1] for s in servers]


def test_servers_that_hang_share_one_time(make_server):
    """Each for itself they would keep the client for longer than it waits."""
    with silent_servers(40) as silent:
        server = start(make_server, ports(silent),
                       http="    inference_timeout 1s;\n")
        assert index(server) == OURS
        assert accepted(silent[0]) == 1
        assert server.status("/both/v2/health/ready") in (503, 504)


def test_the_one_that_answers_is_asked_first(make_server, node):
    with silent_servers(2) as silent:
        server = start(make_server, [*ports(silent), node.port])
        assert process.wait_until(lambda: index(server) == [*OURS, THEIRS],
                                  30 * SLOW)
        assert all(accepted(s) for s in silent)
        assert index(server) == [*OURS, THEIRS]
        assert server.status("/both/v2/health/ready") == 200
        assert not any(accepted(s) for s in silent)


def test_checks_at_a_time_share_one_connection(make_server):
    with silent_servers(1) as (silent,):
        server = start(make_server, ports([silent]))
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(server.get,
                                    ["/both/v2/health/ready"] * 20))
        assert [a.status for a in answers] == [503] * 20
        assert 0 < accepted(silent) < 20
        with server.wire() as leaver:
            leaver.send(b"GET /both/v2/health/ready HTTP/1.1\r\nHost: x\r\n"
                        b"\r\n")
            assert process.wait_until(lambda: accepted(silent), 10 * SLOW)
        assert server.status("/both/v2/health/ready") == 503


def test_a_long_answer_is_ready_by_its_head(make_server, node):
    server = start(make_server, [node.port])
    node.raw = HEAD + b"Content-Length: 8000\r\n\r\n" + b"x" * 8000
    assert server.status("/both/v2/health/ready") == 200
    node.raw = b"HTTP/1.1 500 Sorry\r\n\r\n" + b"x" * 8000
    assert server.status("/both/v2/health/ready") == 503
    node.raw = HEAD + b"X: " + b"y" * 8000 + b"\r\n\r\n"
    assert server.status("/both/v2/health/ready") == 503
    assert "answers no HTTP/1.0: it is not ready" in server.log_text()
    assert "1 MiB" not in server.log_text()


def test_a_client_that_leaves_meanwhile(make_server, node):
    """The exchange ends with the request."""
    node.gate.clear()
    server = start(make_server, [node.port])
    with server.wire() as leaver:
        leaver.send(b"POST /both/v2/repository/index HTTP/1.1\r\nHost: x\r\n"
                    b"Content-Length: 2\r\n\r\n{}")
        assert process.wait_until(lambda: node.received, 10 * SLOW)
    node.gate.set()
    assert index(server) == [*OURS, THEIRS]


def test_a_killed_core_meanwhile(make_server, node):
    node.gate.clear()
    server = start(make_server, [node.port],
                   allow_alarms=[r"core \d+ .*signal 9"])
    with server.wire() as connection:
        connection.send(b"POST /both/v2/repository/index HTTP/1.1\r\n"
                        b"Host: x\r\nContent-Length: 2\r\n\r\n{}")
        assert process.wait_until(lambda: node.received, 10 * SLOW)
        server.end_core()
        node.gate.set()
        assert connection.read().status == 200
    assert server.wait_for("/v2/health/ready")
    assert index(server) == [*OURS, THEIRS]


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("raw, said", [
    (b"nonsense", "answers no HTTP/1.0"),
    (HEAD, "answers no HTTP/1.0"),
    (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n",
     "answers no HTTP/1.0"),
    (HEAD + b"X: " + b"y" * 5000 + b"\r\n\r\n[]", "answers no HTTP/1.0"),
    (HEAD + b"\r\n", "sends no list of models"),
    (HEAD + b'\r\n{"name":"x"}', "sends no list of models"),
    (HEAD + b'\r\n[{"name":"x"}', "sends no list of models"),
    (HEAD + b"\r\n[" + b"[" * 100000, "sends no list of models"),
    (HEAD + b"\r\n" + b" " * (1 << 20), "answers more than 1 MiB"),
    (b"HTTP/1.1 404 Not Found\r\n\r\n[]", "does not list its models")])
def test_lies_leave_ours(make_server, node, raw, said):
    server = start(make_server, [node.port])
    node.raw_answer = raw
    assert index(server) == OURS
    assert f'server 127.0.0.1:{node.port} of upstream "triton" {said}: the ' \
        "answer lacks its models" in server.log_text()
    node.raw_answer = None
    assert index(server) == [*OURS, THEIRS]


def test_rows_are_texts(make_server, node):
    """Only the members of an index arrive, and only as texts."""
    server = start(make_server, [node.port])
    node.answer = json.dumps([
        {"name": "a\"\n", "version": 1, "secret": "x"}, {"name": "mine"},
        {"version": "1"}, None, {"name": "b", "reason": "r"}]).encode()
    answer = server.post("/both/v2/repository/index", b"{}")
    assert answer.json()[2:] == [{"name": "a\"\n"},
                                 {"name": "b", "reason": "r"}]


def test_the_host_is_the_upstream_s_name(make_server, node):
    server = start(make_server, [node.port])
    server.status("/both/v2/health/ready")
    assert node.probes[-1] == {"Host": "triton", "Connection": "close"}


# ---- the directive

@pytest.mark.parametrize("location, said", [
    (LOCATION.format(name="nobody"), '"inference_upstream" names "nobody", but'
     " there is no upstream of that name in"),
    (LOCATION.format(name="127.0.0.1:8000"), "there is no upstream of that"
     " name in"),
    ("location /x { inference infer; inference_upstream triton; }",
     "lists neither health nor repository in"),
    ("location /x { inference_upstream triton; }",
     "lists neither health nor repository in"),
    ("location /x { inference health; inference_upstream triton;"
     " inference_upstream triton; }", "is duplicate"),
    ("inference_upstream triton;", "directive is not allowed here")])
def test_bad_ones_are_named(make_server, location, said):
    server = make_server(
        start=False, server=location,
        http="    upstream triton { server 127.0.0.1:9; }\n")
    status, text = server.check_config()
    assert status != 0
    assert said in text
    assert "nginx.conf:" in text


def test_an_upstream_may_stand_behind(make_server, node):
    server = make_server(
        ours, start=False, parts="health repository",
        server=LOCATION.format(name="triton"))
    text = server.conf.read_text()
    server.conf.write_text(
        text.rstrip()[:-1]
        + f"upstream triton {{ server 127.0.0.1:{node.port}; }} }}\n")
    server.start()
    assert index(server) == [*OURS, THEIRS]
