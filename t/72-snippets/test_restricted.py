"""conf.d/restricted.conf: each kind of restriction, over REST and gRPC."""

import base64
import socket

import grpc
import pytest

from lib import models, snippets
from lib.grpc_client import Client, Failure, pb
from lib.server import Server, free_port
from lib.wire import Wire, fetch, request_bytes

BASIC = "Basic " + base64.b64encode(b"me:secret").decode()

CONFIG = [("GET", "/v2/models/id_int32/config", None),
          ("GET", "/v2/models/id_int32/versions/1/config", None)]
STATISTICS = [("GET", "/v2/models/stats", None),
              ("GET", "/v2/models/id_int32/stats", None),
              ("GET", "/v2/models/id_int32/versions/1/stats", None)]
SETTINGS = [("GET", "/v2/logging", None), ("GET", "/v2/trace/setting", None),
            ("GET", "/v2/models/id_int32/trace/setting", None),
            ("POST", "/v2/logging", b'{"log_verbose_level":0}')]

# of each location: requests, methods of gRPC, headers of those who may, and
# what the others get
KINDS = {
    "config": (CONFIG, ["ModelConfig"], {"Authorization": BASIC}, 401,
               "UNAUTHENTICATED"),
    "settings": (SETTINGS, ["TraceSetting", "LogSettings"],
                 {"X-Ops": "yes"}, 403, "PERMISSION_DENIED"),
    "statistics": (STATISTICS, ["ModelStatistics"],
                   {"X-Operators-Key": "SECRET"}, 403, "PERMISSION_DENIED"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("users")
    folder.chmod(0o755)
    users = folder / "operators"
    users.write_text("me:{PLAIN}secret\n")
    judge = free_port()
    text = snippets.read("restricted", operators=users)
    assert "http://127.0.0.1:9000/" in text
    text = text.replace("http://127.0.0.1:9000/", f"http://127.0.0.1:{judge}/")
    # "allow 127.0.0.0/8" has 127.0.0.1 for clients, who are told apart by
    # their addresses on this machine
    text = text.replace("allow     127.0.0.0/8;", "allow     127.0.0.1;")
    with Server(models.standard_repository, http2=True, http=f"""
    inference_model_control explicit;
    inference_load_model id_int32;
    server {{
        listen 127.0.0.1:{judge};
        location = /may {{
            if ($http_x_ops = "yes") {{ return 204; }}
            return 403;
        }}
    }}
""", server=text, parts="all") as s:
        yield s


@pytest.mark.parametrize("kind", KINDS)
def test_rest(server, kind):
    asked, _, headers, status, _ = KINDS[kind]
    for method, path, body in asked:
        def send(given):
            return fetch(server.port, method, path, body, given)
        assert send({}).status == status, path
        assert send({name: "x" for name in headers}).status == status, path
        assert send(headers).status == 200, path


@pytest.mark.parametrize("kind", KINDS)
def test_grpc(server, kind):
    _, methods, headers, _, code = KINDS[kind]
    metadata = tuple((k.lower(), v) for k, v in headers.items())
    with Client(server.port2) as client:
        for method in methods:
            request = getattr(pb, method + "Request")()
            if method == "ModelConfig":
                request.name = "id_int32"
            with pytest.raises(Failure) as e:
                client.call(method, request)
            assert e.value.code == getattr(grpc.StatusCode, code), method
            client.call(method, request, metadata=metadata)


def test_what_is_not_restricted(server):
    for path in ("/v2", "/v2/health/ready", "/v2/models/id_int32"):
        assert server.get(path).status == 200
    with Client(server.port2) as client:
        assert client.numbers("id_int32", [1, 2]) == [1, 2]
        assert client.call("ServerMetadata").name == "triton"


def from_address(server, address, method, path, body=b""):
    """Status of a request that comes from that address of this machine."""
    with Wire(server.port) as connection:
        connection.socket.close()
        connection.socket = socket.create_connection(
            ("127.0.0.1", server.port), 20, (address, 0))
        connection.send(request_bytes(method, path, body))
        return connection.read().status


def test_by_address(server):
    index = ("POST", "/v2/repository/index")
    load = ("POST", "/v2/repository/models/id_fp32/load")
    for method, path in (index, load):
        assert from_address(server, "127.0.0.2", method, path) == 403
        assert from_address(server, "127.0.0.1", method, path) == 200
    with Client(server.port2) as client:
        assert "id_fp32" in str(client.call("RepositoryIndex"))
        client.call("RepositoryModelUnload",
                    pb.RepositoryModelUnloadRequest(model_name="id_fp32"))


@pytest.mark.parametrize("path", [
    "/v2/models/id_int32/%63onfig", "//v2/models/id_int32/config",
    "/v2/./models/id_int32/config", "/v2/models/x/../id_int32/config",
    "/v2/models/id_int32%2Fconfig", "/v2/models/id_int32/config/",
    "/v2/models/id_int32/config%0A", "/v2/models//id_int32/config",
    "/v2/models/%69d_int32/config", "/v2/models/id_int32/versions/%31/config",
    "/v2/models/id_int32/versions/01/config", "/v2/models/stat%73",
    "/v2/models/id_int32/versions/1/stats/", "/v2/%6Cogging",
    "/v2/trace%2Fsetting", "/V2/logging", "/v2/models/id_int32//stats"])
def test_no_other_spelling(server, path):
    assert fetch(server.port, "GET", path).status in (400, 401, 403, 404)
