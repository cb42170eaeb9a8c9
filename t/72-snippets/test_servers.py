"""conf.d/triton.conf and conf.d/endpoint.conf as they stand."""

import json

import numpy
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from lib import models, wire
from lib.curl import curl
from lib.server import ROOT

ASK = json.dumps({"inputs": [{"name": "IN", "datatype": "INT32", "shape": [2],
                              "data": [4, 5]}]}).encode()


@pytest.fixture(params=["http", "grpc"])
def api(request):
    return {"http": tritonclient.http, "grpc": tritonclient.grpc}[
        request.param]


def client_of(api, ports):
    port = ports[0] if api is tritonclient.http else ports[1]
    return api.InferenceServerClient(f"127.0.0.1:{port}")


def infer(api, client, values=(4, 5), **kw):
    given = api.InferInput("IN", [len(values)], "INT32")
    given.set_data_from_numpy(numpy.array(values, numpy.int32))
    return client.infer("id_int32", [given], **kw).as_numpy("OUT").tolist()


def test_triton(snippet, api):
    _, ports = snippet("triton", 8000, 8001)
    with client_of(api, ports) as client:
        assert client.is_server_ready() and client.is_model_ready("id_int32")
        assert infer(api, client) == [4, 5]
        assert infer(api, client, headers={"an_underscore": "x" * 20000}) \
            == [4, 5]
        with pytest.raises(InferenceServerException):
            client.get_model_repository_index()
        with pytest.raises(InferenceServerException):
            client.get_trace_settings()
    if api is tritonclient.http:
        for algorithm in ("gzip", "deflate"):
            with client_of(api, ports) as client:
                assert infer(api, client, range(3000),
                             response_compression_algorithm=algorithm) \
                    == list(range(3000))


def test_names_of_headers_may_have_any_character(snippet):
    def fill(repository):
        models.identity(repository, "told", [("IN", "INT32", [-1])],
                        parameters={"echo_parameters": "true"})

    _, ports = snippet("triton", 8000, 8001, fill=fill,
                       http="    inference_forward_header ^my;")
    answer = wire.fetch(ports[0], "POST", "/v2/models/told/infer", ASK,
                        {"my.own_name": "a"})
    assert answer.json()["parameters"] == {"my.own_name": "a"}


def test_triton_with_its_other_locations(snippet):
    """Those that are comments: control over REST, for this machine."""
    change = [(f"    # {line}\n" if line else "    #\n",
               f"    {line}\n") for line in (
        "location /v2/repository/ {", "    inference repository;",
        "location ~ ^/v2/(logging|(models/[^/]+/)?trace/setting)$ {",
        "    inference trace logging;", "    allow 127.0.0.1;",
        "    deny  all;", "}")]
    _, ports = snippet(
        "triton", 8000, 8001, change=change,
        http="    inference_model_control explicit;\n"
        "    inference_load_model id_int32;")
    api = tritonclient.http
    with client_of(api, ports) as client:
        client.load_model("id_fp32")
        assert client.is_model_ready("id_fp32")
        client.unload_model("id_fp32")
        assert "trace_level" in client.get_trace_settings()
        assert "trace_level" in client.get_trace_settings("id_int32")
        assert "log_info" in client.get_log_settings()
        assert infer(api, client) == [4, 5]


def test_endpoint(make_server):
    def fill(repository):
        models.standard_repository(repository)
        models.identity(repository, "digits", [("IN", "INT32", [-1])])

    server = make_server(fill, server=(ROOT / "conf.d/endpoint.conf")
                         .read_text(encoding="utf-8"))
    for path in ("/ask/id_int32", "/digits"):
        status, body = curl(f"http://{server.url}{path}", "--data-binary",
                            "@-", data=ASK)
        assert status == 200
        assert json.loads(body)["outputs"][0]["data"] == [4, 5]
        raw = wire.fetch(server.port, "POST", path, b"\1\0\0\0",
                         {"Inference-Header-Content-Length": "0"})
        assert raw.status == 200 and raw.body.endswith(b"\1\0\0\0")
    assert server.get("/ask/id_int32").status == 403
    assert server.post("/ask/ghost", ASK).status == 404
    assert server.post("/ask/id_int32/x", ASK).status == 404
    with wire.Wire(server.port, 20) as connection:
        connection.send(wire.request_bytes("POST", "/ask/id_int32", headers={
            "Content-Length": str(17 << 20)}))
        assert connection.read().status == 413
