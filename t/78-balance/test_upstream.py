"""inference_upstream: another server's models beside ours, a real tritonserver
and servers that lie."""

import concurrent.futures
import contextlib
import json
import socket

import grpc
import pytest
import tritonclient.grpc
import tritonclient.http
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tritonclient.grpc import service_pb2 as pb

from bench.peer import Peer
from lib import models, prebuilt, process
from lib.grpc_client import NOT_SERVING, SERVING, Client, Failure
from lib.server import SLOW, free_port
from lib.wire import tensor

MISSING = prebuilt.missing()

LOCATION = """\
        location /both/ {{
            inference health repository infer metadata;
            inference_upstream {name};
        }}
"""

# where clients of gRPC look
METHODS = """\
        location ~ ^/(inference.GRPCInferenceService|grpc.health.v1.Health)/ {
            inference health repository metadata;
            inference_upstream triton;
        }
"""


# an inference, which ends while the upstream is asked for its copy
COPIED = '''\
        location = /copied { mirror /both/v2; inference_model slow; }
'''


def ours(repository):
    models.identity(repository, "mine", [("IN", "INT32", [-1])])
    models.identity(repository, "both", [("IN", "INT32", [-1])],
                    versions=(1,))


def start(make_server, ports, http="", **kw):
    servers = "".join(f" server 127.0.0.1:{p};" for p in ports)
    return make_server(
        ours, parts="health repository metadata",
        server=LOCATION.format(name="triton") + METHODS, http2=True,
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


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_a_tritonserver_s_models_are_listed(make_server, peer):
    server = start(make_server, [peer.port])
    found = [*OURS, ("theirs", "7", "READY")]       # "both" is ours
    assert index(server) == found
    assert index(server, b'{"ready":true}') == found
    assert index(server, b"") == found
    plain = server.post("/v2/repository/index", b"{}")
    assert len(plain.json()) == 2
    assert server.status("/both/v2/health/ready") == 200


@pytest.fixture(params=["http", "grpc"])
def triton_client(request, make_server, peer):
    """NVIDIA's client of the address that serves both."""
    server = start(make_server, [peer.port])
    if request.param == "http":
        it = tritonclient.http.InferenceServerClient(
            f"127.0.0.1:{server.port}/both")
        yield it
    else:
        it = tritonclient.grpc.InferenceServerClient(
            f"127.0.0.1:{server.port2}")
        yield it
    it.close()


def plain(answer):
    """Of gRPC a message, of REST what it is already."""
    if not hasattr(answer, "DESCRIPTOR"):
        return answer
    values = ((f.name, getattr(answer, f.name))
              for f in answer.DESCRIPTOR.fields)
    return {name: value if isinstance(value, str)
            else [plain(v) for v in value] for name, value in values}


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_a_client_sees_one_server(triton_client, peer):
    """Index, metadata and readiness of both, by either protocol."""
    it = triton_client
    assert it.is_server_ready()
    rows = plain(it.get_model_repository_index())
    rows = rows if isinstance(rows, list) else rows["models"]
    assert [(r["name"], r["version"], r["state"]) for r in rows] \
        == [*OURS, ("theirs", "7", "READY")]
    for row in rows:
        assert it.is_model_ready(row["name"])
        assert it.is_model_ready(row["name"], row["version"])
        about = plain(it.get_model_metadata(row["name"], row["version"]))
        assert about["name"] == row["name"]
        assert about["versions"] == [row["version"]]
        (tensor,) = about["inputs"]
        assert plain(tensor) == {"name": "IN", "datatype": "INT32",
                                 "shape": [-1]}
    about = plain(it.get_server_metadata())
    with tritonclient.http.InferenceServerClient(
            f"127.0.0.1:{peer.port}") as alone:
        theirs = alone.get_server_metadata()["extensions"]
        assert plain(it.get_model_metadata("theirs")) \
            == alone.get_model_metadata("theirs")
    assert about["extensions"] \
        == [e for e in theirs if not e.endswith("_shared_memory")]
    with pytest.raises(tritonclient.utils.InferenceServerException,
                       match="unknown model: 'nobody_s' is not found"):
        it.get_model_metadata("nobody_s")
    with pytest.raises(tritonclient.utils.InferenceServerException):
        it.get_model_metadata("theirs", "2")


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


def test_the_log_names_the_subrequest_that_asked(make_server):
    def slow(repository):
        models.identity(repository, "slow", [("IN", "INT32", [1])],
                        parameters={"execute_delay_ms": "300"})

    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = make_server(
            slow, parts="health infer",
            server=LOCATION.format(name="triton") + COPIED,
            http="    upstream triton { server 127.0.0.1:%d; }\n"
                 % silent.getsockname()[1])
        answer = server.post("/copied", json.dumps({"inputs": [
            tensor("IN", "INT32", [1], [1])]}).encode())
        assert answer.status == 200
        server.wait_log(r'of upstream "triton" does not answer: .*, '
                        r'subrequest: "/both/v2"')


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


# ---- metadata and gRPC

def page(value, head=b"HTTP/1.1 200 OK\r\n"):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return head + b"\r\n" + body


ABOUT = {"name": "theirs", "versions": ["1"], "platform": "p", "inputs": [
    {"name": "IN", "datatype": "INT32", "shape": [-1, 16]}], "outputs": []}
FULL = {**ABOUT, "more": {"x": [1]},
        "inputs": [{**ABOUT["inputs"][0], "parameters": {}}]}


@pytest.fixture
def both(make_server, node):
    """A server in front of node, and a client of gRPC at both."""
    server = start(make_server, [node.port])
    with Client(server.port2, "/both") as client:
        yield server, client


def grpc_index(client, **filters):
    answer = client.call("RepositoryIndex",
                         pb.RepositoryIndexRequest(**filters))
    return [(r.name, r.version, r.state) for r in answer.models]


def test_the_index_over_grpc(both, node):
    _, client = both
    assert grpc_index(client) == [*OURS, THEIRS]
    assert grpc_index(client, ready=True) == [*OURS, THEIRS]
    assert node.received == [b"{}", b'{"ready":true}']
    with pytest.raises(Failure, match="'repository_name' specification"):
        grpc_index(client, repository_name="x")
    with pytest.raises(Failure):
        client.call("RepositoryIndex", b"\xff")
    node.answer = b'[{"name":"a\\u0000"},{"name":"b","state":"\\u0000"}]'
    assert grpc_index(client) == [*OURS, ("b", "", "")]
    node.raw_answer = b"nonsense"
    assert grpc_index(client) == OURS


def test_readiness_over_grpc(both, node):
    """It is an answer, and no error."""
    server, client = both
    with Client(server.port2) as plain_paths:
        assert client.call("ServerReady").ready
        assert plain_paths.check() == SERVING
        node.ready = False
        assert not client.call("ServerReady").ready
        assert client.call("ServerLive").live
        assert plain_paths.check() == NOT_SERVING
    with Client(server.port2, "/both") as other:
        node.ready = True
        assert other.call("ServerReady").ready


def watched(server, service=""):
    channel = grpc.insecure_channel(
        f"127.0.0.1:{server.port2}", [("grpc.use_local_subchannel_pool", 1)])
    return channel, health_pb2_grpc.HealthStub(channel).Watch(
        health_pb2.HealthCheckRequest(service=service), timeout=120 * SLOW)


def test_watchers_are_told_of_both(both, node):
    server, _ = both
    status = health_pb2.HealthCheckResponse
    channel, watch = watched(server)
    assert next(watch).status == status.SERVING
    node.ready = False
    assert next(watch).status == status.NOT_SERVING
    node.ready = True
    assert next(watch).status == status.SERVING
    channel.close()
    channel, watch = watched(server, "other")
    assert next(watch).status == status.SERVICE_UNKNOWN
    channel.close()
    probes = len(node.probes)
    node.ready = False
    channel, watch = watched(server)
    assert next(watch).status == status.NOT_SERVING
    assert len(node.probes) > probes
    channel.close()


def test_watchers_at_a_time_share_one_question(make_server):
    """Also where the upstream fails at once."""
    server = start(make_server, [free_port()])
    watches = [watched(server) for _ in range(20)]
    for _, watch in watches:
        assert next(watch).status \
            == health_pb2.HealthCheckResponse.NOT_SERVING
    said = "cannot be connected to: it is not ready"
    before = server.log_text().count(said)
    assert process.wait_until(
        lambda: server.log_text().count(said) >= before + 2, 20 * SLOW)
    assert server.log_text().count(said) < before + 20
    for channel, _ in watches:
        channel.close()


def extensions(server, client):
    answer = server.get("/both/v2").json()
    same = client.call("ServerMetadata")
    assert (answer["name"], answer["version"], answer["extensions"]) \
        == (same.name, same.version, list(same.extensions))
    ours = server.get("/v2").json()
    assert (answer["name"], answer["version"]) == (ours["name"],
                                                   ours["version"])
    return answer["extensions"], ours["extensions"]


def test_extensions_are_those_of_both(both, node):
    """In the order of ours."""
    node.pages["/v2"] = page({"name": "x", "version": "0", "extensions": [
        "trace", "other", 7, "classification"]})
    assert extensions(*both)[0] == ["classification", "trace"]
    node.pages["/v2"] = page({"extensions": []})
    assert extensions(*both)[0] == []


@pytest.mark.parametrize("raw, said", [
    (page([]), "sends no metadata of a server"),
    (page({"name": "x"}), "sends no metadata of a server"),
    (page(b"{"), "sends no metadata of a server"),
    (page(b" " * (1 << 20)), "answers more than 1 MiB"),
    (page({"extensions": []}, b"HTTP/1.1 404 No\r\n"),
     "does not describe itself"),
    (b"nonsense", "answers no HTTP/1.0"), (b"", "closes the connection")])
def test_lies_leave_our_extensions(both, node, raw, said):
    node.pages["/v2"] = raw
    joined, ours = extensions(*both)
    assert joined == ours
    assert both[0].log_text().count(
        f'server 127.0.0.1:{node.port} of upstream "triton" {said}: the answer'
        " has all extensions of ours") == 2


def about(server, client, path, **names):
    """Both protocols say the same of a model."""
    found = server.get("/both/v2/models/" + path)
    try:
        same = plain(client.call("ModelMetadata",
                                 pb.ModelMetadataRequest(**names)))
    except Failure as e:
        assert e.code == grpc.StatusCode.NOT_FOUND
        assert (found.status, found.error) == (404, e.text)
        return e.text
    assert found.status == 200
    assert found.headers["content-type"] == "application/json"
    assert found.json() == same
    return same


def test_a_model_that_only_the_upstream_has(both, node):
    server, client = both
    node.pages["/v2/models/theirs"] = page(FULL)
    node.pages["/v2/models/theirs/versions/7"] = page({**FULL,
                                                       "versions": ["7"]})
    assert about(*both, "theirs", name="theirs") == ABOUT
    assert about(*both, "theirs/versions/7", name="theirs", version="7") \
        == {**ABOUT, "versions": ["7"]}
    assert about(*both, "mine", name="mine")["platform"] != "p"
    assert node.asked == ["/v2/models/theirs"] * 2 \
        + ["/v2/models/theirs/versions/7"] * 2
    assert server.status("/v2/models/theirs") == 404


def test_a_model_of_theirs_is_ready(both, node):
    server, client = both
    node.pages["/v2/models/theirs/ready"] = page(b"")
    node.pages["/v2/models/theirs/versions/2/ready"] = page(
        b"", b"HTTP/1.1 400 No\r\n")
    assert server.status("/both/v2/models/theirs/ready") == 200
    assert client.call("ModelReady", pb.ModelReadyRequest(name="theirs")).ready
    assert server.status("/both/v2/models/theirs/versions/2/ready") == 404
    assert not client.call("ModelReady", pb.ModelReadyRequest(
        name="theirs", version="2")).ready
    assert node.asked == ["/v2/models/theirs/ready"] * 2 \
        + ["/v2/models/theirs/versions/2/ready"] * 2
    assert server.status("/v2/models/theirs/ready") == 404


@pytest.mark.parametrize("raw, said", [
    (page([]), "sends no metadata of the model"),
    (page({**ABOUT, "name": "mine"}), "sends no metadata of the model"),
    (page({**ABOUT, "inputs": 7}), "sends no metadata of the model"),
    (page(b"{"), "sends no metadata of the model"),
    (page(b" " * (1 << 20)), "answers more than 1 MiB"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     "answers no HTTP/1.0"),
    (b"nonsense", "answers no HTTP/1.0"), (b"", "closes the connection")])
def test_lies_leave_the_model_unknown(both, node, raw, said):
    node.pages["/v2/models/theirs"] = raw
    assert "unknown model" in about(*both, "theirs", name="theirs")
    assert both[0].log_text().count(
        f'server 127.0.0.1:{node.port} of upstream "triton" {said}: the model'
        " stays unknown") == 2


def test_it_says_that_it_has_no_such_model(both, node):
    """No fault of the upstream's."""
    node.pages["/v2/models/theirs"] = page({}, b"HTTP/1.1 404 No\r\n")
    assert "unknown model" in about(*both, "theirs", name="theirs")
    assert "stays unknown" not in both[0].log_text()


@pytest.mark.parametrize("name", [
    "..", ".", "a/b", "a?b", "a#b", "a%62", "a b", "a\r\nX: y", "\xe4"])
def test_names_that_no_path_has_are_not_asked_for(both, node, name):
    _, client = both
    with pytest.raises(Failure):
        client.call("ModelMetadata", pb.ModelMetadataRequest(name=name))
    assert not client.call("ModelReady", pb.ModelReadyRequest(name=name)).ready
    assert not node.probes
    assert not node.asked


def test_versions_are_numbers(both, node):
    _, client = both
    with pytest.raises(Failure, match="version"):
        client.call("ModelMetadata", pb.ModelMetadataRequest(
            name="theirs", version="1/../2"))
    assert not node.probes


def test_metadata_of_a_dead_and_of_a_silent_upstream(make_server):
    with silent_servers(1) as silent:
        for port in (free_port(), *ports(silent)):
            server = start(make_server, [port])
            with Client(server.port2, "/both") as client:
                joined, own = extensions(server, client)
                assert joined == own
                assert grpc_index(client) == OURS
                assert not client.call("ServerReady").ready
                assert "unknown model" in about(server, client, "theirs",
                                                name="theirs")
            assert server.log_text().count(": the model stays unknown") == 2


def test_a_client_of_metadata_that_leaves_meanwhile(both, node):
    server, client = both
    node.pages["/v2/models/theirs"] = page(ABOUT)
    node.gate.clear()
    call = client.channel.unary_unary(
        "/both/inference.GRPCInferenceService/ModelMetadata").future(
            pb.ModelMetadataRequest(name="theirs").SerializeToString())
    assert process.wait_until(lambda: len(node.asked) == 1, 10 * SLOW)
    call.cancel()
    with server.wire() as leaver:
        leaver.send(b"GET /both/v2/models/theirs HTTP/1.1\r\nHost: x\r\n"
                    b"\r\n")
        assert process.wait_until(lambda: len(node.asked) == 2, 10 * SLOW)
    node.gate.set()
    assert about(server, client, "theirs", name="theirs") == ABOUT


# ---- the directive

@pytest.mark.parametrize("location, said", [
    (LOCATION.format(name="nobody"), '"inference_upstream" names "nobody", but'
     " there is no upstream of that name in"),
    (LOCATION.format(name="127.0.0.1:8000"), "there is no upstream of that"
     " name in"),
    ("location /x { inference infer; inference_upstream triton; }",
     "lists neither health, metadata nor repository in"),
    ("location /x { inference_upstream triton; }",
     "lists neither health, metadata nor repository in"),
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


@pytest.mark.parametrize("part", ["health", "metadata", "repository", "all"])
def test_one_part_is_enough(make_server, part):
    server = make_server(
        start=False, server=f"        location /x {{ inference {part};"
        " inference_upstream triton; }\n",
        http="    upstream triton { server 127.0.0.1:9; }\n")
    status, text = server.check_config()
    assert status == 0, text


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
