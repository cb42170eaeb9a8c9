"""conf.d/errors.conf as it stands."""

import base64

import grpc
import pytest

from lib import models, snippets
from lib.grpc_client import Client, Failure
from lib.server import Server
from lib.wire import request_bytes

Code = grpc.StatusCode
INFER = "/v2/models/id_int32/infer"
BODY = b'{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[5]}]}'
USER = {"Authorization": "Basic " + base64.b64encode(b"one:secret").decode()}


@pytest.fixture(scope="module")
def server():
    s = Server(models.standard_repository, http2=True, http="""
    limit_req_zone $uri zone=often:1m rate=1r/m;
""", server=snippets.read("errors") + """
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
