"""inference_max_json_size bounds JSON and the tensors in it, nothing else."""

import gzip
import json

import numpy as np
import pytest
from grpc import Compression, StatusCode

from lib import arena, models, process
from lib.grpc_client import Client, Failure, infer as message, numbers, tensor
from lib.repository import EXPLICIT
from lib.server import SLOW
from lib.wire import infer_path

ARENA = 1 << 30
LIMIT = 4096
SETTING = "inference_max_json_size (--http-max-input-size) sets another limit"
LONG = f"request JSON is larger than the limit of {LIMIT} bytes; {SETTING}"
HTTP = f"    inference_memory {ARENA};\n" + EXPLICIT \
    + "    inference_load_model *;\n"
LOAD = "/v2/repository/models/id_int64/load"
CONFIG = json.loads("""
    {"backend": "identity",
     "input": [{"name": "IN", "data_type": "TYPE_INT64", "dims": [-1]}],
     "output": [{"name": "OUT", "data_type": "TYPE_INT64", "dims": [-1]}]}""")


@pytest.fixture
def server(make_server):
    s = make_server(
        models.standard_repository, http2=True, parts="all repository",
        http=HTTP + f"    inference_max_json_size {LIMIT};\n", server="""
        location /wide/ { inference repository; inference_max_body 1m; }
    """)
    yield s
    arena.assert_empty(s, ARENA)


def padded(document, size):
    text = json.dumps(document).encode()
    assert len(text) <= size
    return text + b" " * (size - len(text))


def infer(values):
    return {"inputs": [{"name": "IN", "datatype": "INT64",
                        "shape": [len(values)], "data": values}]}


def load():
    return padded({"parameters": {"config": json.dumps(CONFIG)}}, LIMIT + 1)


def test_an_inference(server):
    path = infer_path("id_int64")
    assert server.post(path, padded(infer([1]), LIMIT)).status == 200
    for body, headers in [
            (padded(infer([1]), LIMIT + 1), {}),
            (padded(infer([1]), LIMIT + 1) + bytes(8),
             {"Inference-Header-Content-Length": str(LIMIT + 1)})]:
        answer = server.post(path, body, headers)
        assert (answer.status, answer.error) == (400, LONG)


def test_a_chunked_inference(server):
    with server.wire() as connection:
        body = padded(infer([1]), LIMIT + 1)
        connection.send(b"POST /v2/models/id_int64/infer HTTP/1.1\r\n"
                        b"Host: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                        b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        answer = connection.read()
        assert answer.status == 400
        assert SETTING in answer.error


def test_a_tensor(server):
    path = infer_path("id_int64")
    most = LIMIT // 8
    assert server.post(path, padded(infer([1] * most), LIMIT)).status == 200
    answer = server.post(path, padded(infer([1] * (most + 1)), LIMIT))
    assert answer.status == 400
    assert answer.error == "Unable to parse 'data': the tensor is larger " \
        f"than JSON may be; {SETTING} (input 'IN')"


def test_binary_tensors_have_other_limits(server):
    """Behind JSON, or alone."""
    path = infer_path("id_int64")
    data = bytes(1 << 20)
    head = json.dumps({"inputs": [
        {"name": "IN", "datatype": "INT64", "shape": [1 << 17],
         "parameters": {"binary_data_size": len(data)}}],
        "parameters": {"binary_data_output": True}}).encode()
    for body, length in [(head + data, len(head)), (data, 0)]:
        answer = server.post(path, body, {
            "Inference-Header-Content-Length": str(length)})
        assert answer.status == 200
        assert len(answer.body) >= 1 << 20


@pytest.mark.parametrize("verb", ["generate", "generate_stream"])
def test_generate(server, verb):
    path = f"/v2/models/id_int64/{verb}"
    most = LIMIT // 8
    assert server.post(path, padded({"IN": 1}, LIMIT)).status == 200
    answer = server.post(path, padded({"IN": 1}, LIMIT + 1))
    assert (answer.status, answer.error) == (400, LONG)
    assert server.post(path, padded({"IN": [1] * most}, LIMIT)).status == 200
    answer = server.post(path, padded({"IN": [1] * (most + 1)}, LIMIT))
    assert answer.status == 400
    assert answer.error == "the request's tensors take more than the limit " \
        f"of {LIMIT} bytes with input 'IN'; {SETTING}"


def test_an_inflated_body(server):
    path = infer_path("id_int64")
    gzipped = {"Content-Encoding": "gzip"}
    body = gzip.compress(padded(infer([1]), LIMIT))
    assert server.post(path, body, gzipped).status == 200
    body = gzip.compress(padded(infer([1]), LIMIT + 1))
    answer = server.post(path, body, gzipped)
    assert answer.status == 400
    assert SETTING.split(" ")[0] in answer.error


def test_a_load(server):
    """A limit of the location's own takes its place."""
    answer = server.post(LOAD, load())
    assert (answer.status, answer.error) == (400, LONG)
    assert server.post("/wide" + LOAD, load()).status == 200
    answer = server.post("/wide" + LOAD, b" " * ((1 << 20) + 1))
    assert answer.status == 413


def test_a_reload(server):
    body = padded(infer([1]), 3 * LIMIT)
    paths = [infer_path("id_int64"), "/v2/models/id_int64/generate"]
    bodies = [body, padded({"IN": 1}, 3 * LIMIT)]
    for path, body in zip(paths, bodies, strict=True):
        assert server.post(path, body).error == LONG
    server.write_config(
        http=HTTP + f"    inference_max_json_size {3 * LIMIT};\n")
    server.signal("HUP")
    for path, body in zip(paths, bodies, strict=True):
        assert process.wait_until(
            lambda path=path, body=body:
            server.post(path, body).status == 200, 20 * SLOW)


def test_grpc_has_none(server):
    """Its numbers are bounded by inference_max_body, compressed ones by 64 MiB
    without it."""
    values = np.arange(20 << 20, dtype=np.float32)
    with Client(server.port2) as client:
        request = numbers("id_int32", range(LIMIT))
        answer = client.call("ModelInfer", request,
                             compression=Compression.Gzip)
        assert answer.raw_output_contents[0] == request.raw_input_contents[0]
        long = message("id_uint8", tensor("IN", "UINT8", [64 << 20],
                                          bytes(64 << 20)))
        with pytest.raises(Failure, match="inference_max_body sets") as e:
            client.call("ModelInfer", long, compression=Compression.Gzip)
        assert e.value.code == StatusCode.RESOURCE_EXHAUSTED
        assert f" vs. {64 << 20})" in e.value.text
        answer = client.infer("id_fp32", tensor(
            "IN", "FP32", [len(values)], {"fp32_contents": values}))
        assert answer.raw_output_contents[0] == values.tobytes()
