"""Ways around the rules that guard an endpoint."""

import base64
import itertools

import pytest

from lib import models
from lib.server import Server
from lib.unharmed import unharmed
from lib.wire import request_bytes

USER = {"Authorization": "Basic "
        + base64.b64encode(b"ada:secret").decode()}
GUARDED = """
        location /v2/repository { deny all; }
        location /v2/models/private { deny all; }
        location ~ ^/v2/models/[^/]+/config$ {
            auth_basic inside; auth_basic_user_file %s; inference config;
        }
        location = /v2/models/stats { deny all; }
"""


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "private", [("IN", "INT32", [-1])])
    (repository.parent / "users").write_text("ada:{PLAIN}secret\n")


@pytest.fixture(scope="module", params=["on", "off"])
def server(request):
    """With nginx's rules in front, slashes merged or not."""
    s = Server(fill, parts="all repository",
               http="    inference_model_control explicit;\n"
               "    inference_load_model *;\n"
               f"    merge_slashes {request.param};\n")
    s.write_config(server=GUARDED % (s.prefix / "users"))
    with s:
        yield s


def disguises(path):
    """The path in every spelling that something might take for it."""
    yield path
    yield path + "/"
    yield path + "/."
    yield path + "/x/.."
    yield path + "?"
    yield path + "?/v2/health/live"
    yield path + "%20"
    yield path + "%00"
    yield path + "%0a"
    yield path + ";x"
    yield path + "#x"
    yield path.upper()
    yield path.replace("/", "\\")
    yield "http://localhost" + path
    places = [i for i, c in enumerate(path) if c == "/"]
    for i in places:
        for slash in ("//", "/./", "/x/../", "/../", "%2f", "%2F", "/%2e/",
                      "/x/%2e%2e/", "/.%2e/", "%252f", "/;/", "/.;/",
                      "/%5c/", "\\", "/%c0%af", "/ "):
            yield path[:i] + slash + path[i + 1:]
    for i in range(1, len(path), 3):
        if path[i] != "/":
            yield path[:i] + f"%{ord(path[i]):02x}" + path[i + 1:]
            yield path[:i] + f"%25{ord(path[i]):02x}" + path[i + 1:]
            yield path[:i] + path[i].upper() + path[i + 1:]
    for open_path in ("/v2/health/live", "/v2/models/id_int32/ready"):
        depth = open_path.count("/")
        for up in ("../", "%2e%2e/", "..%2f", ".%2e/"):
            yield open_path + "/" + up * depth + path[1:]


def ask(server, method, path, headers=None, body=None):
    with server.wire() as connection:
        # not by an URL's rules: the path as it stands
        connection.send(request_bytes(method, path, body, headers))
        try:
            return connection.read()
        except ConnectionError:
            return None


def never(server, method, path, reached, body=None, headers=None):
    """However path is spelled, the answer is not that of its endpoint."""
    with unharmed(server):
        for spelled in disguises(path):
            answer = ask(server, method, spelled, headers, body)
            assert answer is not None, spelled
            assert answer.status >= 400, (spelled, answer)
            assert reached not in answer.body, (spelled, answer)


def test_cve_2026_24206(server):
    """Authentication was passed by another path to the same endpoint."""
    answer = ask(server, "GET", "/v2/models/private2/config")
    assert answer.status == 401
    answer = ask(server, "GET", "/v2/models/id_int32/config", USER)
    assert answer.status == 200 and b"max_batch_size" in answer.body
    never(server, "GET", "/v2/models/id_int32/config", b"max_batch_size")


@pytest.mark.parametrize("path", [
    "/v2/repository/index", "/v2/repository/models/id_fp64/unload",
    "/v2/repository/x/index", "/v2/repository/x/models/id_fp64/unload"])
def test_cve_2026_24207(server, path):
    """The same for the calls that load models, which is to run code."""
    never(server, "POST", path, b'"name":', b"{}")
    assert server.get("/v2/models/id_fp64/ready").status == 200


@pytest.mark.parametrize("method,path", [
    ("POST", "/v2/models/private/infer"), ("GET", "/v2/models/private/ready"),
    ("GET", "/v2/models/private"), ("GET", "/v2/models/private/stats"),
    ("POST", "/v2/models/private/versions/1/infer"),
    ("GET", "/v2/models/stats")])
def test_cve_2026_47481(server, method, path):
    """Once more an alternative path passed authentication."""
    body = b'{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],' \
        b'"data":[7]}]}' if method == "POST" else None
    never(server, method, path, b'"private"' if "private" in path
          else b"model_stats", body)


@pytest.mark.parametrize("name", ["X-Original-URL", "X-Rewrite-URL",
                                  "X-HTTP-Method-Override", "X-Forwarded-For",
                                  "X-Accel-Redirect", "Host", "Connection",
                                  "Content-Location", "Referer"])
def test_cve_2026_47625(server, name):
    """Authorization was missing for some calls.

    Nobody is let in for what a header says about the path, the method or
    where the request comes from."""
    values = ["/v2/health/live", "POST", "127.0.0.1", "localhost", "close"]
    with unharmed(server):
        for value, path in itertools.product(values, [
                "/v2/repository/index", "/v2/models/private/infer"]):
            answer = ask(server, "POST", path, {name: value}, b"{}")
            assert answer.status in (400, 403), (value, answer)
            answer = ask(server, "POST", "/v2/health/live", {name: path},
                         b"{}")
            assert answer.status in (400, 405), (value, answer)


FILES = ["..", ".", "../..", "..%2f..", "%2e%2e", "....//", "%252e%252e",
         "..\\..", "/etc", "//etc", "%2fetc%2fpasswd", "..;", "~root",
         "../../../../../../etc", "id_int32/../private", "id_int32/1",
         "id_int32%2f..%2fprivate", "id_int32%00", ".%00.", "%c0%ae%c0%ae"]


@pytest.mark.parametrize("tail", ["", "/ready", "/config", "/stats",
                                  "/versions/1", "/versions/1/ready"])
def test_cve_2026_24208(server, tail):
    """A model's name in a path led Triton out of the repository."""
    with unharmed(server):
        for name in FILES:
            answer = ask(server, "GET", f"/v2/models/{name}{tail}", USER)
            assert answer.status in (400, 401, 403, 404, 405), (name, answer)
            assert b"root:" not in answer.body
            assert str(server.models).encode() not in answer.body


def test_cve_2026_24209(server):
    """The same by a request for an inference, and by a version."""
    body = b'{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],' \
        b'"data":[7]}]}'
    with unharmed(server):
        for name in FILES:
            for path in (f"/v2/models/{name}/infer",
                         f"/v2/models/id_int32/versions/{name}/infer"):
                answer = ask(server, "POST", path, None, body)
                assert answer.status in (400, 403, 404, 405), (path, answer)
                assert str(server.models).encode() not in answer.body
