"""conf.d/errors.conf as it stands, with conf.d/access-log.conf."""

import base64
import json

import grpc
import pytest

from lib import models, process, snippets
from lib.grpc_client import SERVICE, Client, Failure, frame, infer, status_in
from lib.h2 import H2
from lib.server import SLOW, Server
from lib.wire import request_bytes

Code = grpc.StatusCode
INFER = "/v2/models/id_int32/infer"
BODY = b'{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[5]}]}'
USER = {"Authorization": "Basic " + base64.b64encode(b"one:secret").decode()}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("log") / "inference.log"


@pytest.fixture(scope="module")
def server(log):
    # the test's nginx has "access_log off" in its http{}
    head, last = snippets.read("access-log").replace(
        "/var/log/nginx/inference.log", str(log)).split("\naccess_log ")
    s = Server(models.standard_repository, http2=True, http=head + """
    limit_req_zone $uri zone=often:1m rate=1r/m;
""", server=f"access_log {last}" + snippets.read("errors") + """
        location /one/ {
            inference_model $chosen 1;
            auth_basic models; auth_basic_user_file users;
        }
        set $chosen id_int32;
        location /guarded/ {
            inference infer; auth_basic models; auth_basic_user_file users;
        }
        location /often/ { inference infer; limit_req zone=often; }
        location /small/ { inference infer; client_max_body_size 10; }
        location /denied/ { inference infer; deny all; }
""")
    (s.prefix / "users").write_text("one:{PLAIN}secret\n")
    with s.start():
        yield s


def rejected(answer, status):
    assert answer.status == status, answer
    assert answer.headers["content-type"] == "application/json"
    assert answer.error == f"rejected by nginx with HTTP status {status}"
    return answer


def test_rest(server):
    answer = rejected(server.post("/guarded" + INFER, BODY), 401)
    assert answer.headers["www-authenticate"] == 'Basic realm="models"'
    assert server.post("/guarded" + INFER, BODY, USER).status == 200
    assert server.post("/often" + INFER, BODY).status == 200
    rejected(server.post("/often" + INFER, BODY), 503)
    rejected(server.post("/small" + INFER, BODY), 413)
    rejected(server.post("/denied" + INFER, BODY), 403)
    answer = server.post("/v2/models/absent/infer", BODY)       # ours
    assert answer.status == 404 and "unknown model" in answer.error
    assert server.get("/.inference-error").status == 404


def test_large_upload_without_access(server):
    with server.wire() as c:
        c.send(request_bytes("POST", "/guarded" + INFER, headers={
            "Content-Length": str(1 << 30), "Expect": "100-continue"}))
        rejected(c.read(), 401)


def test_grpc(server):
    for path, code, calls in (("/guarded", Code.UNAUTHENTICATED, 0),
                              ("/often", Code.UNAVAILABLE, 1),
                              ("/denied", Code.PERMISSION_DENIED, 0)):
        with Client(server.port2, path) as c:
            for _ in range(calls):
                assert c.numbers("id_int32", [5]) == [5]
            with pytest.raises(Failure) as caught:
                c.numbers("id_int32", [5])
            assert caught.value.code == code
            assert "rejected by nginx with HTTP status" in caught.value.text


# ---- the access log names what was asked for

HEADERS = {"content-type": "application/grpc", "te": "trailers"}


def logged(server, log, ask, status=None):
    """(model, version, verb) of the line of what ask(server) does."""
    before = len(log.read_text().splitlines()) if log.exists() else 0
    ask(server)
    line, = process.wait_until(
        lambda: log.exists() and log.read_text().splitlines()[before:],
        10 * SLOW)
    line = json.loads(line)
    assert status in (None, line["status"])
    return line["model"], line["version"], line["verb"]


@pytest.mark.parametrize("path,status,names", [
    ("/guarded" + INFER, 401, ("id_int32", "", "infer")),
    ("/guarded/v2/models/m/versions/7/infer", 401, ("m", "7", "infer")),
    ("/one/x", 401, ("id_int32", "1", "infer")),
    ("/often/v2/models/two/infer", 503, ("two", "", "infer")),
    ("/small" + INFER, 413, ("id_int32", "", "infer")),
    ("/denied" + INFER, 403, ("id_int32", "", "infer"))])
def test_log_of_rest(server, log, path, status, names):
    if status == 503:
        logged(server, log, lambda s: s.post(path, BODY))
    assert logged(server, log, lambda s: rejected(s.post(path, BODY), status),
                  status) == names


@pytest.mark.parametrize("prefix,status,code,names", [
    ("/guarded", 401, 16, ("id_int32", "7", "infer")),
    ("/one", 401, 16, ("id_int32", "1", "infer")),
    ("/often", 503, 14, ("id_int32", "7", "infer")),
    ("/small", 413, 8, ("", "", "infer")),       # nothing of it is there yet
    ("/denied", 403, 7, ("id_int32", "7", "infer"))])
def test_log_of_grpc(server, log, prefix, status, code, names):
    path = prefix + SERVICE + "ModelInfer"
    data = frame(infer("id_int32", model_version="7"))
    headers = {**HEADERS, "content-length": str(len(data))}

    def ask(server):
        with H2(server.port2) as c:
            return status_in(c.read(c.post(path, headers, data)).block)
    if status == 503:
        logged(server, log, ask)
    found = []
    assert logged(server, log, lambda s: found.append(ask(s)), status) == names
    assert found == [code]
