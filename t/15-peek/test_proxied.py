"""Model, version and verb of requests that other servers answer: `map` chooses
the server by them, and the body arrives as it was sent."""

import hashlib
import os

import pytest

from lib import models
from lib.access_log import FORMAT, WRITTEN, AccessLog
from lib.grpc_client import SERVICE, Client, Failure, number, numbers, tensor
from lib.grpc_client import infer
from lib.server import BUILD, Server, free_port, nap
from lib.upstream import Upstream

SIZES = [1, 5000, 60_000, 1_000_000]


def fill_far(repository):
    models.identity(repository, "far", [("IN", "INT32", [-1])])
    models.identity(repository, "bytes", [("IN", "UINT8", [-1])])


@pytest.fixture(scope="module")
def far():
    with Server(fill_far, http2=True) as s:
        yield s


@pytest.fixture(scope="module")
def server(far):
    """Models of its own behind a port of its own, all others at `far`."""
    own = free_port()
    with Upstream() as upstream, Server(
            models.standard_repository, http2=True,
            http=FORMAT + f"""
    map $inference_model $pool {{
        default far; ~^id_ here; elsewhere elsewhere;
    }}
    upstream far {{ server 127.0.0.1:{far.port2}; }}
    upstream here {{ server 127.0.0.1:{own}; }}
    upstream elsewhere {{ server 127.0.0.1:{upstream.port}; }}
    limit_req_zone $inference_model$http_x_tenant zone=far:1m rate=1r/m;
    server {{
        listen 127.0.0.1:{own} http2;
        location / {{ inference all; }}
    }}
""", server=WRITTEN + f"""
        inference_peek on; client_max_body_size 0;
        location /inference.GRPCInferenceService/ {{ grpc_pass grpc://$pool; }}
        location /limited/ {{
            limit_req zone=far; rewrite ^/limited(/.*) $1 break;
            grpc_pass grpc://$pool;
        }}
        location /rest/ {{ proxy_pass http://elsewhere; }}
        location /choice/ {{
            if ($inference_model = m) {{ return 200 "local"; }}
            proxy_pass http://elsewhere;
        }}
        location ~ ^/any/ {{ proxy_pass http://elsewhere; }}
        location /lim/ {{ limit_req zone=far; proxy_pass http://elsewhere/; }}
        location /blind/ {{
            inference_peek off; proxy_pass http://elsewhere/;
        }}
""") as s:
        s.upstream = upstream
        yield s


def test_local_and_remote_models_in_one_server(server):
    with Client(server.port2) as c:
        for _ in range(3):
            assert c.numbers("far", [1, 2]) == [1, 2]
            assert c.numbers("id_int32", [3]) == [3]
        log = AccessLog(server)
        assert c.call("ModelInfer", numbers("far", [5], model_version="1")) \
            .model_version == "1"
        line = log.line(uri=SERVICE + "ModelInfer", version="1")
        assert (line["model"], line["version"], line["verb"]) \
            == ("far", "1", "infer")


@pytest.mark.parametrize("size", SIZES)
def test_message_reaches_the_upstream_whole(server, size):
    data = os.urandom(size)
    with Client(server.port2) as c:
        for compression in (None, 2):       # gzip
            answer = c.call("ModelInfer", infer(
                "bytes", tensor("IN", "UINT8", [size], data)),
                compression=compression)
            assert answer.raw_output_contents[0] == data


def test_streams_go_by_their_first_message(server):
    with Client(server.port2) as c:
        for model in ("far", "id_int32"):
            with c.stream() as stream:
                nap(0.05)
                for value in range(5):
                    stream.send(numbers(model, [value]))
                    assert number(stream.read()) == value
                stream.end()
                assert stream.rest() == []


def test_limits_of_proxied_models(server):
    with Client(server.port2, "/limited") as c:
        for tenant in "ab":
            meta = [("x-tenant", tenant)]
            assert c.numbers("far", [1], metadata=meta) == [1]
            with pytest.raises(Failure):
                c.numbers("far", [1], metadata=meta)
            assert c.numbers("id_int32", [1], metadata=meta) == [1]


PATHS = [("/rest/v2/models/m/infer", "m", "", "infer"),
         ("/rest/v2/models/m/versions/12/generate_stream", "m", "12",
          "generate_stream"),
         ("/rest/v2/models/m/versions/3", "m", "3", "model_metadata"),
         ("/rest/v2/models/m/ready", "m", "", "model_ready"),
         ("/rest/v2/repository/models/m/load", "m", "", "load"),
         ("/rest/v2/health/live", "", "", "live"),
         ("/rest/v2/models/a/b/c", "", "", ""),
         ("/any/v2/models/m/infer", "", "", ""),
         ("/blind/v2/models/m/infer", "", "", "")]


@pytest.mark.parametrize("path,model,version,verb", PATHS)
def test_rest_by_the_path(server, path, model, version, verb):
    log, body = AccessLog(server), os.urandom(300_000)
    answer = server.post(path, body)
    assert answer.status == 200, answer
    assert answer.json()["sha256"] == hashlib.sha256(body).hexdigest()
    line = log.line(uri=path)
    assert (line["model"], line["version"], line["verb"]) \
        == (model, version, verb)


@pytest.mark.parametrize("path", [
    "/v2/models/res%6eet/infer", "/v2//models/resnet/infer",
    "/v2/a/../models/resnet/infer", "/v2/%6dodels/resnet/infer?a=b",
    "/v2/models%2Fresnet/./infer", "//v2/models/resnet/infer"])
def test_no_spelling_hides_a_model(server, path):
    """Limits count the path that proxy_pass sends."""
    headers = {"X-Tenant": path}
    log = AccessLog(server)
    answer = server.post("/lim" + path, b"{}", headers)
    assert answer.status == 200, answer
    assert answer.json()["path"].partition("?")[0] == "/v2/models/resnet/infer"
    line = log.line(uri="/lim/v2/models/resnet/infer")
    assert (line["model"], line["verb"]) == ("resnet", "infer")
    assert server.post("/lim/v2/models/resnet/infer", b"{}", headers) \
        .status == 503


def test_a_name_with_a_percent_sign(server):
    log = AccessLog(server)
    answer = server.post("/rest/v2/models/a%25b/infer", b"{}")
    assert answer.json()["path"] == "/rest/v2/models/a%25b/infer"
    line = log.line(uri="/rest/v2/models/a%b/infer")
    assert (line["model"], line["verb"]) == ("a%b", "infer")


def test_rest_may_be_switched_before_access(server):
    assert server.post("/choice/v2/models/m/infer", b"{}").body == b"local"
    path = "/choice/v2/models/other/infer"
    assert server.post(path, b"{}").json()["path"] == path
