"""The clients people use, unmodified: tritonclient (sync, asyncio), curl."""

import asyncio
import concurrent.futures
import json
import struct

import ml_dtypes
import numpy
import pytest
import tritonclient.http as client
import tritonclient.http.aio as aio
from tritonclient.utils import InferenceServerException

from lib import models
from lib.curl import curl

PLAIN = {"BOOL": numpy.bool_, "UINT8": numpy.uint8, "UINT16": numpy.uint16,
         "UINT32": numpy.uint32, "UINT64": numpy.uint64, "INT8": numpy.int8,
         "INT16": numpy.int16, "INT32": numpy.int32, "INT64": numpy.int64,
         "FP16": numpy.float16, "FP32": numpy.float32, "FP64": numpy.float64}


@pytest.fixture
def triton(server):
    c = client.InferenceServerClient(server.url)
    yield c
    c.close()


def tensor_in(datatype, array, binary=True, name="IN", module=client):
    one = module.InferInput(name, list(array.shape), datatype)
    one.set_data_from_numpy(array, binary_data=binary)
    return one


def output(binary=True, name="OUT", classes=0, module=client):
    return module.InferRequestedOutput(name, binary_data=binary,
                                       class_count=classes)


def sample(datatype, count=6):
    rng = numpy.random.default_rng(count)
    if datatype == "BYTES":
        return numpy.array([b"", b"a", "hé".encode(), b"\0\1", b"x" * 999,
                            b"end"][:count], dtype=numpy.object_)
    if datatype == "BF16":
        return numpy.array([1.0, -2.5, 0, 3e38, 1e-30, 128],
                           ml_dtypes.bfloat16)[:count]
    if datatype == "BOOL":
        return rng.integers(0, 2, count).astype(numpy.bool_)
    if datatype.startswith("FP"):
        return rng.standard_normal(count).astype(PLAIN[datatype])
    info = numpy.iinfo(PLAIN[datatype])
    return rng.integers(info.min, info.max, count, PLAIN[datatype],
                        endpoint=True)


def test_health_metadata_and_config(triton):
    assert triton.is_server_live()
    assert triton.is_server_ready()
    assert triton.is_model_ready("id_fp32")
    assert triton.is_model_ready("id_versions", "1")
    assert not triton.is_model_ready("ghost")
    assert triton.get_server_metadata()["name"] == "triton"
    assert triton.get_model_metadata("id_batch")["inputs"][0]["shape"] \
        == [-1, 4]
    assert triton.get_model_config("id_batch")["max_batch_size"] == 8


@pytest.mark.parametrize("datatype", models.ALL_DATATYPES)
def test_infer_binary(triton, datatype):
    data = sample(datatype)
    result = triton.infer("id_" + datatype.lower(),
                          [tensor_in(datatype, data)], outputs=[output()])
    got = result.as_numpy("OUT")
    assert got.dtype == data.dtype
    assert got.tolist() == data.tolist()


@pytest.mark.parametrize("datatype", [
    d for d in models.ALL_DATATYPES if d not in ("FP16", "BF16", "BYTES")])
@pytest.mark.parametrize("binary_in,binary_out", [
    (False, False), (False, True), (True, False)])
def test_infer_json(triton, datatype, binary_in, binary_out):
    data = sample(datatype)
    result = triton.infer("id_" + datatype.lower(),
                          [tensor_in(datatype, data, binary_in)],
                          outputs=[output(binary_out)])
    assert result.as_numpy("OUT").tolist() == data.tolist()


@pytest.mark.parametrize("binary_in,binary_out", [
    (False, False), (False, True), (True, False), (True, True)])
def test_infer_strings(triton, binary_in, binary_out):
    data = numpy.array(["", "plain", "hé\u0000\"x", "x" * 70000],
                       dtype=numpy.object_)
    result = triton.infer("id_bytes", [tensor_in("BYTES", data, binary_in)],
                          outputs=[output(binary_out)])
    got = [v.decode() if isinstance(v, bytes) else v
           for v in result.as_numpy("OUT")]
    assert got == data.tolist()


def test_default_outputs_are_binary(triton):
    data = sample("FP32")
    result = triton.infer("id_fp32", [tensor_in("FP32", data)])
    assert result.get_output("OUT")["parameters"]["binary_data_size"] == 24
    assert (result.as_numpy("OUT") == data).all()


def test_request_id_version_and_parameters(triton):
    result = triton.infer(
        "id_versions", [tensor_in("INT32", sample("INT32"))],
        model_version="1", request_id="my-42", priority=1, timeout=5_000_000,
        parameters={"custom": "x"}, query_params={"a": 1},
        headers={"X-Own": "1"})
    assert result.get_response()["id"] == "my-42"
    assert result.get_response()["model_version"] == "1"


def test_classification(triton):
    data = numpy.array([[0.25, 9, -1, 3.5]], numpy.float32)
    for binary in (True, False):
        result = triton.infer(
            "vision", [tensor_in("FP32", data, name="PIX")],
            outputs=[output(binary, "SCORES", classes=2)])
        got = [v.decode() if isinstance(v, bytes) else v
               for v in result.as_numpy("SCORES").ravel()]
        assert got == ["9.000000:1:cat", "3.500000:3:owl"]


@pytest.mark.parametrize("request_by", [None, "gzip", "deflate"])
@pytest.mark.parametrize("response_by", [None, "gzip", "deflate"])
def test_compression(triton, request_by, response_by):
    data = numpy.arange(50000, dtype=numpy.float32)
    for binary in (True, False):
        result = triton.infer(
            "id_fp32", [tensor_in("FP32", data, binary)],
            outputs=[output(binary)],
            request_compression_algorithm=request_by,
            response_compression_algorithm=response_by)
        assert (result.as_numpy("OUT") == data).all()


def test_generate_request_body_and_parse(server):
    """The client's static helpers, with a socket of ours in between."""
    data = sample("FP32")
    body, length = client.InferenceServerClient.generate_request_body(
        [tensor_in("FP32", data)], outputs=[output()])
    answer = server.post("/v2/models/id_fp32/infer", body, {
        "Inference-Header-Content-Length": str(length)})
    result = client.InferenceServerClient.parse_response_body(
        answer.body, header_length=int(
            answer.headers["inference-header-content-length"]))
    assert (result.as_numpy("OUT") == data).all()


@pytest.mark.parametrize("model,name,shape,datatype,words", [
    ("ghost", "IN", [2], "INT32", "'ghost' is not found"),
    ("id_int32", "XX", [2], "INT32", "XX"),
    ("id_int32", "IN", [2], "FP32", "data-type"),
    ("id_fixed", "IN", [3], "INT32", "shape")])
def test_errors_reach_the_caller(triton, model, name, shape, datatype, words):
    data = numpy.zeros(shape, PLAIN[datatype])
    with pytest.raises(InferenceServerException) as caught:
        triton.infer(model, [tensor_in(datatype, data, name=name)])
    assert words in str(caught.value)


def test_async_infer_of_the_sync_client(server):
    with client.InferenceServerClient(server.url, concurrency=8) as c:
        pending = [c.async_infer("id_int32", [tensor_in(
            "INT32", numpy.array([i], numpy.int32))]) for i in range(100)]
        for i, p in enumerate(pending):
            assert p.get_result().as_numpy("OUT").tolist() == [i]


def test_threads_with_clients_of_their_own(server):
    def work(seed):
        data = numpy.random.default_rng(seed).standard_normal(
            1000 + seed * 777).astype(numpy.float32)
        with client.InferenceServerClient(server.url) as c:
            for _ in range(20):
                got = c.infer("id_fp32", [tensor_in("FP32", data)])
                assert (got.as_numpy("OUT") == data).all()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_asyncio_client(server):
    async def one(c, datatype):
        data = sample(datatype)
        result = await c.infer(
            "id_" + datatype.lower(),
            [tensor_in(datatype, data, module=aio)],
            outputs=[output(module=aio)],
            request_compression_algorithm="gzip")
        return (result.as_numpy("OUT") == data).all()

    async def main():
        async with aio.InferenceServerClient(server.url) as c:
            assert await c.is_server_live()
            assert await c.is_server_ready()
            assert await c.is_model_ready("id_fp32")
            assert (await c.get_model_metadata("scale"))["name"] == "scale"
            assert (await c.get_model_config("scale"))["max_batch_size"] == 8
            kinds = ["FP32", "INT8", "BYTES", "BOOL", "FP16", "UINT64"] * 20
            results = await asyncio.gather(*[one(c, k) for k in kinds])
            assert all(results)
            with pytest.raises(InferenceServerException):
                await c.infer("ghost", [tensor_in("FP32", sample("FP32"),
                                                  module=aio)])

    asyncio.run(main())


# ---- curl

BODY = ('{"inputs":[{"name":"IN","datatype":"FP32","shape":[2],'
        '"data":[1.5,2]}]}')


def test_curl_json(server):
    status, body = curl(f"http://{server.url}/v2/models/id_fp32/infer",
                        "-d", BODY)
    assert status == 200
    assert json.loads(body)["outputs"][0]["data"] == [1.5, 2.0]


def test_curl_large_upload_with_expect(server):
    data = numpy.zeros(3 << 20, numpy.uint8).tobytes()
    status, body = curl(
        f"http://{server.url}/v2/models/id_uint8/infer", "-X", "POST",
        "-H", "Expect: 100-continue",
        "-H", "Inference-Header-Content-Length: 0", "--data-binary", "@-",
        data=data)
    assert status == 200
    assert body.endswith(data)


def test_curl_chunked_from_a_pipe(server):
    status, body = curl(
        f"http://{server.url}/v2/models/id_fp32/infer", "-X", "POST",
        "-H", "Transfer-Encoding: chunked", "--data-binary", "@-",
        data=BODY.encode())
    assert status == 200
    assert json.loads(body)["outputs"][0]["data"] == [1.5, 2.0]


def test_curl_http2_prior_knowledge(make_server):
    server = make_server(models.standard_repository, http2=True)
    url = f"http://127.0.0.1:{server.port2}/v2/models/"
    for _ in range(3):
        status, body = curl("--http2-prior-knowledge", url + "id_fp32/infer",
                            "-d", BODY)
        assert status == 200
        assert json.loads(body)["outputs"][0]["data"] == [1.5, 2.0]
    data = struct.pack("<500000f", *range(500000))
    status, body = curl(
        "--http2-prior-knowledge", url + "id_fp32/infer", "-X", "POST",
        "-H", "Inference-Header-Content-Length: 0", "--data-binary", "@-",
        data=data)
    assert status == 200
    assert body.endswith(data)
    status, body = curl("--http2-prior-knowledge", url + "ghost/infer",
                        "-d", BODY)
    assert status == 404
