"""NVIDIA's server answers what ours does not have, over both protocols: as
the upstream of error_page, and of `map` by the model's name."""

import json
import os
import pathlib
import sys

import pytest
from tritonclient.grpc import service_pb2 as pb

from lib import models, prebuilt
from lib.grpc_client import Client, Failure, infer, number, numbers, tensor
from lib.server import ROOT, Server

sys.path.insert(0, str(pathlib.Path(ROOT) / "t/bench"))
from peer import Peer                                       # noqa: E402

MISSING = prebuilt.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("triton")
    (folder / "models").mkdir()
    models.identity(folder / "models", "theirs", [("IN", "INT32", [-1])])
    models.identity(folder / "models", "bytes", [("IN", "UINT8", [-1])])
    triton = Peer(folder / "models", folder, grpc=True)
    try:
        with Server(models.standard_repository, http2=True, http=f"""
    map $content_type $triton {{
        default @triton; application/grpc @triton_grpc;
    }}
    map $inference_model $pool {{ default triton_grpc; ~^id_ own; }}
    upstream triton {{ server 127.0.0.1:{triton.port}; }}
    upstream triton_grpc {{ server 127.0.0.1:{triton.port2}; }}
    upstream own {{ server unix:{folder}/own.sock; }}
    server {{
        listen unix:{folder}/own.sock http2;
        location / {{ inference all; }}
    }}
""", server="""
        location /v2/ {
            inference all; inference_intercept_errors on;
            error_page 404 429 503 504 = $triton;
        }
        location /inference.GRPCInferenceService/ {
            inference all; inference_intercept_errors on;
            error_page 404 429 503 504 = $triton;
        }
        location @triton { proxy_pass http://triton; }
        location @triton_grpc {
            client_max_body_size 0; grpc_pass grpc://triton_grpc;
        }
        location /mixed/ {
            inference_peek on;
            rewrite ^/mixed(/.*) $1 break; grpc_pass grpc://$pool;
        }
""") as s:
            yield s
    finally:
        triton.stop()


@pytest.mark.parametrize("size", [1, 1000, 2_000_000])
def test_rest_goes_on(server, size):
    data = os.urandom(size)
    head = {"inputs": [{"name": "IN", "datatype": "UINT8", "shape": [size],
                        "parameters": {"binary_data_size": size}}],
            "outputs": [{"name": "OUT", "parameters": {"binary_data": True}}]}
    answer = server.infer("bytes", json.dumps(head).encode(), data)
    assert answer.status == 200, answer
    assert answer.split()[1] == data
    assert server.get("/v2/models/theirs").json()["versions"] == ["1"]
    assert server.get("/v2/models/id_int32").json()["platform"] \
        != server.get("/v2").json()["name"]
    assert server.get("/v2/models/nobodys").status in (400, 404)


@pytest.mark.parametrize("size", [1, 1000, 2_000_000])
def test_unary_calls_go_on(server, size):
    data = os.urandom(size)
    with Client(server.port2) as c:
        for compression in (None, 2):
            answer = c.call("ModelInfer", infer(
                "bytes", tensor("IN", "UINT8", [size], data)),
                compression=compression)
            assert answer.raw_output_contents[0] == data
        assert c.numbers("id_int32", [5]) == [5]            # ours
        assert c.call("ModelReady", pb.ModelReadyRequest(name="id_int32")) \
            .ready
        for name, ready in (("theirs", True), ("nobodys", False)):
            assert c.call("ModelReady", pb.ModelReadyRequest(
                name=name)).ready is ready
        assert c.call("ModelConfig", pb.ModelConfigRequest(
            name="theirs")).config.name == "theirs"
        with pytest.raises(Failure) as caught:
            c.numbers("nobodys", [5])
        assert "nobodys" in caught.value.text


def test_streams_go_on(server):
    """Later messages and answers stream; the server says which it has not."""
    with Client(server.port2) as c:
        with c.stream() as stream:
            for value in range(3):
                stream.send(numbers("theirs", [value]))
                assert number(stream.read()) == value
            data = os.urandom(1_500_000)
            stream.send(*[infer("bytes", tensor(
                "IN", "UINT8", [len(data)], data))] * 3)
            assert all(x.infer_response.raw_output_contents[0] == data
                       for x in stream.read(3))
            stream.send(numbers("id_int32", [5]))
            assert "id_int32" in stream.read().error_message
            stream.end()
            assert stream.rest() == []
        with c.stream() as stream:
            stream.send(numbers("id_int32", [6]))           # ours
            assert number(stream.read()) == 6
            stream.send(numbers("theirs", [7]))
            assert "theirs" in stream.read().error_message
        with c.stream(compression=2) as stream:
            stream.send(numbers("theirs", [8]), numbers("theirs", [9]))
            stream.end()
            assert [number(x) for x in stream.rest()] == [8, 9]


def test_models_of_both_by_name(server):
    with Client(server.port2, "/mixed") as c:
        for model in ("theirs", "id_int32"):
            assert c.numbers(model, [1, 2, 3]) == [1, 2, 3]
            with c.stream() as stream:
                stream.send(numbers(model, [4]), numbers(model, [5]))
                assert [number(x) for x in stream.read(2)] == [4, 5]
